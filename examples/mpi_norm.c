/* Layer norm and RMS norm, forward and backward, of a matrix that is split among MPI processes in two ways:
 *
 *   columns   each has a slice of the columns. They exchange three numbers a row forward, and two backward.
 *   rows      each has some of the rows. They exchange dweight and dbias, a number a column.
 *
 * Every process also computes all of it alone, and compares its part.
 *
 *   mpicc mpi_norm.c $(pkg-config --cflags --libs clnorm) -lm -o example_mpi_norm
 *   mpirun -n 4 ./example_mpi_norm
 *
 * A process takes the device that CLNORM_DEVICE selects, or the best one. With several GPUs in a host each process takes
 * one of its own, with Open MPI by
 *
 *   mpirun -n 4 sh -c 'CLNORM_DEVICE=0:$OMPI_COMM_WORLD_LOCAL_RANK ./example_mpi_norm'
 *
 * Exit status: 0, the largest difference is 1e-5 or less; 1, it is larger, or a call failed; 2, too many processes. */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 61, COLS = 1003, SIZE = ROWS * COLS };
static const double eps = 1e-5;

static void check(clnorm_status status, const char *call) {
    if (status == CLNORM_SUCCESS)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, clnorm_status_text(status), clnorm_error_detail());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_cl(cl_int error, const char *call) {
    if (error == CL_SUCCESS)
        return;
    fprintf(stderr, "%s: OpenCL error %d\n", call, (int)error);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ----------------------------------------------------------------------------------------------------------- a device */

struct device {
    cl_context cl;
    cl_command_queue queue;
    clnorm_context *context;
};

static struct device open_device(void) {
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    struct device device = {NULL, NULL, NULL};
    cl_int error;
    check(clnorm_device_select(NULL, &info), "clnorm_device_select");
    device.cl = clCreateContext(NULL, 1, &info.device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    device.queue = clCreateCommandQueue(device.cl, info.device, 0, &error);
    check_cl(error, "clCreateCommandQueue");
    check(clnorm_context_create(device.cl, info.device, NULL, &device.context), "clnorm_context_create");
    return device;
}

static void close_device(struct device *device) {
    clnorm_context_destroy(device->context);
    clReleaseCommandQueue(device->queue);
    clReleaseContext(device->cl);
}

/* data: NULL for an output. */
static clnorm_buffer make_buffer(const struct device *device, size_t floats, const float *data) {
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0);
    cl_int error;
    const clnorm_buffer buffer = {
        clCreateBuffer(device->cl, flags, (floats ? floats : 1) * sizeof *data, (void *)data, &error), 0};
    check_cl(error, "clCreateBuffer");
    return buffer;
}

static void read_floats(const struct device *device, clnorm_buffer buffer, size_t floats, float *data) {
    if (floats)
        check_cl(clEnqueueReadBuffer(device->queue, buffer.mem, CL_TRUE, 0, floats * sizeof *data, data, 0, NULL, NULL),
                 "clEnqueueReadBuffer");
}

static void write_floats(const struct device *device, clnorm_buffer buffer, size_t floats, const float *data) {
    if (floats)
        check_cl(clEnqueueWriteBuffer(device->queue, buffer.mem, CL_TRUE, 0, floats * sizeof *data, data, 0, NULL, NULL),
                 "clEnqueueWriteBuffer");
}

/* ------------------------------------------------------------------------------------------------------- the matrices */

/* A part of the matrices: contiguous [rows, cols], and [cols]. */
struct part {
    int rows, cols;
    float x[SIZE], dy[SIZE], weight[COLS], bias[COLS];   /* in */
    float y[SIZE], dx[SIZE], dweight[COLS], dbias[COLS]; /* out */
};

/* Fills a part that begins at first_row and first_col. */
static void fill_part(struct part *part, int first_row, int rows, int first_col, int cols) {
    part->rows = rows;
    part->cols = cols;
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++) {
            const int i = (first_row + row) * COLS + first_col + col;
            part->x[row * cols + col] = 5 + sinf((float)i * 0.7f); /* the mean is far from 0 */
            part->dy[row * cols + col] = cosf((float)i * 1.3f);
        }
    for (int col = 0; col < cols; col++) {
        part->weight[col] = 1 + 0.001f * (float)(first_col + col);
        part->bias[col] = 0.01f * (float)((first_col + col) % 7);
    }
}

/* The items of a process: from first to before end. */
static void share_of(int items, int rank, int ranks, int *first, int *end) {
    *first = (int)((long long)items * rank / ranks);
    *end = (int)((long long)items * (rank + 1) / ranks);
}

