/* Calls on NumPy arrays like an earlier call's: of the same function, options and layouts. What such a call needs is found
 * and done here, without a step of Python for each array. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h> /* how an array lies, which all versions share; none of NumPy's functions */

#include "host.h"

enum { MOST_ARRAYS = CLN_MOST_TENSORS, MOST_DIMS = 8, MOST_WORDS = MOST_ARRAYS * (3 + 2 * MOST_DIMS) };

/* A call as Python keeps it, a tuple: */
enum {
    NATIVE, /* the address of its cln_call */
    MADE,   /* for each output: the arguments of numpy.empty, or the position in outs of the one that was brought */
    ROLES,  /* of the outputs */
    FAILED  /* what raises the error of a status */
};          /* and what has to live as long: dtypes are told apart by their addresses */

typedef int (*run_function)(cln_host *, const cln_call *, const void *, uint64_t, uint64_t);

static run_function run_on_host;
static PyObject *array_type, *make_empty;

/* How the arrays of a call lie, and where. */
struct arrays {
    uint64_t word[MOST_WORDS];
    unsigned words, count;
    uintptr_t address[MOST_ARRAYS];
};

/* Returns whether this is an array that a quick call can have: none of a subclass. */
static bool add_array(struct arrays *arrays, PyObject *object) {
    if ((PyObject *)Py_TYPE(object) != array_type)
        return false;
    const PyArrayObject *const array = (const PyArrayObject *)object;
    const int dims = PyArray_NDIM(array);
    if (dims > MOST_DIMS)
        return false;
    arrays->word[arrays->words++] = (uint64_t)dims + 1; /* 0: no array */
    arrays->word[arrays->words++] = (uintptr_t)PyArray_DESCR(array);
    for (int i = 0; i < dims; i++) {
        arrays->word[arrays->words++] = (uint64_t)PyArray_DIM(array, i);
        arrays->word[arrays->words++] = (uint64_t)PyArray_STRIDE(array, i);
    }
    arrays->address[arrays->count++] = (uintptr_t)PyArray_DATA((PyArrayObject *)object);
    return true;
}

/* inputs: arrays and None. outs: (place, name, array) of each output that the caller has brought; the addresses of these
 * come with those of all outputs. */
static bool add_all(struct arrays *arrays, PyObject *inputs, PyObject *outs) {
    const Py_ssize_t in = PyTuple_Size(inputs), out = PyTuple_Size(outs);
    arrays->words = arrays->count = 0;
    if (in + out > MOST_ARRAYS)
        return false;
    for (Py_ssize_t i = 0; i < in; i++) {
        PyObject *const input = PyTuple_GetItem(inputs, i);
        if (input == Py_None)
            arrays->word[arrays->words++] = 0;
        else if (!add_array(arrays, input))
            return false;
    }
    const unsigned count = arrays->count;
    for (Py_ssize_t i = 0; i < out; i++) {
        PyObject *const brought = PyTuple_GetItem(outs, i), *const array = PyTuple_GetItem(brought, 2);
        if (!add_array(arrays, array) || !PyArray_ISWRITEABLE((const PyArrayObject *)array))
            return false;
        arrays->word[arrays->words++] = PyLong_AsUnsignedLong(PyTuple_GetItem(brought, 0));
    }
    arrays->count = count;
    return true;
}

static PyObject *make_key(PyObject *function, PyObject *options, const struct arrays *arrays) {
    const size_t bytes = arrays->words * sizeof *arrays->word;
    PyObject *const layouts = PyBytes_FromStringAndSize((const char *)arrays->word, (Py_ssize_t)bytes);
    PyObject *const key = layouts ? PyTuple_Pack(3, function, options, layouts) : NULL;
    Py_XDECREF(layouts);
    return key;
}

/* A call, or NULL, where there is none, or an option that cannot be part of a key. */
static PyObject *find_call(PyObject *calls, PyObject *function, PyObject *options, const struct arrays *arrays) {
    PyObject *const key = make_key(function, options, arrays);
    PyObject *const call = key ? PyDict_GetItemWithError(calls, key) : NULL;
    Py_XINCREF(call);
    Py_XDECREF(key);
    PyErr_Clear();
    return call;
}

