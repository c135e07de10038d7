/* A long run: enqueues of random plans from several threads to several queues, with memory that must not grow, and
 * processes that are killed while they write the program cache. tests/soak.sh says how to run it.
 *
 *     soak ENQUEUES KILLS [SEED] */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue, which every version has */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "operation/operation.h"
#include "soak.h"

enum { JOBS = 24, THREADS = 4, QUEUES = 2, INPUT_SIZE = 1 << 20, CHECK_EVERY = 256, ONE_CALL_EVERY = 16, PLAN_EVERY = 512 };

void soak_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)fputs("soak: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void soak_check(cl_int code, const char *what) {
    if (code)
        soak_fail("%s: OpenCL code %d", what, code);
}

uint64_t soak_random(uint64_t *state, uint64_t limit) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t bits = *state;
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return (bits ^ bits >> 31) % limit;
}

/* ------------------------------------------------------------------------------------------------------------- jobs */

/* An operation with a descriptor and a plan. One buffer has its outputs and then its workspace. */
struct job {
    const struct cln_operation *operation;
    _Alignas(max_align_t) unsigned char desc[CLN_DESC_MOST];
    clnorm_plan *plan;
    uint64_t at[CLN_ROLES]; /* offsets of outputs, bytes */
    uint64_t compared;      /* bytes of outputs; the workspace follows */
    size_t size;
    unsigned char *expected; /* [compared] */
};

struct soak {
    clnorm_device_info device;
    cl_context cl;
    clnorm_context *context;
    cl_mem input; /* finite numbers in every dtype of the jobs */
    struct job jobs[JOBS];
    uint64_t enqueues; /* of each thread */
};

static unsigned operation_count(void) {
    unsigned count = 0;
    while (cln_operations[count])
        count++;
    return count;
}

/* Draws an operation, a shape, dtypes, and the optional inputs and outputs that are present. */
static void describe(struct job *job, uint64_t *random) {
    static const clnorm_dtype dtypes[] = {CLNORM_F32, CLNORM_F16, CLNORM_BF16};
    struct cln_desc_head *const head = (struct cln_desc_head *)(void *)job->desc;
    job->operation = cln_operations[soak_random(random, operation_count())];
    cln_operation_init(job->operation, job->desc);
    head->rows = soak_random(random, 40);
    head->cols = 1 + soak_random(random, 600);
    for (unsigned i = 0; i < job->operation->tensor_count; i++) {
        const struct cln_tensor_rule *const rule = &job->operation->tensors[i];
        clnorm_tensor *const tensor = (clnorm_tensor *)(void *)(job->desc + rule->offset);
        if (!tensor->scaling && (i == 0 || soak_random(random, 2)))
            tensor->dtype = dtypes[soak_random(random, 3)];
    }
}

static void lay_out(struct job *job) {
    uint64_t size = 0;
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        const struct cln_tensor *const tensor = &job->plan->tensor[role];
        if (role == CLN_WORKSPACE)
            job->compared = size;
        if (!tensor->element || (!tensor->written && tensor->read))
            continue;
        job->at[role] = size;
        size += cln_divide_up(cln_larger(tensor->span, 1), 256) * 256;
    }
    job->size = (size_t)cln_larger(size, 1);
}

/* Draws descriptors until the library accepts one. A refusal must have a message. */
static void make_job(struct soak *soak, struct job *job, uint64_t *random) {
    for (;;) {
        describe(job, random);
        const clnorm_status status = cln_operation_plan_create(job->operation, soak->context, job->desc, &job->plan);
        if (!status && job->plan->seeding != CLN_SEED_ARGS)
            break;
        if (status && (status >= CLNORM_DEVICE_NOT_FOUND || !*clnorm_error_detail()))
            soak_fail("%s: %s", job->operation->name, clnorm_error_detail());
        if (!status)
            clnorm_plan_destroy(job->plan);
    }
    lay_out(job);
}

/* The arguments of a job whose outputs are in a buffer. */
static clnorm_args args_of(const struct soak *soak, const struct job *job, cl_mem output) {
    clnorm_args args = CLNORM_ARGS_INIT;
    for (enum cln_role role = 0; role < CLN_ROLES; role++) {
        const struct cln_tensor *const tensor = &job->plan->tensor[role];
        clnorm_buffer *const buffer = (clnorm_buffer *)(void *)cln_args_buffer(&args, role);
        if (!tensor->element)
            continue;
        const bool reads = tensor->read && !tensor->written;
        *buffer = reads ? (clnorm_buffer){soak->input, 0} : (clnorm_buffer){output, job->at[role]};
    }
    return args;
}

