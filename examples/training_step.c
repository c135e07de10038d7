/* A training step of one layer, forward and backward on one queue, without a wait between them:
 *
 *   s = residual + dropout(x),   y = RMS norm of s · weight,   loss = Σ y² / 2
 *
 * Then ∂loss/∂y is y itself, so the backward reads y as dy. The gradients of x, residual and weight are compared with the
 * same formulas in double on the host.
 *
 *   ./example_training_step */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64, COLS = 256, SIZE = ROWS * COLS };
static const double dropout = 0.25, eps = 1e-5;

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

/* The device's objects, and every tensor of the step. */
struct step {
    cl_context cl;
    cl_command_queue queue;
    clnorm_context *context;
    cl_mem x, residual, weight;    /* in */
    cl_mem y, s, rstd, mask;       /* outputs of the forward; only the comparison needs the mask */
    cl_mem dx, dresidual, dweight; /* outputs of the backward */
    cl_mem workspace;              /* of the backward */
    clnorm_plan *forward, *backward;
};

static cl_mem make_buffer(struct step *step, size_t size, const float *data) {
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (data ? CL_MEM_COPY_HOST_PTR : 0);
    cl_int error;
    cl_mem buffer = clCreateBuffer(step->cl, flags, size, (void *)data, &error);
    check_cl(error, "clCreateBuffer");
    return buffer;
}

static void make_plans(struct step *step) {
    clnorm_norm_desc forward = CLNORM_NORM_DESC_INIT;
    forward.norm = CLNORM_RMS_NORM;
    forward.rows = ROWS;
    forward.cols = COLS;
    forward.weight.dtype = CLNORM_F32;
    forward.residual.dtype = CLNORM_F32;
    forward.residual_out.dtype = CLNORM_F32; /* s, for the next layer and for the backward */
    forward.dropout = dropout;
    forward.eps = eps;
    forward.save_rstd = 1; /* for the backward */
    forward.save_mask = 1;
    check(clnorm_norm_forward_plan_create(step->context, &forward, &step->forward), "clnorm_norm_forward_plan_create");

    clnorm_norm_backward_desc backward = CLNORM_NORM_BACKWARD_DESC_INIT;
    backward.norm = CLNORM_RMS_NORM;
    backward.rows = ROWS;
    backward.cols = COLS;
    backward.weight.dtype = CLNORM_F32;
    backward.dropout = dropout;
    backward.s_given = 1; /* the backward's x is s: x and residual are no longer needed */
    backward.rstd_given = 1;
    backward.dx.dtype = CLNORM_F32; /* an output with a dtype is computed */
    backward.dresidual.dtype = CLNORM_F32;
    backward.dweight.dtype = CLNORM_F32;
    check(clnorm_norm_backward_plan_create(step->context, &backward, &step->backward), "clnorm_norm_backward_plan_create");
}

/* Enqueues forward and backward. The queue is in-order: the backward begins after the forward. */
static void enqueue(struct step *step, clnorm_seed seed) {
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = step->x;
    args.residual.mem = step->residual;
    args.weight.mem = step->weight;
    args.y.mem = step->y;
    args.residual_out.mem = step->s;
    args.rstd.mem = step->rstd;
    args.dropout_mask.mem = step->mask;
    args.seed = &seed;
    check(clnorm_plan_enqueue(step->forward, step->queue, &args, 0, NULL, NULL), "forward");

    clnorm_args gradients = CLNORM_ARGS_INIT;
    gradients.x.mem = step->s;
    gradients.dy.mem = step->y;
    gradients.weight.mem = step->weight;
    gradients.rstd.mem = step->rstd;
    gradients.dx.mem = step->dx;
    gradients.dresidual.mem = step->dresidual;
    gradients.dweight.mem = step->dweight;
    gradients.workspace.mem = step->workspace;
    gradients.seed = &seed; /* the forward's seed gives the same mask */
    check(clnorm_plan_enqueue(step->backward, step->queue, &gradients, 0, NULL, NULL), "backward");
}

static void read_back(struct step *step, cl_mem buffer, size_t size, void *host) {
    check_cl(clEnqueueReadBuffer(step->queue, buffer, CL_TRUE, 0, size, host, 0, NULL, NULL), "clEnqueueReadBuffer");
}

/* The largest relative difference. A NaN counts as infinite. */
static double largest_difference(const char *name, const float *got, const double *want, int count) {
    double largest = 0;
    for (int i = 0; i < count; i++) {
        const double error = fabs(got[i] - want[i]) / (1 + fabs(want[i]));
        largest = isnan(error) ? INFINITY : fmax(largest, error);
    }
    printf("%-10s largest difference %.2g\n", name, largest);
    return largest;
}