/* The arrays of the outputs in a list: new ones, and those of outs. */
static PyObject *make_results(PyObject *made, PyObject *outs, struct arrays *arrays) {
    const Py_ssize_t count = PyTuple_Size(made);
    PyObject *const results = PyList_New(count);
    for (Py_ssize_t i = 0; results && i < count; i++) {
        PyObject *const from = PyTuple_GetItem(made, i);
        PyObject *result = NULL;
        if (PyTuple_Check(from)) {
            result = PyObject_Call(make_empty, from, NULL);
        } else {
            result = PyTuple_GetItem(PyTuple_GetItem(outs, PyLong_AsSsize_t(from)), 2);
            Py_INCREF(result);
        }
        if (!result) {
            Py_DECREF(results);
            return NULL;
        }
        arrays->address[arrays->count++] = (uintptr_t)PyArray_DATA((PyArrayObject *)result);
        (void)PyList_SetItem(results, i, result);
    }
    return results;
}

/* The arguments that both functions have. */
struct named {
    PyObject *calls, *function, *options, *inputs, *outs;
};

static PyObject *run(PyObject *module, PyObject *arguments) {
    (void)module;
    struct named named;
    struct arrays arrays;
    PyObject *host;
    unsigned long long seed, offset;
    if (!PyArg_ParseTuple(arguments, "OOOOOO(KK)", &named.calls, &named.function, &named.options, &named.inputs,
                          &named.outs, &host, &seed, &offset))
        return NULL;
    PyObject *const call =
        add_all(&arrays, named.inputs, named.outs) ? find_call(named.calls, named.function, named.options, &arrays) : NULL;
    if (!call)
        Py_RETURN_NONE;
    PyObject *const results = make_results(PyTuple_GetItem(call, MADE), named.outs, &arrays), *result = NULL;
    if (results) {
        cln_host *const on = PyLong_AsVoidPtr(host);
        const cln_call *const native = PyLong_AsVoidPtr(PyTuple_GetItem(call, NATIVE));
        int status;
        Py_BEGIN_ALLOW_THREADS status = run_on_host(on, native, arrays.address, seed, offset);
        Py_END_ALLOW_THREADS result = status ? PyObject_CallFunction(PyTuple_GetItem(call, FAILED), "i", status)
                                             : PyTuple_Pack(2, PyTuple_GetItem(call, ROLES), results);
        Py_DECREF(results);
    }
    Py_DECREF(call);
    return result;
}

static PyObject *keep(PyObject *module, PyObject *arguments) {
    (void)module;
    struct named named;
    struct arrays arrays;
    PyObject *call;
    if (!PyArg_ParseTuple(arguments, "OOOOOO", &named.calls, &named.function, &named.options, &named.inputs, &named.outs,
                          &call))
        return NULL;
    if (!add_all(&arrays, named.inputs, named.outs))
        Py_RETURN_NONE;
    PyObject *const key = make_key(named.function, named.options, &arrays);
    const int failed = key ? PyDict_SetItem(named.calls, key, call) : -1;
    Py_XDECREF(key);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *start(PyObject *module, PyObject *address) {
    (void)module;
    void *const function = PyLong_AsVoidPtr(address);
    memcpy(&run_on_host, &function, sizeof function); /* C has no cast from the one to the other */
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start", start, METH_O, "start(the address of cln_host_run): goes before all others."},
    {"run", run, METH_VARARGS,
     "run(calls, function, options, inputs, outs, host, seed): runs a call that was kept for such arrays and options.\n"
     "Returns its ROLES and a list of its outputs, or None where no such call was kept."},
    {"keep", keep, METH_VARARGS,
     "keep(calls, function, options, inputs, outs, call): keeps a call, (NATIVE, MADE, ROLES, FAILED, what they need)."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_numpy_calls", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__numpy_calls(void) {
    PyObject *const numpy = PyImport_ImportModule("numpy");
    array_type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    make_empty = array_type ? PyObject_GetAttrString(numpy, "empty") : NULL;
    Py_XDECREF(numpy);
    return make_empty ? PyModule_Create(&definition) : NULL;
}
