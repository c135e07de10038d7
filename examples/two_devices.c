/* Layer norm, forward and backward, of a matrix whose rows are split between two OpenCL devices of one process. The devices
 * work at the same time; dweight and dbias are the sums of theirs. The result is compared with that of one device alone.
 *
 *   cc two_devices.c $(pkg-config --cflags --libs clnorm) -lm -o example_two_devices
 *   ./example_two_devices                                        the best two devices
 *   POCL_DEVICES="basic basic" ./example_two_devices             two of PoCL's, on any CPU
 *
 * Exit status: 0, the largest difference is 1e-5 or less; 1, it is larger, or a call failed; 77, there are no two devices.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 301, COLS = 768, SIZE = ROWS * COLS };

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

/* The matrices, in host memory. */
struct matrices {
    float x[SIZE], dy[SIZE], weight[COLS], bias[COLS];   /* in */
    float y[SIZE], dx[SIZE], dweight[COLS], dbias[COLS]; /* out */
};

/* A device and its rows. Devices of different platforms cannot share a cl_context, so each has its own. */
struct worker {
    size_t first, rows;
    cl_context cl;
    cl_command_queue queue;
    clnorm_context *context;
    cl_mem x, dy, weight, bias, mean, rstd;
    cl_mem y, dx, dweight, dbias;
};

static cl_mem make_buffer(const struct worker *worker, size_t floats, const float *data) {
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0);
    cl_int error;
    cl_mem buffer = clCreateBuffer(worker->cl, flags, floats * sizeof *data, (void *)data, &error);
    check_cl(error, "clCreateBuffer");
    return buffer;
}

static struct worker start_worker(cl_device_id device, const struct matrices *all, size_t first, size_t rows) {
    struct worker worker = {.first = first, .rows = rows};
    cl_int error;
    worker.cl = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    worker.queue = clCreateCommandQueue(worker.cl, device, 0, &error);
    check_cl(error, "clCreateCommandQueue");
    check(clnorm_context_create(worker.cl, device, NULL, &worker.context), "clnorm_context_create");
    worker.x = make_buffer(&worker, rows * COLS, all->x + first * COLS);
    worker.dy = make_buffer(&worker, rows * COLS, all->dy + first * COLS);
    worker.weight = make_buffer(&worker, COLS, all->weight);
    worker.bias = make_buffer(&worker, COLS, all->bias);
    worker.mean = make_buffer(&worker, rows, NULL);
    worker.rstd = make_buffer(&worker, rows, NULL);
    worker.y = make_buffer(&worker, rows * COLS, NULL);
    worker.dx = make_buffer(&worker, rows * COLS, NULL);
    worker.dweight = make_buffer(&worker, COLS, NULL);
    worker.dbias = make_buffer(&worker, COLS, NULL);
    return worker;
}

/* Enqueues both directions without waiting. */
static void enqueue(const struct worker *worker) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.rows = worker->rows;
    forward.cols = COLS;
    forward.weight.dtype = forward.bias.dtype = CLNORM_F32;
    forward.save_mean = forward.save_rstd = 1;
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = worker->x;
    args.weight.mem = worker->weight;
    args.bias.mem = worker->bias;
    args.mean.mem = worker->mean;
    args.rstd.mem = worker->rstd;
    args.y.mem = worker->y;
    check(clnorm_norm_forward(worker->context, worker->queue, &forward, &args, 0, NULL, NULL), "clnorm_norm_forward");

    clnorm_norm_backward_desc backward = CLNORM_NORM_BACKWARD_DESC_INIT;
    backward.rows = worker->rows;
    backward.cols = COLS;
    backward.weight.dtype = backward.dx.dtype = backward.dweight.dtype = backward.dbias.dtype = CLNORM_F32;
    backward.mean_given = backward.rstd_given = 1;
    clnorm_args gradients = CLNORM_ARGS_INIT;
    gradients.x.mem = worker->x;
    gradients.dy.mem = worker->dy;
    gradients.weight.mem = worker->weight;
    gradients.mean.mem = worker->mean;
    gradients.rstd.mem = worker->rstd;
    gradients.dx.mem = worker->dx;
    gradients.dweight.mem = worker->dweight;
    gradients.dbias.mem = worker->dbias;
    check(clnorm_norm_backward(worker->context, worker->queue, &backward, &gradients, 0, NULL, NULL),
          "clnorm_norm_backward");
    check_cl(clFlush(worker->queue), "clFlush");
}

