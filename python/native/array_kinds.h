/* The arrays of repeated calls: NumPy's, and PyTorch's tensors by DLPack's C exchange API. */
#ifndef CLN_PYTHON_ARRAY_KINDS_H
#define CLN_PYTHON_ARRAY_KINDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "host.h"

enum { MOST_ARRAYS = CLN_MOST_TENSORS, MOST_DIMS = 8, MOST_OPTIONS = 64 };

/* The layouts of a call's arrays and the types of its options, as words that identify them, and the arrays' addresses. */
struct arrays {
    uint64_t word[MOST_ARRAYS * (3 + 2 * MOST_DIMS) + MOST_OPTIONS];
    unsigned words, count;
    uintptr_t address[MOST_ARRAYS];
};

/* Finds NumPy's array type. False: a Python error is set. */
bool cln_start_kinds(void);

/* Adds a type of PyTorch's tensors. capsule: its __dlpack_c_exchange_api__. is_grad_enabled: PyTorch's function.
 * note_write: called with a tensor that was written. False: the API cannot be used, or a Python error is set. */
bool cln_add_tensor_type(PyObject *type, PyObject *capsule, PyObject *is_grad_enabled, PyObject *note_write);

/* Appends an array. Returns false, without an error, where Python has to process the call: the array is of another type or
 * a subclass, in other memory, or has to be refused. */
bool cln_add_array(struct arrays *arrays, PyObject *object);

/* As cln_add_array, for an array that the call writes. */
bool cln_add_output(struct arrays *arrays, PyObject *object);

/* Tells the package of an array that the array was written. False: a Python error is set. */
bool cln_note_write(PyObject *object);

/* A new array of a type that cln_add_tensor_type has added, allocated by its package. shape: a tuple. dtype: DLPack's code
 * and bits. Returns a new reference, or NULL with a Python error. */
PyObject *cln_make_tensor(PyObject *type, PyObject *shape, PyObject *dtype);

#endif