/* ---------------------------------------------------------------------------------------------------------- threads */

/* A queue, and each job's output buffer on it. */
struct lane {
    cl_command_queue queue;
    cl_mem output[JOBS];
    cl_event last; /* of an out-of-order queue, whose work is chained; NULL: none */
    bool chained;
};

struct worker {
    struct soak *soak;
    struct lane lanes[QUEUES];
    uint64_t random;
    pthread_t thread;
};

static void make_lane(struct soak *soak, struct lane *lane, bool chained) {
    static const unsigned char zero = 0;
    cl_command_queue_properties supported = 0;
    soak_check(clGetDeviceInfo(soak->device.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof supported, &supported, NULL),
               "clGetDeviceInfo");
    cl_int code;
    lane->chained = chained && supported & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    lane->queue = clCreateCommandQueue(soak->cl, soak->device.device,
                                       lane->chained ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &code);
    soak_check(code, "clCreateCommandQueue");
    for (size_t i = 0; i < JOBS; i++) {
        const size_t size = soak->jobs[i].size;
        lane->output[i] = clCreateBuffer(soak->cl, CL_MEM_READ_WRITE, size, NULL, &code);
        soak_check(code, "clCreateBuffer");
        soak_check(clEnqueueFillBuffer(lane->queue, lane->output[i], &zero, 1, 0, size, 0, NULL, NULL),
                   "clEnqueueFillBuffer");
    }
    soak_check(clFinish(lane->queue), "clFinish");
}

static void free_lane(struct lane *lane) {
    if (lane->last)
        (void)clReleaseEvent(lane->last);
    for (size_t i = 0; i < JOBS; i++)
        (void)clReleaseMemObject(lane->output[i]);
    (void)clReleaseCommandQueue(lane->queue);
}

/* Enqueues the job's plan, the one-call form, or a plan that is destroyed while its work may still run. */
static void enqueue(struct soak *soak, struct lane *lane, size_t i, uint64_t turn) {
    struct job *const job = &soak->jobs[i];
    const clnorm_args args = args_of(soak, job, lane->output[i]);
    const cl_uint waits = lane->last ? 1 : 0;
    cl_event done = NULL;
    cl_event *const event = lane->chained ? &done : NULL;
    clnorm_status status = CLNORM_SUCCESS;
    if (turn % ONE_CALL_EVERY == 0) {
        status =
            cln_operation_enqueue(job->operation, soak->context, lane->queue, job->desc, &args, waits, &lane->last, event);
    } else if (turn % PLAN_EVERY == 1) {
        clnorm_plan *plan = NULL;
        status = cln_operation_plan_create(job->operation, soak->context, job->desc, &plan);
        if (!status)
            status = clnorm_plan_enqueue(plan, lane->queue, &args, waits, &lane->last, event);
        clnorm_plan_destroy(plan);
    } else {
        status = clnorm_plan_enqueue(job->plan, lane->queue, &args, waits, &lane->last, event);
    }
    if (status)
        soak_fail("%s: %s", job->operation->name, clnorm_error_detail());
    if (lane->last)
        (void)clReleaseEvent(lane->last);
    lane->last = done;
}

/* Reads the outputs of a job: [job->compared] bytes, newly allocated. */
static unsigned char *results_of(const struct job *job, const struct lane *lane, size_t i) {
    unsigned char *const bytes = calloc(1, (size_t)job->compared + 1);
    if (!bytes)
        soak_fail("out of memory");
    soak_check(clFinish(lane->queue), "clFinish");
    if (job->compared)
        soak_check(
            clEnqueueReadBuffer(lane->queue, lane->output[i], CL_TRUE, 0, (size_t)job->compared, bytes, 0, NULL, NULL),
            "clEnqueueReadBuffer");
    return bytes;
}

static void *work(void *user) {
    struct worker *const worker = user;
    struct soak *const soak = worker->soak;
    for (uint64_t turn = 0; turn < soak->enqueues; turn++) {
        struct lane *const lane = &worker->lanes[soak_random(&worker->random, QUEUES)];
        const size_t i = (size_t)soak_random(&worker->random, JOBS);
        enqueue(soak, lane, i, turn);
        if (turn % CHECK_EVERY)
            continue;
        unsigned char *const bytes = results_of(&soak->jobs[i], lane, i);
        if (memcmp(bytes, soak->jobs[i].expected, (size_t)soak->jobs[i].compared) != 0)
            soak_fail("%s: enqueue %" PRIu64 " of a thread gave other bits than the first one",
                      soak->jobs[i].operation->name, turn);
        free(bytes);
    }
    for (size_t i = 0; i < QUEUES; i++)
        soak_check(clFinish(worker->lanes[i].queue), "clFinish");
    return NULL;
}

