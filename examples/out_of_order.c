/* An out-of-order queue: upload, RMS norm, GELU and download of two independent batches. Only events order the commands, so
 * that the batches can overlap. Each enqueue takes the events that it waits for and returns one.
 *
 *   ./example_out_of_order */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 2, ROWS = 32, COLS = 512 };

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

/* An out-of-order queue, or an in-order one where the device has no other: the program works on both. */
static cl_command_queue make_queue(cl_context cl, cl_device_id device) {
    cl_command_queue_properties properties = 0;
    check_cl(clGetDeviceInfo(device, CL_DEVICE_QUEUE_PROPERTIES, sizeof properties, &properties, NULL), "clGetDeviceInfo");
    cl_int error;
    cl_command_queue queue = clCreateCommandQueue(cl, device, properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    check_cl(error, "clCreateCommandQueue");
    return queue;
}

struct batch {
    float x[ROWS][COLS], y[ROWS][COLS];
    cl_mem x_mem, normal, y_mem;
    cl_event done; /* y is in host memory */
};

static cl_mem make_buffer(cl_context cl) {
    cl_int error;
    cl_mem buffer = clCreateBuffer(cl, CL_MEM_READ_WRITE, sizeof(float) * ROWS * COLS, NULL, &error);
    check_cl(error, "clCreateBuffer");
    return buffer;
}

/* Enqueues a batch from upload to download without waiting. */
static void enqueue(struct batch *batch, cl_command_queue queue, clnorm_plan *norm, clnorm_plan *gelu) {
    cl_event uploaded, normalised, activated;
    check_cl(clEnqueueWriteBuffer(queue, batch->x_mem, CL_FALSE, 0, sizeof batch->x, batch->x, 0, NULL, &uploaded),
             "clEnqueueWriteBuffer");

    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = batch->x_mem;
    args.y.mem = batch->normal;
    check(clnorm_plan_enqueue(norm, queue, &args, 1, &uploaded, &normalised), "norm");
    args.x.mem = batch->normal;
    args.y.mem = batch->y_mem;
    check(clnorm_plan_enqueue(gelu, queue, &args, 1, &normalised, &activated), "gelu");

    check_cl(clEnqueueReadBuffer(queue, batch->y_mem, CL_FALSE, 0, sizeof batch->y, batch->y, 1, &activated, &batch->done),
             "clEnqueueReadBuffer");
    clReleaseEvent(uploaded); /* enqueued commands keep their events */
    clReleaseEvent(normalised);
    clReleaseEvent(activated);
}

/* The largest difference from the formulas in double. A NaN counts as infinite. */
static double largest_error(const struct batch *batch) {
    double largest = 0;
    for (int row = 0; row < ROWS; row++) {
        const float *const x = batch->x[row];
        double squares = 0;
        for (int col = 0; col < COLS; col++)
            squares += (double)x[col] * x[col];
        for (int col = 0; col < COLS; col++) {
            const double normal = x[col] / sqrt(squares / COLS + 1e-5);
            const double want = normal / 2 * (1 + erf(normal / sqrt(2)));
            const double error = fabs(batch->y[row][col] - want);
            largest = isnan(error) ? INFINITY : fmax(largest, error);
        }
    }
    return largest;
}

int main(void) {
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    check(clnorm_device_select(NULL, &device), "clnorm_device_select");
    cl_int error;
    cl_context cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    cl_command_queue queue = make_queue(cl, device.device);

    clnorm_context *context;
    check(clnorm_context_create(cl, device.device, NULL, &context), "clnorm_context_create");
    clnorm_norm_desc norm_desc = CLNORM_NORM_DESC_INIT;
    norm_desc.norm = CLNORM_RMS_NORM;
    norm_desc.rows = ROWS;
    norm_desc.cols = COLS;
    clnorm_plan *norm, *gelu;
    check(clnorm_norm_forward_plan_create(context, &norm_desc, &norm), "clnorm_norm_forward_plan_create");
    clnorm_gelu_desc gelu_desc = CLNORM_GELU_DESC_INIT;
    gelu_desc.rows = ROWS;
    gelu_desc.cols = COLS;
    check(clnorm_gelu_forward_plan_create(context, &gelu_desc, &gelu), "clnorm_gelu_forward_plan_create");

    static struct batch batches[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        struct batch *const batch = &batches[i];
        for (int row = 0; row < ROWS; row++)
            for (int col = 0; col < COLS; col++)
                batch->x[row][col] = (float)(i + 1) * sinf((float)(row * COLS + col));
        batch->x_mem = make_buffer(cl);
        batch->normal = make_buffer(cl);
        batch->y_mem = make_buffer(cl);
        enqueue(batch, queue, norm, gelu);
    }
    check_cl(clFlush(queue), "clFlush");

    double largest = 0;
    for (int i = 0; i < BATCHES; i++) {
        struct batch *const batch = &batches[i];
        check_cl(clWaitForEvents(1, &batch->done), "clWaitForEvents");
        const double batch_error = largest_error(batch);
        printf("batch %d: largest error %.2g\n", i, batch_error);
        largest = fmax(largest, batch_error);
        clReleaseEvent(batch->done);
        clReleaseMemObject(batch->x_mem);
        clReleaseMemObject(batch->normal);
        clReleaseMemObject(batch->y_mem);
    }
    clnorm_plan_destroy(gelu);
    clnorm_plan_destroy(norm);
    clnorm_context_destroy(context);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    return largest <= 1e-5 ? 0 : 1;
}
