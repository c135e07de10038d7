/* DLPack's C exchange API, version 1: it describes a package's arrays without an object for each. These are the parts used
 * here of the specification, https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h. */
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

/* Its functions return 0, or another number after setting an error: `allocate` by its set_error, the others in Python. */
typedef struct {
    dlpack_header header;
    /* Allocates a tensor with the dtype, shape and device of a prototype; its strides are not read. */
    int (*allocate)(dlpack_tensor *prototype, void **managed, void *context, dlpack_set_error set_error);
    void (*export_managed)(void); /* not called here; its parameters are omitted */
    /* Makes a Python object, which then owns the managed tensor. */
    int (*import_managed)(void *managed, void **object);
    /* Describes a Python object of the API's type. Valid until the object changes or is freed. May be NULL. */
    int (*describe)(void *object, dlpack_tensor *tensor);
    void (*current_stream)(void); /* likewise */
} dlpack_exchange;

#endif
