/* Layer norm of a small matrix on the best OpenCL device: the shortest complete program.
 *
 *   ./example_forward */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3, COLS = 8 };

static const float input[ROWS][COLS] = {{1, 2, 3, 4, 5, 6, 7, 8}, {-1, 1, -1, 1, -1, 1, -1, 1}, {0, 0, 0, 0, 0, 0, 0, 100}};
static const float weights[COLS] = {1, 1, 1, 1, 2, 2, 2, 2};
static const float biases[COLS] = {0, 0, 0, 0, 0, 0, 0, 10};

/* Ends the program if a call of the library has failed. The detail names the field or argument. */
static void check(clnorm_status status, const char *call) {
    if (status == CLNORM_SUCCESS)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, clnorm_status_text(status), clnorm_error_detail());
    exit(1);
}

static void check_cl(cl_int error, const char *call) {
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: OpenCL error %d\n", call, (int)error);
    exit(1);
}

static cl_mem make_buffer(cl_context cl, cl_mem_flags flags, size_t size, const void *data) {
    cl_int error;
    cl_mem buffer = clCreateBuffer(cl, flags | (data ? CL_MEM_COPY_HOST_PTR : 0), size, (void *)data, &error);
    check_cl(error, "clCreateBuffer");
    return buffer;
}

/* The largest difference from layer norm in double. A NaN counts as infinite. */
static double largest_error(float y[ROWS][COLS]) {
    double largest = 0;
    for (int row = 0; row < ROWS; row++) {
        double mean = 0, variance = 0;
        for (int col = 0; col < COLS; col++)
            mean += (double)input[row][col] / COLS;
        for (int col = 0; col < COLS; col++)
            variance += pow(input[row][col] - mean, 2) / COLS;
        for (int col = 0; col < COLS; col++) {
            const double want = (input[row][col] - mean) / sqrt(variance + 1e-5) * weights[col] + biases[col];
            const double error = fabs(y[row][col] - want);
            largest = isnan(error) ? INFINITY : fmax(largest, error);
        }
    }
    return largest;
}

int main(void) {
    /* OpenCL's own objects: a device, a context, a queue and buffers. */
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    check(clnorm_device_select(NULL, &device), "clnorm_device_select");
    cl_int error;
    cl_context cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(cl, device.device, 0, &error);
    check_cl(error, "clCreateCommandQueue");
    cl_mem x = make_buffer(cl, CL_MEM_READ_ONLY, sizeof input, input);
    cl_mem weight = make_buffer(cl, CL_MEM_READ_ONLY, sizeof weights, weights);
    cl_mem bias = make_buffer(cl, CL_MEM_READ_ONLY, sizeof biases, biases);
    cl_mem y = make_buffer(cl, CL_MEM_WRITE_ONLY, sizeof input, NULL);

    /* The descriptor says what to compute. The plan compiles it for the device, and can be enqueued any number of times. */
    clnorm_context *context;
    check(clnorm_context_create(cl, device.device, NULL, &context), "clnorm_context_create");
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_LAYER_NORM;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.weight.dtype = CLNORM_F32;
    desc.bias.dtype = CLNORM_F32;
    clnorm_plan *plan;
    check(clnorm_norm_forward_plan_create(context, &desc, &plan), "clnorm_norm_forward_plan_create");

    /* The arguments are the tensors. The call does not wait; reading y in the same queue does. */
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = x;
    args.weight.mem = weight;
    args.bias.mem = bias;
    args.y.mem = y;
    check(clnorm_plan_enqueue(plan, queue, &args, 0, NULL, NULL), "clnorm_plan_enqueue");
    float result[ROWS][COLS];
    check_cl(clEnqueueReadBuffer(queue, y, CL_TRUE, 0, sizeof result, result, 0, NULL, NULL), "clEnqueueReadBuffer");

    for (int row = 0; row < ROWS; row++)
        for (int col = 0; col < COLS; col++)
            printf("%8.4f%s", result[row][col], col == COLS - 1 ? "\n" : " ");
    const double largest = largest_error(result);
    printf("%s, largest error %.2g\n", device.name, largest);

    clnorm_plan_destroy(plan);
    clnorm_context_destroy(context);
    clReleaseMemObject(y);
    clReleaseMemObject(bias);
    clReleaseMemObject(weight);
    clReleaseMemObject(x);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    return largest <= 1e-5 ? 0 : 1;
}
