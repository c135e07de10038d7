/* DLPack's C exchange API, version 1: what a package says of its arrays without making an object for each. Declared from
 * the specification, https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h, as far as it is used here. */
#ifndef CLN_PYTHON_DLPACK_EXCHANGE_H
#define CLN_PYTHON_DLPACK_EXCHANGE_H

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_CPU = 1 };

typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits; /* of the dtype */
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in elements */
    uint64_t byte_offset;     /* of the first element, from data */
} dlpack_tensor;

typedef struct dlpack_header {
    uint32_t major, minor;
    struct dlpack_header *older; /* of another major version, or NULL */
} dlpack_header;

typedef void (*dlpack_set_error)(void *context, const char *kind, const char *message);

/* Its functions return 0, or have set an error: the first by the function that it is given, the others in Python. */
typedef struct {
    dlpack_header header;
    /* Allocates a tensor like a prototype, of which dtype, shape and device count; strides are not read. */
    int (*allocate)(dlpack_tensor *prototype, void **managed, void *context, dlpack_set_error set_error);
    void (*export_managed)(void); /* is not called, and has other parameters */
    /* Makes a Python object, which owns the managed tensor from then on. */
    int (*import_managed)(void *managed, void **object);
    /* Describes a Python object of the API's type, until that changes or goes. May be NULL. */
    int (*describe)(void *object, dlpack_tensor *tensor);
    void (*current_stream)(void); /* likewise not called */
} dlpack_exchange;

#endif
