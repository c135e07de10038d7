#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include "fixture.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

/* ------------------------------------------------------------------------------------------------------ the device */

static bool fixture_open(struct fixture *fixture) {
    clnorm_device_info_init(&fixture->device);
    if (clnorm_device_select(NULL, &fixture->device) != CLNORM_SUCCESS) {
        print_error("no device: %s\n", clnorm_error_detail());
        return false;
    }
    const clnorm_device_info *device = &fixture->device;
    print_message("device %u:%u %s, %s\n", device->platform_index, device->device_index, device->name,
                  device->platform_version);
    cl_int code;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    fixture->cl = clCreateContext(properties, 1, &device->device, NULL, NULL, &code);
    if (fixture->cl == NULL) {
        print_error("clCreateContext: %d\n", code);
        return false;
    }
    fixture->queue = clCreateCommandQueue(fixture->cl, device->device, 0, &code);
    if (fixture->queue == NULL) {
        print_error("clCreateCommandQueue: %d\n", code);
        return false;
    }
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    options.cache_dir = "";
    if (clnorm_context_create(fixture->cl, device->device, &options, &fixture->context) != CLNORM_SUCCESS) {
        print_error("clnorm_context_create: %s\n", clnorm_error_detail());
        return false;
    }
    return true;
}

static void fixture_close(struct fixture *fixture) {
    clnorm_context_destroy(fixture->context);
    if (fixture->queue != NULL)
        clReleaseCommandQueue(fixture->queue);
    if (fixture->cl != NULL)
        clReleaseContext(fixture->cl);
    free(fixture);
}

int fixture_setup(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL)
        return -1;
    if (!fixture_open(fixture)) {
        fixture_close(fixture);
        return -1;
    }
    *state = fixture;
    return 0;
}

int fixture_teardown(void **state) {
    if (*state) /* else the setup has failed */
        fixture_close(*state);
    return 0;
}

bool fixture_is_slow(const struct fixture *fixture) {
    return fixture->device.family == CLNORM_PLATFORM_OCLGRIND || fixture->device.family == CLNORM_PLATFORM_MESA;
}

bool fixture_is_quick(void) {
    const char *const quick = getenv("CLNORM_TEST_QUICK");
    return quick && *quick;
}

bool fixture_takes(size_t i) {
    enum { TAKEN = 3 }; /* one case of so many */
    return !fixture_is_quick() || (i + strtoul(getenv("CLNORM_TEST_QUICK"), NULL, 10)) % TAKEN == 0;
}

uint64_t fixture_element_limit(const struct fixture *fixture) {
    switch (fixture->device.family) {
    case CLNORM_PLATFORM_OCLGRIND:
        return 1U << 12;
    case CLNORM_PLATFORM_MESA: /* rusticl 22.3 ends loops after about 65,535 iterations in all */
        return 1U << 14;
    default:
        return 1U << 17;
    }
}

