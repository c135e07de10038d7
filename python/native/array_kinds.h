/* The arrays that repeated calls are made on: NumPy's, and PyTorch's tensors, by DLPack's C exchange API. */
#ifndef CLN_PYTHON_ARRAY_KINDS_H
#define CLN_PYTHON_ARRAY_KINDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "host.h"

enum { MOST_ARRAYS = CLN_MOST_TENSORS, MOST_DIMS = 8, MOST_OPTIONS = 64 };

/* How the arrays of a call lie, in words that differ where that does, and where. There is room for the types of options. */
struct arrays {
    uint64_t word[MOST_ARRAYS * (3 + 2 * MOST_DIMS) + MOST_OPTIONS];
    unsigned words, count;
    uintptr_t address[MOST_ARRAYS];
};

/* Looks NumPy up. False: a Python error is set. */
bool cln_start_kinds(void);

/* Knows a type of PyTorch's tensors from now on. capsule: its __dlpack_c_exchange_api__. is_grad_enabled: PyTorch's.
 * note_write: is called with a tensor that is about to be written. False: the API cannot be used, or a Python error is
 * set. */
bool cln_add_tensor_type(PyObject *type, PyObject *capsule, PyObject *is_grad_enabled, PyObject *note_write);

/* Returns false, without an error, for what the long way has to see: an array of another type or of a subclass, in other
 * memory, or one that has to be refused. */
bool cln_add_array(struct arrays *arrays, PyObject *object);

/* As cln_add_array, of an array that is to be written. */
bool cln_add_output(struct arrays *arrays, PyObject *object);

/* A new array of a type that cln_add_tensor_type knows, as that package makes its own. shape: a tuple. dtype: DLPack's code
 * and bits. Returns a new reference, or NULL with a Python error. */
PyObject *cln_make_tensor(PyObject *type, PyObject *shape, PyObject *dtype);

#endif