/* Compares the gradients with those in double, for the mask that the device used. */
static double compare(struct step *step, const float *x, const float *residual, const float *weight) {
    static unsigned char mask[SIZE];
    static float dx[SIZE], dresidual[SIZE], dweight[COLS];
    static double want_dx[SIZE], want_dresidual[SIZE], want_dweight[COLS];
    read_back(step, step->mask, sizeof mask, mask);
    read_back(step, step->dx, sizeof dx, dx);
    read_back(step, step->dresidual, sizeof dresidual, dresidual);
    read_back(step, step->dweight, sizeof dweight, dweight);

    double loss = 0;
    for (int row = 0; row < ROWS; row++) {
        double s[COLS], squares = 0, slope = 0;
        for (int col = 0; col < COLS; col++) {
            const int i = row * COLS + col;
            s[col] = residual[i] + (mask[i] ? x[i] / (1 - dropout) : 0);
            squares += s[col] * s[col];
        }
        const double rstd = 1 / sqrt(squares / COLS + eps);
        for (int col = 0; col < COLS; col++) {
            const double normal = s[col] * rstd, dy = normal * weight[col]; /* dy = y */
            loss += dy * dy / 2;
            want_dweight[col] += dy * normal;
            slope += normal * weight[col] * dy / COLS;
        }
        for (int col = 0; col < COLS; col++) {
            const int i = row * COLS + col;
            const double normal = s[col] * rstd, dy = normal * weight[col];
            want_dresidual[i] = rstd * (weight[col] * dy - normal * slope);
            want_dx[i] = mask[i] ? want_dresidual[i] / (1 - dropout) : 0;
        }
    }
    printf("loss %.6g\n", loss);
    const double dx_error = largest_difference("dx", dx, want_dx, SIZE);
    const double dresidual_error = largest_difference("dresidual", dresidual, want_dresidual, SIZE);
    const double dweight_error = largest_difference("dweight", dweight, want_dweight, COLS);
    return fmax(dx_error, fmax(dresidual_error, dweight_error));
}

static void release(struct step *step) {
    cl_mem *const buffers[] = {&step->x,    &step->residual, &step->weight,    &step->y,       &step->s,        &step->rstd,
                               &step->mask, &step->dx,       &step->dresidual, &step->dweight, &step->workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (*buffers[i])
            clReleaseMemObject(*buffers[i]);
    clnorm_plan_destroy(step->forward);
    clnorm_plan_destroy(step->backward);
    clnorm_context_destroy(step->context);
    clReleaseCommandQueue(step->queue);
    clReleaseContext(step->cl);
}

int main(void) {
    static float x[SIZE], residual[SIZE], weight[COLS];
    for (int i = 0; i < SIZE; i++) {
        x[i] = sinf((float)i);
        residual[i] = cosf(0.1f * (float)i);
    }
    for (int col = 0; col < COLS; col++)
        weight[col] = 1 + 0.001f * (float)col;

    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    check(clnorm_device_select(NULL, &device), "clnorm_device_select");
    struct step step = {.cl = NULL};
    cl_int error;
    step.cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, &error);
    check_cl(error, "clCreateContext");
    step.queue = clCreateCommandQueue(step.cl, device.device, 0, &error);
    check_cl(error, "clCreateCommandQueue");
    check(clnorm_context_create(step.cl, device.device, NULL, &step.context), "clnorm_context_create");
    make_plans(&step);

    step.x = make_buffer(&step, sizeof x, x);
    step.residual = make_buffer(&step, sizeof residual, residual);
    step.weight = make_buffer(&step, sizeof weight, weight);
    step.y = make_buffer(&step, sizeof x, NULL);
    step.s = make_buffer(&step, sizeof x, NULL);
    step.rstd = make_buffer(&step, ROWS * sizeof(float), NULL);
    step.mask = make_buffer(&step, SIZE, NULL);
    step.dx = make_buffer(&step, sizeof x, NULL);
    step.dresidual = make_buffer(&step, sizeof x, NULL);
    step.dweight = make_buffer(&step, sizeof weight, NULL);
    const uint64_t workspace = clnorm_plan_workspace_size(step.backward);
    if (workspace)
        step.workspace = make_buffer(&step, (size_t)workspace, NULL);

    enqueue(&step, (clnorm_seed){.seed = 7, .offset = 0}); /* the next step has another offset, and so another mask */
    const double largest = compare(&step, x, residual, weight);
    release(&step);
    return largest <= 1e-5 ? 0 : 1;
}
