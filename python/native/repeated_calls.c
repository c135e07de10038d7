/* Repeated calls: of the same function, options and layouts as an earlier call, on arrays of NumPy or tensors of PyTorch.
 * They are looked up and run here, without a step of Python for each array. */
#include "array_kinds.h"

/* The members of a kept call, a tuple: */
enum {
    NATIVE, /* the address of its cln_call */
    MADE,  /* for each output: (function, arguments), or (type, shape, dtype) of cln_make_tensor, or the position in outs */
    ROLES, /* of the outputs */
    FAILED /* a function that raises the error of a status */
};         /* and objects that have to live as long, such as NumPy's dtypes, which are identified by their addresses */

typedef int (*run_function)(cln_host *, const cln_call *, const void *, uint64_t, uint64_t);

static run_function run_on_host;
static cln_host *host; /* of the selected device; NULL: Python has to select it first */

/* inputs: arrays and None. outs: (place, name, array) of each output that the caller brings; make_results adds their
 * addresses with those of all outputs. */
static bool add_all(struct arrays *arrays, PyObject *inputs, PyObject *outs) {
    const Py_ssize_t in = PyTuple_Size(inputs), out = PyTuple_Size(outs);
    arrays->words = arrays->count = 0;
    if (in + out > MOST_ARRAYS)
        return false;
    for (Py_ssize_t i = 0; i < in; i++) {
        PyObject *const input = PyTuple_GetItem(inputs, i);
        if (input == Py_None)
            arrays->word[arrays->words++] = 0;
        else if (!cln_add_array(arrays, input))
            return false;
    }
    const unsigned count = arrays->count;
    for (Py_ssize_t i = 0; i < out; i++) {
        PyObject *const brought = PyTuple_GetItem(outs, i);
        if (!cln_add_output(arrays, PyTuple_GetItem(brought, 2)))
            return false;
        arrays->word[arrays->words++] = PyLong_AsUnsignedLong(PyTuple_GetItem(brought, 0));
    }
    arrays->count = count;
    return true;
}

/* Adds the types of options: 1, 1.0 and True are equal, but an option allows only some of them. Returns false for a mutable
 * option, such as an array. */
static bool add_types(struct arrays *arrays, PyObject *options) {
    const Py_ssize_t count = PyTuple_Size(options);
    arrays->word[arrays->words++] = (uint64_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *const option = PyTuple_GetItem(options, i), *const type = (PyObject *)Py_TYPE(option);
        const bool fits = arrays->words + 2 < sizeof arrays->word / sizeof *arrays->word;
        if (!fits || (PyTuple_Check(option) && !add_types(arrays, option)))
            return false;
        if (!PyTuple_Check(option) && option != Py_None && type != (PyObject *)&PyBool_Type &&
            !PyFloat_CheckExact(option) && !PyLong_CheckExact(option) && !PyUnicode_CheckExact(option))
            return false;
        arrays->word[arrays->words++] = (uintptr_t)type;
    }
    return true;
}

/* Returns a new reference, or NULL, with or without an error, where the call cannot have a key. */
static PyObject *make_key(PyObject *function, PyObject *options, struct arrays *arrays) {
    if (!add_types(arrays, options))
        return NULL;
    const size_t bytes = arrays->words * sizeof *arrays->word;
    PyObject *const layouts = PyBytes_FromStringAndSize((const char *)arrays->word, (Py_ssize_t)bytes);
    PyObject *const key = layouts ? PyTuple_Pack(3, function, options, layouts) : NULL;
    Py_XDECREF(layouts);
    return key;
}

/* The kept call, a new reference. NULL: none was kept, or an option cannot be part of a key. */
static PyObject *find_call(PyObject *calls, PyObject *function, PyObject *options, struct arrays *arrays) {
    PyObject *const key = make_key(function, options, arrays);
    PyObject *const call = key ? PyDict_GetItemWithError(calls, key) : NULL;
    Py_XINCREF(call);
    Py_XDECREF(key);
    PyErr_Clear();
    return call;
}

/* The array of an output, a new reference, or NULL with a Python error. */
static PyObject *make_result(PyObject *from, PyObject *outs) {
    if (PyTuple_Check(from)) {
        PyObject *const what = PyTuple_GetItem(from, 0), *const first = PyTuple_GetItem(from, 1);
        return PyTuple_Size(from) == 2 ? PyObject_Call(what, first, NULL)
                                       : cln_make_tensor(what, first, PyTuple_GetItem(from, 2));
    }
    PyObject *const brought = PyTuple_GetItem(PyTuple_GetItem(outs, PyLong_AsSsize_t(from)), 2);
    Py_INCREF(brought);
    return brought;
}