static void make_inputs(const struct device *device, const struct part *part, clnorm_args *args) {
    const size_t size = (size_t)part->rows * (size_t)part->cols, cols = (size_t)part->cols;
    *args = (clnorm_args)CLNORM_ARGS_INIT;
    args->x = make_buffer(device, size, part->x);
    args->dy = make_buffer(device, size, part->dy);
    args->weight = make_buffer(device, cols, part->weight);
    args->bias = make_buffer(device, cols, part->bias);
    args->y = make_buffer(device, size, NULL);
    args->dx = make_buffer(device, size, NULL);
    args->dweight = make_buffer(device, cols, NULL);
    args->dbias = make_buffer(device, cols, NULL);
}

static void take_outputs(const struct device *device, const clnorm_args *args, struct part *part) {
    const size_t size = (size_t)part->rows * (size_t)part->cols, cols = (size_t)part->cols;
    read_floats(device, args->y, size, part->y);
    read_floats(device, args->dx, size, part->dx);
    read_floats(device, args->dweight, cols, part->dweight);
    read_floats(device, args->dbias, cols, part->dbias);
    const clnorm_buffer all[] = {args->x, args->dy, args->weight,  args->bias,
                                 args->y, args->dx, args->dweight, args->dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        clReleaseMemObject(all[i].mem);
}

/* ---------------------------------------------------------------------------------------------- whole rows, by norm.h */

static void run_whole_rows(const struct device *device, clnorm_norm norm, struct part *part) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.norm = norm;
    forward.rows = (uint64_t)part->rows;
    forward.cols = (uint64_t)part->cols;
    forward.weight.dtype = forward.bias.dtype = CLNORM_F32;
    forward.eps = eps;
    clnorm_norm_backward_desc backward = CLNORM_NORM_BACKWARD_DESC_INIT;
    backward.norm = norm;
    backward.rows = forward.rows;
    backward.cols = forward.cols;
    backward.weight.dtype = CLNORM_F32;
    backward.dx.dtype = backward.dweight.dtype = backward.dbias.dtype = CLNORM_F32;
    backward.eps = eps;

    clnorm_args all, args = CLNORM_ARGS_INIT, gradients = CLNORM_ARGS_INIT;
    make_inputs(device, part, &all);
    args.x = gradients.x = all.x;
    args.weight = gradients.weight = all.weight;
    args.bias = all.bias;
    args.y = all.y;
    gradients.dy = all.dy;
    gradients.dx = all.dx;
    gradients.dweight = all.dweight;
    gradients.dbias = all.dbias;
    check(clnorm_norm_forward(device->context, device->queue, &forward, &args, 0, NULL, NULL), "clnorm_norm_forward");
    check(clnorm_norm_backward(device->context, device->queue, &backward, &gradients, 0, NULL, NULL),
          "clnorm_norm_backward");
    take_outputs(device, &all, part);
}

/* ------------------------------------------------------------------------------------------------- slices of columns */

/* An MPI_User_function: its parameters must not be const. */
static void merge(void *from, void *into, int *length, MPI_Datatype *type) { /* NOLINT(readability-non-const-parameter) */
    (void)type;
    check(clnorm_moments_merge(CLNORM_F32, into, from, (uint64_t)*length), "clnorm_moments_merge");
}

