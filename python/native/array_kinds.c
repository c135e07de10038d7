#include "array_kinds.h"

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/ndarraytypes.h> /* NumPy's structs, which all versions share, and none of its functions */

#include "dlpack_exchange.h"

enum { MOST_TYPES = 4 };

/* A type of tensors. It lives as long as the process. */
struct tensor_type {
    PyObject *type;
    const dlpack_exchange *api;
    PyObject *is_grad_enabled, *note_write;
};

static struct tensor_type types[MOST_TYPES];
static unsigned type_count;
static PyObject *numpy_type, *requires_grad, *is_neg;

bool cln_start_kinds(void) {
    PyObject *const numpy = PyImport_ImportModule("numpy");
    numpy_type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    Py_XDECREF(numpy);
    requires_grad = PyUnicode_InternFromString("requires_grad");
    is_neg = PyUnicode_InternFromString("is_neg");
    return numpy_type && requires_grad && is_neg;
}

bool cln_add_tensor_type(PyObject *type, PyObject *capsule, PyObject *is_grad_enabled, PyObject *note_write) {
    const dlpack_exchange *const api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (!api || api->header.major != DLPACK_MAJOR || !api->describe || type_count == MOST_TYPES)
        return false;
    Py_INCREF(type);
    Py_INCREF(is_grad_enabled);
    Py_INCREF(note_write);
    types[type_count++] = (struct tensor_type){type, api, is_grad_enabled, note_write};
    return true;
}

static const struct tensor_type *find_type(PyObject *type) {
    for (unsigned i = 0; i < type_count; i++)
        if (types[i].type == type)
            return &types[i];
    return NULL;
}

/* Whether an object is not False; consumes the reference. NULL counts as true, and clears the error. */
static bool is_true(PyObject *object) {
    const bool is = object != Py_False;
    Py_XDECREF(object);
    if (!object)
        PyErr_Clear();
    return is;
}

/* Whether a tensor is just its memory: no gradient of it is recorded, and it is no negative view. */
static bool is_plain(const struct tensor_type *type, PyObject *tensor) {
    if (is_true(PyObject_GetAttr(tensor, requires_grad)) && is_true(PyObject_CallObject(type->is_grad_enabled, NULL)))
        return false;
    return !is_true(PyObject_CallMethodObjArgs(tensor, is_neg, NULL));
}

static void add_layout(struct arrays *arrays, uint64_t kind_and_dims, uint64_t dtype, const void *start) {
    arrays->word[arrays->words++] = kind_and_dims;
    arrays->word[arrays->words++] = dtype;
    arrays->address[arrays->count++] = (uintptr_t)start;
}

static void add_dim(struct arrays *arrays, int64_t size, int64_t stride) {
    arrays->word[arrays->words++] = (uint64_t)size;
    arrays->word[arrays->words++] = (uint64_t)stride;
}

/* The kind in the first word of an array; the word of an absent array is 0. */
enum { OF_NUMPY = 1 << 8, OF_PYTORCH = 2 << 8 };

static bool has_elements(const dlpack_tensor *tensor) {
    for (int i = 0; i < tensor->ndim; i++)
        if (!tensor->shape[i])
            return false;
    return true;
}

static bool add_tensor(struct arrays *arrays, PyObject *object) {
    const struct tensor_type *const type = find_type((PyObject *)Py_TYPE(object));
    dlpack_tensor tensor;
    if (!type || !is_plain(type, object))
        return false;
    if (type->api->describe(object, &tensor)) {
        PyErr_Clear();
        return false;
    }
    if (tensor.device_type != DLPACK_CPU || tensor.ndim > MOST_DIMS || (tensor.ndim && !tensor.strides))
        return false;
    if (!tensor.data && has_elements(&tensor))
        return false;
    const uint64_t dtype = (uint64_t)tensor.code | (uint64_t)tensor.bits << 8 | (uint64_t)tensor.lanes << 16;
    add_layout(arrays, OF_PYTORCH + (uint64_t)tensor.ndim, dtype, (const char *)tensor.data + tensor.byte_offset);
    for (int i = 0; i < tensor.ndim; i++)
        add_dim(arrays, tensor.shape[i], tensor.strides[i]);
    return true;
}

bool cln_add_array(struct arrays *arrays, PyObject *object) {
    if ((PyObject *)Py_TYPE(object) != numpy_type)
        return add_tensor(arrays, object);
    const PyArrayObject *const array = (const PyArrayObject *)object;
    const int dims = PyArray_NDIM(array);
    if (dims > MOST_DIMS)
        return false;
    add_layout(arrays, OF_NUMPY + (uint64_t)dims, (uintptr_t)PyArray_DESCR(array), PyArray_DATA((PyArrayObject *)object));
    for (int i = 0; i < dims; i++)
        add_dim(arrays, PyArray_DIM(array, i), PyArray_STRIDE(array, i));
    return true;
}

bool cln_add_output(struct arrays *arrays, PyObject *object) {
    if ((PyObject *)Py_TYPE(object) == numpy_type && !PyArray_ISWRITEABLE((const PyArrayObject *)object))
        return false;
    return cln_add_array(arrays, object);
}

bool cln_note_write(PyObject *object) {
    const struct tensor_type *const type = find_type((PyObject *)Py_TYPE(object));
    PyObject *const noted = type ? PyObject_CallFunctionObjArgs(type->note_write, object, NULL) : NULL;
    Py_XDECREF(noted);
    return !type || noted;
}

static void set_error(void *context, const char *kind, const char *message) {
    (void)context, (void)kind;
    PyErr_SetString(PyExc_RuntimeError, message);
}

PyObject *cln_make_tensor(PyObject *type, PyObject *shape, PyObject *dtype) {
    const struct tensor_type *const known = find_type(type);
    const Py_ssize_t dims = known ? PyTuple_Size(shape) : MOST_DIMS + 1;
    if (dims > MOST_DIMS) {
        PyErr_SetString(PyExc_RuntimeError, "a result has more dimensions than a repeated call can have");
        return NULL;
    }
    int64_t sizes[MOST_DIMS];
    for (Py_ssize_t i = 0; i < dims; i++)
        sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    dlpack_tensor prototype = {.device_type = DLPACK_CPU, .ndim = (int32_t)dims, .lanes = 1, .shape = sizes};
    prototype.code = (uint8_t)PyLong_AsLong(PyTuple_GetItem(dtype, 0));
    prototype.bits = (uint8_t)PyLong_AsLong(PyTuple_GetItem(dtype, 1));
    void *managed = NULL, *tensor = NULL;
    if (known->api->allocate(&prototype, &managed, NULL, set_error))
        return NULL;
    return known->api->import_managed(managed, &tensor) ? NULL : tensor;
}
