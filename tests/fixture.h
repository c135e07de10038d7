/* What tests of kernels stand on: a device, a context and a queue; tensors in buffers with canaries around them and
 * something that must survive in the gaps of their strides; seeded inputs. */
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

/* Group setup and teardown of cmocka: *state is a struct fixture on the device that clnorm_device_select(NULL) means, which
 * is printed. Nothing is kept on disk. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Devices that simulate, or whose loops end early, run fewer and smaller cases. */
bool fixture_is_slow(const struct fixture *fixture);

/* Whether this is the quick set of tools/test.sh, in which long sweeps run a part of their cases. */
bool fixture_is_quick(void);

/* Elements that a case of several rows may have on this device. */
uint64_t fixture_element_limit(const struct fixture *fixture);

/* CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE where the device has such queues, 0 where all of its queues keep the order. */
cl_command_queue_properties fixture_out_of_order(const struct fixture *fixture);

/* A queue of the fixture's device; ends the test when there is none to be had. */
cl_command_queue fixture_queue(const struct fixture *fixture, cl_command_queue_properties properties);

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
    clnorm_dtype dtype;          /* CLNORM_DTYPE_NONE: there is no tensor, and the functions below do nothing */
    uint64_t rows, cols, stride; /* elements */
    size_t first;                /* bytes before element (0, 0) */
    size_t size;                 /* bytes of the buffer */
    unsigned char *host;
    cl_mem mem;
};

/* Bytes of a guard: more than the widest access, and a multiple of it. */
enum { TENSOR_GUARD = 512 };

/* What stands where no element is. Around inputs these are NaNs, which no result survives that has read one. */
enum { TENSOR_NAN = 0xff, TENSOR_CANARY = 0xa5 };

/* Fills host with the byte surround, and elements with NaNs. shift: elements by which the first one is moved away from an
 * address that suits every vector. */
struct tensor tensor_make(clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t stride, uint64_t shift,
                          unsigned char surround);

/* One of [weight_rows, cols], as a descriptor has it; weight_rows 0: one row. */
struct tensor tensor_of_weights(const clnorm_tensor *weights, uint64_t weight_rows, uint64_t cols, uint64_t shift,
                                unsigned char surround);

/* An output over an input, before either is uploaded: the input's place and a copy of host, read as a dtype of the same
 * size. Absent where the input is. */
struct tensor tensor_view(const struct tensor *input, clnorm_dtype dtype);

void tensor_free(struct tensor *tensor);

/* Element (0, 0) in host memory; NULL where there is no tensor. */
void *tensor_elements(const struct tensor *tensor);
clnorm_buffer tensor_buffer(const struct tensor *tensor);

/* The elements as the reference reads them, without scales. */
struct ref_tensor tensor_operand(const struct tensor *tensor);

/* Makes the buffer where there is none yet, and writes host to it. */
void tensor_upload(const struct fixture *fixture, struct tensor *tensor);

/* Uploads an input whose buffer becomes that of an output too, unless that has one. */
void tensor_share(const struct fixture *fixture, struct tensor *input, struct tensor *output);

/* Whether an element in host memory is the expected number within an error. Prints what is wrong. An absent tensor holds
 * anything. */
bool tensor_holds(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                  double error);

/* Whether the buffer still holds what host does; prints the first difference. */
bool tensor_unchanged(const struct fixture *fixture, const struct tensor *tensor, const char *name);

/* Fetches the elements into host; whether nothing else changed, and the first difference is printed. */
bool tensor_receive(const struct fixture *fixture, struct tensor *tensor, const char *name);

/* ---------------------------------------------------------------------------------------------------------- inputs */

enum input {
    INPUT_NORMAL,  /* mean 0, deviation 1 */
    INPUT_UNIFORM, /* [0, 1) */
    INPUT_EXACT,   /* 2 and pairs 2 ± 1, 2 ± 2 in each segment: the mean is 2, and every partial sum is exact */
    /* From here on, sums of them are rounded one way more often than the other. */
    INPUT_SPIKES,   /* mean 0, deviation 1, but for the first, the last and two other elements that outweigh the rest */
    INPUT_FAR,      /* mean 10,000, deviation 1 */
    INPUT_WIDE,     /* magnitudes from 2^-12 to 2^12 */
    INPUT_CONSTANT, /* one value a segment */
    INPUTS
};

const char *input_name(enum input input);

/* Fills the elements; group_size is the length of the segments. */
void tensor_fill(struct tensor *tensor, enum input input, uint64_t group_size, uint64_t seed);

/* A factor for each row, in one row: rows that are left out, rows that are made up for, and others. */
void tensor_fill_row_scale(struct tensor *tensor);

#endif