/* Merges the moments of all processes' slices into those of whole rows. */
static void exchange_moments(const struct device *device, clnorm_buffer buffer) {
    float moments[ROWS][3];
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(3, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(merge, 1, &op);
    read_floats(device, buffer, sizeof moments / sizeof(float), moments[0]);
    MPI_Allreduce(MPI_IN_PLACE, moments, ROWS, type, op, MPI_COMM_WORLD);
    write_floats(device, buffer, sizeof moments / sizeof(float), moments[0]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

static void exchange_sums(const struct device *device, clnorm_buffer buffer) {
    float sums[ROWS][2];
    read_floats(device, buffer, sizeof sums / sizeof(float), sums[0]);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2 * ROWS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    write_floats(device, buffer, sizeof sums / sizeof(float), sums[0]);
}

static void forward_of_slice(const struct device *device, clnorm_norm norm, const struct part *part,
                             const clnorm_args *all) {
    clnorm_norm_statistics_desc statistics = CLNORM_NORM_STATISTICS_DESC_INIT;
    statistics.norm = norm;
    statistics.rows = ROWS;
    statistics.cols = (uint64_t)part->cols;
    clnorm_norm_apply_desc apply = CLNORM_NORM_APPLY_DESC_INIT;
    apply.norm = norm;
    apply.rows = ROWS;
    apply.cols = statistics.cols;
    apply.weight.dtype = apply.bias.dtype = CLNORM_F32;
    apply.eps = eps;

    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = all->x;
    args.moments = all->moments;
    check(clnorm_norm_statistics(device->context, device->queue, &statistics, &args, 0, NULL, NULL),
          "clnorm_norm_statistics");
    exchange_moments(device, all->moments);
    args.weight = all->weight;
    args.bias = all->bias;
    args.y = all->y;
    check(clnorm_norm_apply(device->context, device->queue, &apply, &args, 0, NULL, NULL), "clnorm_norm_apply");
}

static void backward_of_slice(const struct device *device, clnorm_norm norm, const struct part *part,
                              const clnorm_args *all) {
    clnorm_norm_backward_statistics_desc statistics = CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT;
    statistics.norm = norm;
    statistics.rows = ROWS;
    statistics.cols = (uint64_t)part->cols;
    statistics.weight.dtype = CLNORM_F32;
    statistics.eps = eps;
    clnorm_norm_backward_apply_desc apply = CLNORM_NORM_BACKWARD_APPLY_DESC_INIT;
    apply.norm = norm;
    apply.rows = ROWS;
    apply.cols = statistics.cols;
    apply.weight.dtype = apply.dweight.dtype = apply.dbias.dtype = CLNORM_F32;
    apply.eps = eps;

    clnorm_args args = CLNORM_ARGS_INIT;
    args.x = all->x;
    args.dy = all->dy;
    args.weight = all->weight;
    args.moments = all->moments; /* the forward's, of whole rows */
    args.sums = all->sums;
    check(clnorm_norm_backward_statistics(device->context, device->queue, &statistics, &args, 0, NULL, NULL),
          "clnorm_norm_backward_statistics");
    exchange_sums(device, all->sums);
    args.dx = all->dx;
    args.dweight = all->dweight; /* of the slice's columns: no exchange */
    args.dbias = all->dbias;
    check(clnorm_norm_backward_apply(device->context, device->queue, &apply, &args, 0, NULL, NULL),
          "clnorm_norm_backward_apply");
}

static void run_slice(const struct device *device, clnorm_norm norm, struct part *part) {
    clnorm_args all;
    make_inputs(device, part, &all);
    all.moments = make_buffer(device, (size_t)3 * ROWS, NULL);
    all.sums = make_buffer(device, (size_t)2 * ROWS, NULL);
    forward_of_slice(device, norm, part, &all);
    backward_of_slice(device, norm, part, &all);
    check_cl(clFinish(device->queue), "clFinish");
    clReleaseMemObject(all.moments.mem);
    clReleaseMemObject(all.sums.mem);
    take_outputs(device, &all, part);
}

/* -------------------------------------------------------------------------------------------------------- comparison */

/* The largest relative difference, or largest. A NaN counts as infinite. */
static double difference(const float *got, const float *want, int count, double largest) {
    for (int i = 0; i < count; i++) {
        const double error = fabs((double)got[i] - want[i]) / (1 + fabs((double)want[i]));
        largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    return largest;
}

/* The largest difference, over all processes, between a part and its place in the whole. */
static double compare(const struct part *part, const struct part *whole, int first_row, int first_col) {
    double largest = difference(part->dweight, whole->dweight + first_col, part->cols, 0);
    largest = difference(part->dbias, whole->dbias + first_col, part->cols, largest);
    for (int row = 0; row < part->rows; row++) {
        const int own = row * part->cols, at = (first_row + row) * COLS + first_col;
        largest = difference(part->y + own, whole->y + at, part->cols, largest);
        largest = difference(part->dx + own, whole->dx + at, part->cols, largest);
    }
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

static double by_columns(const struct device *device, clnorm_norm norm, const struct part *whole, int rank, int ranks) {
    static struct part part;
    int first, end;
    share_of(COLS, rank, ranks, &first, &end);
    fill_part(&part, 0, ROWS, first, end - first);
    run_slice(device, norm, &part);
    return compare(&part, whole, 0, first);
}

static double by_rows(const struct device *device, clnorm_norm norm, const struct part *whole, int rank, int ranks) {
    static struct part part;
    int first, end;
    share_of(ROWS, rank, ranks, &first, &end);
    fill_part(&part, first, end - first, 0, COLS);
    run_whole_rows(device, norm, &part);
    MPI_Allreduce(MPI_IN_PLACE, part.dweight, COLS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, part.dbias, COLS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return compare(&part, whole, first, 0);
}

int main(int argc, char **argv) {
    static struct part whole;
    int rank, ranks;
    double largest = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > COLS) {
        fprintf(stderr, "%d processes: expected at most one for each of the %d columns\n", ranks, COLS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct device device = open_device();
    for (int norm = CLNORM_LAYER_NORM; norm <= CLNORM_RMS_NORM; norm++) {
        fill_part(&whole, 0, ROWS, 0, COLS);
        run_whole_rows(&device, (clnorm_norm)norm, &whole);
        const double columns = by_columns(&device, (clnorm_norm)norm, &whole, rank, ranks);
        const double rows = by_rows(&device, (clnorm_norm)norm, &whole, rank, ranks);
        if (rank == 0)
            printf("%s norm over %d processes: largest difference %.2g by columns, %.2g by rows\n",
                   norm == CLNORM_LAYER_NORM ? "layer" : "RMS", ranks, columns, rows);
        largest = fmax(largest, fmax(columns, rows));
    }
    close_device(&device);
    MPI_Finalize();
    return largest <= 1e-5 ? 0 : 1;
}