static void read_back(const struct worker *worker, cl_mem buffer, size_t floats, float *data) {
    check_cl(clEnqueueReadBuffer(worker->queue, buffer, CL_TRUE, 0, floats * sizeof *data, data, 0, NULL, NULL),
             "clEnqueueReadBuffer");
}

/* Waits, copies the rows to their place, and adds up dweight and dbias. */
static void collect(const struct worker *worker, struct matrices *all) {
    float dweight[COLS], dbias[COLS];
    read_back(worker, worker->y, worker->rows * COLS, all->y + worker->first * COLS);
    read_back(worker, worker->dx, worker->rows * COLS, all->dx + worker->first * COLS);
    read_back(worker, worker->dweight, COLS, dweight);
    read_back(worker, worker->dbias, COLS, dbias);
    for (int col = 0; col < COLS; col++) {
        all->dweight[col] += dweight[col];
        all->dbias[col] += dbias[col];
    }
}

static void stop_worker(struct worker *worker) {
    const cl_mem buffers[] = {worker->x,    worker->dy, worker->weight, worker->bias,    worker->mean,
                              worker->rstd, worker->y,  worker->dx,     worker->dweight, worker->dbias};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        clReleaseMemObject(buffers[i]);
    clnorm_context_destroy(worker->context);
    clReleaseCommandQueue(worker->queue);
    clReleaseContext(worker->cl);
}

/* Runs on the first count devices. */
static void run(const cl_device_id *devices, size_t count, struct matrices *all) {
    struct worker workers[2];
    for (size_t i = 0; i < count; i++) {
        const size_t first = ROWS * i / count, end = ROWS * (i + 1) / count;
        workers[i] = start_worker(devices[i], all, first, end - first);
    }
    for (size_t i = 0; i < count; i++)
        enqueue(&workers[i]);
    for (size_t i = 0; i < count; i++) {
        collect(&workers[i], all);
        stop_worker(&workers[i]);
    }
}

/* The largest relative difference, or largest. A NaN counts as infinite. */
static double difference(const float *got, const float *want, int count, double largest) {
    for (int i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - want[i]) / (1 + fabs((double)want[i]));
        largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    return largest;
}

static void fill(struct matrices *all) {
    for (int i = 0; i < SIZE; i++) {
        all->x[i] = 3 + sinf((float)i * 0.7f);
        all->dy[i] = cosf((float)i * 1.3f);
    }
    for (int col = 0; col < COLS; col++) {
        all->weight[col] = 1 + 0.001f * (float)col;
        all->bias[col] = 0.01f * (float)(col % 7);
    }
}

int main(void) {
    static struct matrices one, two;
    enum { MOST = 16 };
    cl_device_id devices[MOST];
    size_t count = 0;
    check(clnorm_device_list(devices, MOST, &count), "clnorm_device_list");
    if (count < 2) {
        fprintf(stderr, "%zu OpenCL devices found: expected 2; POCL_DEVICES=\"basic basic\" makes 2 of PoCL\n", count);
        return 77;
    }
    for (int i = 0; i < 2; i++) {
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        check(clnorm_device_describe(devices[i], &info), "clnorm_device_describe");
        printf("device %d: %s\n", i, info.name);
    }
    fill(&one);
    fill(&two);
    run(devices, 1, &one);
    run(devices, 2, &two);
    double largest = difference(two.y, one.y, SIZE, 0);
    largest = difference(two.dx, one.dx, SIZE, largest);
    largest = difference(two.dweight, one.dweight, COLS, largest);
    largest = difference(two.dbias, one.dbias, COLS, largest);
    printf("largest difference between two devices and one: %.2g\n", largest);
    return largest <= 1e-5 ? 0 : 1;
}
