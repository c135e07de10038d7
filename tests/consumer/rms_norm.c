/* RMS norm of two rows on the best device, compared with the same sums on the host. It compares squares and needs no
 * libm: linking fails where the library does not bring its own. */
#define CL_TARGET_OPENCL_VERSION 120
#include <clnorm/clnorm.h>

#include <stdio.h>

enum { ROWS = 2, COLS = 5 };

static const float input[ROWS][COLS] = {{1, 2, 3, 4, 5}, {-2, 0, 7, 0.5f, 1}};
static const float weight[COLS] = {1, 0.5f, 2, -1, 3};

/* OpenCL objects, NULL until they are made. */
struct session {
    cl_context cl;
    cl_command_queue queue;
    cl_mem x, weight, y;
    clnorm_context *context;
    clnorm_plan *plan;
};

static int complain(const char *what, clnorm_status status) {
    fprintf(stderr, "%s: %s (%s)\n", what, clnorm_status_text(status), clnorm_error_detail());
    return 0;
}

static int open_session(struct session *s) {
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    clnorm_status status = clnorm_device_select(NULL, &info);
    if (status != CLNORM_SUCCESS)
        return complain("select", status);

    cl_int error;
    s->cl = clCreateContext(NULL, 1, &info.device, NULL, NULL, &error);
    if (error == CL_SUCCESS)
        s->queue = clCreateCommandQueue(s->cl, info.device, 0, &error);
    if (error == CL_SUCCESS)
        s->x = clCreateBuffer(s->cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof input, (void *)input, &error);
    if (error == CL_SUCCESS)
        s->weight = clCreateBuffer(s->cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof weight, (void *)weight, &error);
    if (error == CL_SUCCESS)
        s->y = clCreateBuffer(s->cl, CL_MEM_WRITE_ONLY, sizeof input, NULL, &error);
    if (error != CL_SUCCESS) {
        fprintf(stderr, "OpenCL error %d\n", (int)error);
        return 0;
    }
    status = clnorm_context_create(s->cl, info.device, NULL, &s->context);
    return status == CLNORM_SUCCESS || complain("context", status);
}

static void close_session(struct session *s) {
    clnorm_plan_destroy(s->plan);
    clnorm_context_destroy(s->context);
    if (s->y)
        clReleaseMemObject(s->y);
    if (s->weight)
        clReleaseMemObject(s->weight);
    if (s->x)
        clReleaseMemObject(s->x);
    if (s->queue)
        clReleaseCommandQueue(s->queue);
    if (s->cl)
        clReleaseContext(s->cl);
}

static int normalise(struct session *s, float y[ROWS][COLS]) {
    clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    desc.norm = CLNORM_RMS_NORM;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.weight.dtype = CLNORM_F32;
    clnorm_status status = clnorm_norm_forward_plan_create(s->context, &desc, &s->plan);
    if (status != CLNORM_SUCCESS)
        return complain("plan", status);

    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = s->x;
    args.weight.mem = s->weight;
    args.y.mem = s->y;
    status = clnorm_plan_enqueue(s->plan, s->queue, &args, 0, NULL, NULL);
    if (status != CLNORM_SUCCESS)
        return complain("enqueue", status);
    return clEnqueueReadBuffer(s->queue, s->y, CL_TRUE, 0, sizeof input, y, 0, NULL, NULL) == CL_SUCCESS;
}

static int verify(float y[ROWS][COLS]) {
    for (int row = 0; row < ROWS; row++) {
        double squares = 0;
        for (int col = 0; col < COLS; col++)
            squares += (double)input[row][col] * input[row][col];
        for (int col = 0; col < COLS; col++) {
            const double scaled = (double)input[row][col] * weight[col];
            const double want_square = scaled * scaled / (squares / COLS + 1e-5);
            const double square = (double)y[row][col] * y[row][col];
            const int near = square >= want_square * (1 - 2e-6) && square <= want_square * (1 + 2e-6);
            if (!near || y[row][col] * scaled < 0) {
                fprintf(stderr, "y[%d][%d] is %.9g; its square is expected to be %.9g\n", row, col, y[row][col],
                        want_square);
                return 0;
            }
        }
    }
    return 1;
}

int main(void) {
    struct session session = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    float y[ROWS][COLS];
    const int sound = open_session(&session) && normalise(&session, y) && verify(y);
    if (sound)
        printf("libclnorm %s on %s: right\n", clnorm_version(), clnorm_context_device(session.context)->name);
    close_session(&session);
    return sound ? 0 : 1;
}