/* A list of the outputs' arrays: new ones, and those of outs. Their layouts overwrite those of the inputs. */
static PyObject *make_results(PyObject *made, PyObject *outs, struct arrays *arrays) {
    const Py_ssize_t count = PyTuple_Size(made);
    PyObject *const results = PyList_New(count);
    arrays->words = 0;
    for (Py_ssize_t i = 0; results && i < count; i++) {
        PyObject *const result = make_result(PyTuple_GetItem(made, i), outs);
        if (result && cln_add_array(arrays, result)) {
            (void)PyList_SetItem(results, i, result);
            continue;
        }
        if (result)
            PyErr_SetString(PyExc_RuntimeError, "a result of clnorm was made in a mode in which new arrays have no memory");
        Py_XDECREF(result);
        Py_DECREF(results);
        return NULL;
    }
    return results;
}

static bool note_writes(PyObject *outs) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(outs); i++)
        if (!cln_note_write(PyTuple_GetItem(PyTuple_GetItem(outs, i), 2)))
            return false;
    return true;
}

/* The arguments that both functions have. */
struct named {
    PyObject *calls, *function, *options, *inputs, *outs;
};

static PyObject *run(PyObject *module, PyObject *arguments) {
    (void)module;
    struct named named;
    struct arrays arrays;
    unsigned long long seed, offset;
    if (!PyArg_ParseTuple(arguments, "OOOOO(KK)", &named.calls, &named.function, &named.options, &named.inputs, &named.outs,
                          &seed, &offset))
        return NULL;
    cln_host *const on = host;
    PyObject *const call = on && add_all(&arrays, named.inputs, named.outs)
                               ? find_call(named.calls, named.function, named.options, &arrays)
                               : NULL;
    if (!call)
        Py_RETURN_NONE;
    PyObject *const results = make_results(PyTuple_GetItem(call, MADE), named.outs, &arrays), *result = NULL;
    if (results) {
        const cln_call *const native = PyLong_AsVoidPtr(PyTuple_GetItem(call, NATIVE));
        int status;
        Py_BEGIN_ALLOW_THREADS status = run_on_host(on, native, arrays.address, seed, offset);
        Py_END_ALLOW_THREADS const bool refused = status >= CLN_OVERLAP; /* before any write */
        if (refused || note_writes(named.outs))
            result = status ? PyObject_CallFunction(PyTuple_GetItem(call, FAILED), "i", status)
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
    const int failed = key ? PyDict_SetItem(named.calls, key, call) : 0;
    Py_XDECREF(key);
    if (failed || PyErr_Occurred())
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

static PyObject *use_host(PyObject *module, PyObject *address) {
    (void)module;
    host = PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *add_tensor_type(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *type, *capsule, *is_grad_enabled, *note_write;
    if (!PyArg_ParseTuple(arguments, "OOOO", &type, &capsule, &is_grad_enabled, &note_write))
        return NULL;
    const bool added = cln_add_tensor_type(type, capsule, is_grad_enabled, note_write);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(added);
}

static PyMethodDef functions[] = {
    {"start", start, METH_O, "start(the address of cln_host_run): has to be called first."},
    {"use_host", use_host, METH_O,
     "use_host(the address of a cln_host): the host of repeated calls; 0: none run until the next use_host."},
    {"add_tensor_type", add_tensor_type, METH_VARARGS,
     "add_tensor_type(type, type.__dlpack_c_exchange_api__, torch.is_grad_enabled, a function called after a write):\n"
     "allows repeated calls on tensors of the type. Returns whether its API can be used."},
    {"run", run, METH_VARARGS,
     "run(calls, function, options, inputs, outs, seed): runs the call that was kept for these layouts and options.\n"
     "Returns its ROLES and a list of its outputs, or None where no such call was kept."},
    {"keep", keep, METH_VARARGS,
     "keep(calls, function, options, inputs, outs, call): keeps a call, (NATIVE, MADE, ROLES, FAILED, their objects)."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_repeated_calls", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__repeated_calls(void) {
    return cln_start_kinds() ? PyModule_Create(&definition) : NULL;
}