cl_command_queue_properties fixture_out_of_order(const struct fixture *fixture) {
    cl_command_queue_properties properties = 0;
    assert_int_equal(
        clGetDeviceInfo(fixture->device.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
        CL_SUCCESS);
    return properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
}

cl_command_queue fixture_queue(const struct fixture *fixture, cl_command_queue_properties properties) {
    cl_int code;
    const cl_command_queue queue = clCreateCommandQueue(fixture->cl, fixture->device.device, properties, &code);
    assert_int_equal(code, CL_SUCCESS);
    return queue;
}

cl_event fixture_gate(cl_context context) {
    cl_int code;
    const cl_event gate = clCreateUserEvent(context, &code);
    assert_int_equal(code, CL_SUCCESS);
    return gate;
}

cl_mem fixture_buffer(const struct fixture *fixture, cl_mem_flags flags, size_t bytes) {
    cl_int code;
    const cl_mem mem = clCreateBuffer(fixture->cl, flags, bytes, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return mem;
}

clnorm_config config_of(const char *text) {
    clnorm_config config;
    if (clnorm_config_parse(text ? text : "", &config) != CLNORM_SUCCESS)
        fail_msg("%s: %s", text, clnorm_error_detail());
    return config;
}

/* -------------------------------------------------------------------------------------------------- random numbers */

/* Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators". */
uint64_t random_next(struct random *random) {
    random->state += 0x9e3779b97f4a7c15U;
    uint64_t mixed = random->state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31;
}

uint64_t random_below(struct random *random, uint64_t limit) {
    return random_next(random) % limit;
}

double random_uniform(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

/* Box and Muller 1958. */
double random_normal(struct random *random) {
    const double radius = sqrt(-2 * log(1 - random_uniform(random)));
    return radius * cos(6.283185307179586 * random_uniform(random));
}

/* --------------------------------------------------------------------------------------------------------- tensors */

struct tensor tensor_make(clnorm_dtype dtype, uint64_t rows, uint64_t cols, uint64_t stride, uint64_t shift,
                          unsigned char surround) {
    struct tensor tensor = {0};
    if (dtype == CLNORM_DTYPE_NONE)
        return tensor;
    const size_t element = clnorm_dtype_size(dtype);
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.stride = stride;
    tensor.first = TENSOR_GUARD + shift * element;
    tensor.size = tensor.first + (rows ? (rows - 1) * stride + cols : 0) * element + TENSOR_GUARD;
    tensor.host = malloc(tensor.size);
    assert_non_null(tensor.host);
    memset(tensor.host, surround, tensor.size);
    for (uint64_t row = 0; row < rows; row++)
        memset(tensor.host + tensor.first + row * stride * element, TENSOR_NAN, cols * element);
    return tensor;
}

struct tensor tensor_of_weights(const clnorm_tensor *weights, uint64_t weight_rows, uint64_t cols, uint64_t shift,
                                unsigned char surround) {
    return tensor_make(weights->dtype, weight_rows ? weight_rows : 1, cols, weights->stride ? weights->stride : cols, shift,
                       surround);
}

struct tensor tensor_view(const struct tensor *input, clnorm_dtype dtype) {
    struct tensor view = *input;
    if (input->dtype == CLNORM_DTYPE_NONE)
        return view;
    view.dtype = dtype;
    view.host = malloc(input->size);
    assert_non_null(view.host);
    memcpy(view.host, input->host, input->size);
    return view;
}

void tensor_free(struct tensor *tensor) {
    free(tensor->host);
    if (tensor->mem != NULL)
        clReleaseMemObject(tensor->mem);
    *tensor = (struct tensor){0};
}

void *tensor_elements(const struct tensor *tensor) {
    return tensor->host ? tensor->host + tensor->first : NULL;
}

clnorm_buffer tensor_buffer(const struct tensor *tensor) {
    return (clnorm_buffer){tensor->mem, tensor->first};
}

struct ref_tensor tensor_operand(const struct tensor *tensor) {
    return (struct ref_tensor){.elements = tensor_elements(tensor), .dtype = tensor->dtype, .stride = tensor->stride};
}

void tensor_upload(const struct fixture *fixture, struct tensor *tensor) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return;
    if (tensor->mem == NULL) {
        if (fixture->device.family == CLNORM_PLATFORM_OCLGRIND)
            tensor->size -= TENSOR_GUARD; /* it reports accesses past the end of a buffer, reads too */
        tensor->mem = fixture_buffer(fixture, CL_MEM_READ_WRITE, tensor->size);
    }
    assert_int_equal(
        clEnqueueWriteBuffer(fixture->queue, tensor->mem, CL_TRUE, 0, tensor->size, tensor->host, 0, NULL, NULL),
        CL_SUCCESS);
}

void tensor_share(const struct fixture *fixture, struct tensor *input, struct tensor *output) {
    if (output->mem != NULL)
        return;
    tensor_upload(fixture, input);
    output->mem = input->mem;
    output->size = input->size;
    assert_int_equal(clRetainMemObject(output->mem), CL_SUCCESS);
}

bool tensor_holds(const struct tensor *tensor, const char *name, uint64_t row, uint64_t column, double expected,
                  double error) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return true;
    const double result = ref_load(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column);
    if (ref_within(tensor->dtype, result, (struct ref_value){expected, error}))
        return true;
    print_error("%s[%" PRIu64 ", %" PRIu64 "] is %.9g, but should be %.9g within %.3g\n", name, row, column, result,
                expected, error);
    return false;
}

static unsigned char *tensor_read(const struct fixture *fixture, const struct tensor *tensor) {
    unsigned char *held = malloc(tensor->size);
    assert_non_null(held);
    const cl_int code = clEnqueueReadBuffer(fixture->queue, tensor->mem, CL_TRUE, 0, tensor->size, held, 0, NULL, NULL);
    assert_int_equal(code, CL_SUCCESS);
    return held;
}

/* Compares bytes [begin, end) of held, a copy of the buffer, with host. */
static bool same_bytes(const struct tensor *tensor, const unsigned char *held, size_t begin, size_t end, const char *name) {
    if (begin >= end || memcmp(tensor->host + begin, held + begin, end - begin) == 0)
        return true;
    size_t at = begin;
    while (tensor->host[at] == held[at])
        at++;
    print_error("%s: byte %lld from its first element was changed from %02x to %02x\n", name,
                (long long)at - (long long)tensor->first, tensor->host[at], held[at]);
    return false;
}

bool tensor_unchanged(const struct fixture *fixture, const struct tensor *tensor, const char *name) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return true;
    unsigned char *held = tensor_read(fixture, tensor);
    const bool same = same_bytes(tensor, held, 0, tensor->size, name);
    free(held);
    return same;
}

