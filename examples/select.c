/* Lists the OpenCL devices, selects one, and quantises a matrix to FP8 and back on it in two calls.
 *
 *   ./example_select                         the best device
 *   ./example_select 'gpu,memory>=8G;cpu'    a GPU with 8 GiB, else a CPU; clnorm/device.h describes selectors */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, COLS = 256, SIZE = ROWS * COLS, GROUP = 64 };

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

static void list_devices(void) {
    enum { MOST = 64 };
    cl_device_id devices[MOST];
    size_t count = 0;
    check(clnorm_device_list(devices, MOST, &count), "clnorm_device_list");
    for (size_t i = 0; i < count && i < MOST; i++) {
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        check(clnorm_device_describe(devices[i], &info), "clnorm_device_describe");
        printf("%u:%u  %s, %u compute units, %.1f GiB (%s)\n", info.platform_index, info.device_index, info.name,
               info.compute_units, (double)info.global_memory / (1 << 30), info.platform_name);
    }
}

static cl_mem make_buffer(cl_context cl, size_t size) {
    cl_int error;
    cl_mem buffer = clCreateBuffer(cl, CL_MEM_READ_WRITE, size, NULL, &error);
    check_cl(error, "clCreateBuffer");
    return buffer;
}

/* Quantises x to F8_E4M3 with a scale for each GROUP columns, and back, by the one-call forms. */
static void round_trip(clnorm_context *context, cl_context cl, cl_command_queue queue, const float *x, float *back) {
    cl_mem x_mem = make_buffer(cl, SIZE * sizeof(float)), q = make_buffer(cl, SIZE),
           scale = make_buffer(cl, SIZE / GROUP * sizeof(float));
    check_cl(clEnqueueWriteBuffer(queue, x_mem, CL_TRUE, 0, SIZE * sizeof(float), x, 0, NULL, NULL),
             "clEnqueueWriteBuffer");

    clnorm_quantize_desc quantize = CLNORM_QUANTIZE_DESC_INIT;
    quantize.rows = ROWS;
    quantize.cols = COLS;
    quantize.q.scaling = CLNORM_SCALING_GROUP;
    quantize.q.scale_group = GROUP;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = x_mem;
    args.q.mem = q;
    args.scale.mem = scale;
    check(clnorm_quantize(context, queue, &quantize, &args, 0, NULL, NULL), "clnorm_quantize");

    clnorm_dequantize_desc dequantize = CLNORM_DEQUANTIZE_DESC_INIT;
    dequantize.rows = ROWS;
    dequantize.cols = COLS;
    dequantize.q.scaling = CLNORM_SCALING_GROUP;
    dequantize.q.scale_group = GROUP;
    check(clnorm_dequantize(context, queue, &dequantize, &args, 0, NULL, NULL), "clnorm_dequantize");
    check_cl(clEnqueueReadBuffer(queue, x_mem, CL_TRUE, 0, SIZE * sizeof(float), back, 0, NULL, NULL),
             "clEnqueueReadBuffer");
    clReleaseMemObject(x_mem);
    clReleaseMemObject(q);
    clReleaseMemObject(scale);
}

/* The largest error of the round trip over the rounding error of F8_E4M3: half of 2^-3 of the element, or half of the
 * smallest step, 2^-9, times the scale, max / 448. A NaN counts as infinite. */
static double largest_error(const float *x, const float *back) {
    double largest = 0;
    for (int first = 0; first < SIZE; first += GROUP) {
        double most = 0;
        for (int i = first; i < first + GROUP; i++)
            most = fmax(most, fabs((double)x[i]));
        for (int i = first; i < first + GROUP; i++) {
            const double allowed = fmax(fabs((double)x[i]) / 16, most / 448 / 1024);
            const double error = fabs((double)x[i] - (double)back[i]) / allowed;
            largest = isnan(error) ? INFINITY : fmax(largest, error);
        }
    }
    return largest;
}

int main(int argc, char **argv) {
    list_devices();
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    check(clnorm_device_select(argc > 1 ? argv[1] : NULL, &device), "clnorm_device_select");
    printf("selected %u:%u\n", device.platform_index, device.device_index);

    cl_int error;
    cl_context cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    cl_command_queue queue = clCreateCommandQueue(cl, device.device, 0, &error);
    check_cl(error, "clCreateCommandQueue");
    clnorm_context *context;
    check(clnorm_context_create(cl, device.device, NULL, &context), "clnorm_context_create");

    static float x[SIZE], back[SIZE];
    for (int i = 0; i < SIZE; i++)
        x[i] = 100 * sinf((float)i);
    round_trip(context, cl, queue, x, back);
    const double largest = largest_error(x, back);
    printf("largest error %.3f of what F8_E4M3 allows\n", largest);

    clnorm_context_destroy(context);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    return largest > 0 && largest <= 1.0001 ? 0 : 1;
}