static void run_threads(struct soak *soak, uint64_t enqueues, uint64_t seed) {
    struct worker workers[THREADS];
    soak->enqueues = enqueues / THREADS;
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.soak = soak, .random = seed + i};
        for (size_t k = 0; k < QUEUES; k++)
            make_lane(soak, &workers[i].lanes[k], k > 0);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            soak_fail("no thread");
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        for (size_t k = 0; k < QUEUES; k++)
            free_lane(&workers[i].lanes[k]);
    }
}

/* ----------------------------------------------------------------------------------------------------------- set up */

static void open_device(struct soak *soak) {
    clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    cl_int code;
    options.cache_dir = "";
    clnorm_device_info_init(&soak->device);
    if (clnorm_device_select(NULL, &soak->device))
        soak_fail("%s", clnorm_error_detail());
    soak->cl = clCreateContext(NULL, 1, &soak->device.device, NULL, NULL, &code);
    soak_check(code, "clCreateContext");
    if (clnorm_context_create(soak->cl, soak->device.device, &options, &soak->context))
        soak_fail("%s", clnorm_error_detail());
    printf("soak: %s, %s\n", soak->device.name, soak->device.driver);
}

/* As f16 the numbers are 1 to 1.75; as bf16 and f32 they are 0.007 to 0.5. */
static void make_input(struct soak *soak, uint64_t *random) {
    static uint16_t words[INPUT_SIZE / 2];
    cl_int code;
    for (size_t i = 0; i < INPUT_SIZE / 2; i++)
        words[i] = (uint16_t)(0x3c00 + soak_random(random, 0x300));
    soak->input = clCreateBuffer(soak->cl, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof words, words, &code);
    soak_check(code, "clCreateBuffer");
}

static void make_jobs(struct soak *soak, uint64_t *random) {
    struct lane lane = {.queue = NULL};
    for (size_t i = 0; i < JOBS; i++)
        make_job(soak, &soak->jobs[i], random);
    make_lane(soak, &lane, false);
    for (size_t i = 0; i < JOBS; i++) {
        enqueue(soak, &lane, i, 2);
        soak->jobs[i].expected = results_of(&soak->jobs[i], &lane, i);
    }
    free_lane(&lane);
}

/* Resident memory of the process, in bytes. */
static uint64_t resident(void) {
    unsigned long long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*u %20llu", &pages) != 1)
        soak_fail("/proc/self/statm cannot be read");
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The first tenth of the run is not measured: pools of drivers and arenas of threads grow once. */
static void soak_enqueues(uint64_t enqueues, uint64_t seed) {
    static struct soak soak;
    const uint64_t allowed = UINT64_C(16) << 20;
    uint64_t random = seed;
    open_device(&soak);
    make_input(&soak, &random);
    make_jobs(&soak, &random);
    run_threads(&soak, enqueues / 10, seed + 100);
    const uint64_t before = resident();
    run_threads(&soak, enqueues - enqueues / 10, seed + 200);
    const uint64_t after = resident();
    printf("soak: %" PRIu64 " enqueues by %d threads to %d queues: memory from %" PRIu64 " to %" PRIu64 " KiB\n", enqueues,
           THREADS, THREADS * QUEUES, before >> 10, after >> 10);
    if (after > before + allowed)
        soak_fail("memory grew by %" PRIu64 " KiB: expected at most %" PRIu64, (after - before) >> 10, allowed >> 10);
    for (size_t i = 0; i < JOBS; i++) {
        clnorm_plan_destroy(soak.jobs[i].plan);
        free(soak.jobs[i].expected);
    }
    clnorm_context_destroy(soak.context);
    (void)clReleaseMemObject(soak.input);
    (void)clReleaseContext(soak.cl);
}

static uint64_t number_of(const char *word) {
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(word, &end, 10);
    if (errno || *end || !*word || *word == '-')
        soak_fail("'%s': expected a whole number", word);
    return number;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc > 4)
        soak_fail("expected ENQUEUES KILLS [SEED]");
    const uint64_t seed = argc > 3 ? number_of(argv[3]) : 1;
    soak_kills(number_of(argv[2]), seed); /* before OpenCL has threads, which a fork would lose */
    soak_enqueues(number_of(argv[1]), seed);
    return 0;
}
