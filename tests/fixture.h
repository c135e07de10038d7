/* Common parts of the tests of kernels: a device with a context and a queue, seeded inputs, and tensors in buffers. Guard
 * bytes surround each tensor and fill the gaps of its strides; kernels must leave them unchanged. */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include "clnorm/clnorm.h"
#include "reference/tensor.h"

/* ------------------------------------------------------------------------------------------------------ the device */

struct fixture {
    clnorm_device_info device;
    cl_context cl;
    cl_command_queue queue; /* in-order */
    clnorm_context *context;
};

/* Group setup and teardown of cmocka: *state is a struct fixture on the device that clnorm_device_select(NULL) chooses,
 * whose name is printed. No program is cached on disk. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Whether the device is a simulator, or ends long loops early. Tests run fewer and smaller cases on it. */
bool fixture_is_slow(const struct fixture *fixture);

/* Whether this is the quick set of tools/test.sh, in which long sweeps run a part of their cases. */
bool fixture_is_quick(void);

/* Whether the i-th of a list of cases runs: in a quick set one in three. The value of CLNORM_TEST_QUICK says which: other
 * implementations run other thirds. */
bool fixture_takes(size_t i);

/* Largest number of elements of a case of several rows on this device. */
uint64_t fixture_element_limit(const struct fixture *fixture);

/* CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE where the device has such queues, 0 where all of its queues are in-order. */
cl_command_queue_properties fixture_out_of_order(const struct fixture *fixture);

/* Makes a queue on the fixture's device; ends the test on failure. */
cl_command_queue fixture_queue(const struct fixture *fixture, cl_command_queue_properties properties);

/* Makes a user event that nobody has completed; ends the test on failure. */
cl_event fixture_gate(cl_context context);

/* A buffer that a kernel may access as flags say. */
cl_mem fixture_buffer(const struct fixture *fixture, cl_mem_flags flags, size_t bytes);

/* The config that a text describes, the automatic one for NULL; ends the test where the text is wrong. */
clnorm_config config_of(const char *text);

/* -------------------------------------------------------------------------------------------------- random numbers */

struct random {
    uint64_t state;
};

uint64_t random_next(struct random *random);
uint64_t random_below(struct random *random, uint64_t limit);
double random_uniform(struct random *random); /* [0, 1) */
double random_normal(struct random *random);

/* --------------------------------------------------------------------------------------------------------- tensors */

/* A matrix in a buffer of its own: a guard, rows of cols elements a stride apart, a guard. host mirrors the buffer. */
struct tensor {
    clnorm_dtype dtype;          /* CLNORM_DTYPE_NONE: absent; the functions below do nothing */
    uint64_t rows, cols, stride; /* elements */
    size_t first;                /* bytes before element (0, 0) */
    size_t size;                 /* bytes of the buffer */
    unsigned char *host;
    cl_mem mem;
};

/* Bytes of a guard: more than the widest access, and a multiple of it. */
enum { TENSOR_GUARD = 512 };

/* Bytes outside of the elements. Around inputs they are NaNs, so that a kernel that reads one writes a NaN. */
enum { TENSOR_NAN = 0xff, TENSOR_CANARY = 0xa5 };

/* Fills host with the byte surround, and the elements with NaNs. shift: distance, in elements, of the first one from an
 * address that is aligned for every vector. */
struct tensor tensor_make(clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t stride, uint64_t shift,
                          unsigned char surround);

/* A tensor of [weight_rows, cols] with the dtype and stride of a descriptor's weights. weight_rows 0: one row. */
struct tensor tensor_of_weights(const clnorm_tensor *weights, uint64_t weight_rows, uint64_t cols, uint64_t shift,
                                unsigned char surround);

/* An output over an input: the same place, and a copy of host that is read as a dtype of the same size. Neither may be
 * uploaded before. Absent where the input is. */
struct tensor tensor_view(const struct tensor *input, clnorm_dtype dtype);

void tensor_free(struct tensor *tensor);

/* Element (0, 0) in host memory; NULL for an absent tensor. */
void *tensor_elements(const struct tensor *tensor);
clnorm_buffer tensor_buffer(const struct tensor *tensor);

/* The elements as the reference reads them, without scales. */
struct ref_tensor tensor_operand(const struct tensor *tensor);

/* Makes the buffer on the first call, and writes host to it. */
void tensor_upload(const struct fixture *fixture, struct tensor *tensor);

/* Uploads an input and makes its buffer the output's too, unless the output has a buffer. */
void tensor_share(const struct fixture *fixture, struct tensor *input, struct tensor *output);

/* Whether an element in host memory equals the expected number within an error; prints one that does not. True for an
 * absent tensor. */
bool tensor_holds(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                  double error);

/* Whether the buffer still equals host; prints the first difference. */
bool tensor_unchanged(const struct fixture *fixture, const struct tensor *tensor, const char *name);

/* Whether two buffers have the same bytes in host memory, with those outside of the elements. Two absent ones do. */
bool tensor_equals(const struct tensor *tensor, const struct tensor *other);

/* Reads the buffer into host. Returns whether guards and gaps are unchanged; prints the first difference. */
bool tensor_receive(const struct fixture *fixture, struct tensor *tensor, const char *name);

/* ---------------------------------------------------------------------------------------------------------- inputs */

enum input {
    INPUT_NORMAL,  /* mean 0, deviation 1 */
    INPUT_UNIFORM, /* [0, 1) */
    INPUT_EXACT,   /* 2 and pairs 2 ± 1, 2 ± 2 in each segment: the mean is 2, and every partial sum is exact */
    /* The roundings of sums of the inputs below add up in one direction. */
    INPUT_SPIKES,   /* mean 0, deviation 1, except the first, the last and two others, which outweigh the rest */
    INPUT_FAR,      /* mean 10,000, deviation 1 */
    INPUT_WIDE,     /* magnitudes from 2^-12 to 2^12 */
    INPUT_CONSTANT, /* one value a segment */
    INPUTS
};

const char *input_name(enum input input);

/* Fills the elements; group_size is the length of the segments. */
void tensor_fill(struct tensor *tensor, enum input input, uint64_t group_size, uint64_t seed);

/* Fills a tensor of one row with a factor for each row of a matrix: 0, above 1, negative, and 1. */
void tensor_fill_row_scale(struct tensor *tensor);

#endif