bool tensor_equals(const struct tensor *tensor, const struct tensor *other) {
    return tensor->size == other->size && (tensor->size == 0 || memcmp(tensor->host, other->host, tensor->size) == 0);
}

bool tensor_receive(const struct fixture *fixture, struct tensor *tensor, const char *name) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return true;
    const size_t element = clnorm_dtype_size(tensor->dtype);
    unsigned char *held = tensor_read(fixture, tensor);
    bool same = true;
    size_t gap = 0; /* end of the previous row's elements */
    for (uint64_t row = 0; same && row < tensor->rows; row++) {
        const size_t begin = tensor->first + row * tensor->stride * element;
        same = same_bytes(tensor, held, gap, begin, name);
        gap = begin + tensor->cols * element;
    }
    same = same && same_bytes(tensor, held, gap, tensor->size, name);
    free(tensor->host);
    tensor->host = held;
    return same;
}

/* ---------------------------------------------------------------------------------------------------------- inputs */

const char *input_name(enum input input) {
    static const char *const names[INPUTS] = {"normal", "uniform", "exact", "spikes", "far", "wide", "constant"};
    return names[input];
}

/* Shuffled pairs around 2. The last element of an odd number is 2 itself. */
static void fill_exact(double *values, uint64_t n, struct random *random) {
    for (uint64_t i = 0; i < n; i++) {
        const double deviation = (double)(i / 2 % 2 + 1);
        values[i] = i == n - 1 && n % 2 == 1 ? 2 : i % 2 == 0 ? 2 + deviation : 2 - deviation;
    }
    for (uint64_t i = n; i > 1; i--) {
        const uint64_t other = random_below(random, i);
        const double value = values[i - 1];
        values[i - 1] = values[other];
        values[other] = value;
    }
}

static void fill_spikes(double *values, uint64_t n, struct random *random) {
    const double weight = 16 * sqrt((double)n);
    const uint64_t places[] = {0, n - 1, random_below(random, n), random_below(random, n)};
    for (uint64_t i = 0; i < n; i++)
        values[i] = random_normal(random);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        values[places[i]] = weight * (0.5 + random_uniform(random));
}

static double draw(enum input input, struct random *random) {
    switch (input) {
    case INPUT_UNIFORM:
        return random_uniform(random);
    case INPUT_FAR:
        return 1e4 + random_normal(random);
    case INPUT_WIDE:
        return random_normal(random) * exp2(24 * random_uniform(random) - 12);
    default:
        return random_normal(random);
    }
}

static void fill_segment(enum input input, double *values, uint64_t n, struct random *random) {
    if (input == INPUT_EXACT) {
        fill_exact(values, n, random);
        return;
    }
    if (input == INPUT_SPIKES) {
        fill_spikes(values, n, random);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        values[i] = input == INPUT_CONSTANT && i > 0 ? values[0] : draw(input, random);
}

void tensor_fill(struct tensor *tensor, enum input input, uint64_t group_size, uint64_t seed) {
    if (tensor->dtype == CLNORM_DTYPE_NONE)
        return;
    struct random random = {seed};
    double *values = malloc(group_size * sizeof *values);
    assert_non_null(values);
    for (uint64_t row = 0; row < tensor->rows; row++) {
        for (uint64_t column = 0; column < tensor->cols; column += group_size) {
            fill_segment(input, values, group_size, &random);
            for (uint64_t i = 0; i < group_size; i++)
                ref_store(tensor->dtype, tensor_elements(tensor), row * tensor->stride + column + i, values[i]);
        }
    }
    free(values);
}

void tensor_fill_row_scale(struct tensor *tensor) {
    static const double scales[] = {0, 1.25, -0.3, 1};
    for (uint64_t row = 0; tensor->dtype != CLNORM_DTYPE_NONE && row < tensor->cols; row++)
        ref_store(tensor->dtype, tensor_elements(tensor), row, scales[row % 4]);
}
