/* Forward normalisation in place of a bf16 buffer of more than 2^31 elements: offsets beyond 2^31 are right. A device with
 * smaller buffers, as PoCL, gets the largest that it allows; the test prints its size. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "knob.h"
#include "norm_case.h"

enum { COLS = 4096, PROBES = 6 };

/* A large x, of which PROBES rows are compared with a run of as many rows in host memory. */
struct scene {
    const struct fixture *fixture;
    struct norm_run probes;
    uint64_t rows, stride; /* of x; stride in elements */
    uint64_t row[PROBES];  /* of x, the probes' */
    cl_mem x;
};

static struct scene scene_open(const struct fixture *fixture, uint64_t rows, uint64_t stride) {
    const struct norm_case norm_case = {
        .desc = {.size = sizeof(clnorm_norm_desc),
                 .norm = CLNORM_LAYER_NORM,
                 .rows = PROBES,
                 .cols = COLS,
                 .x.dtype = CLNORM_BF16,
                 .weight.dtype = CLNORM_BF16,
                 .save_rstd = true,
                 .eps = 1e-5},
        .in_place = true,
        .seed = 1,
    };
    struct scene scene = {.fixture = fixture, .probes = norm_run_make(&norm_case), .rows = rows, .stride = stride};
    scene.x = fixture_buffer(fixture, CL_MEM_READ_WRITE, ((rows - 1) * stride + COLS) * sizeof(uint16_t));
    return scene;
}

static void scene_close(struct scene *scene) {
    norm_run_free(&scene->probes);
    clReleaseMemObject(scene->x);
}

static uint16_t *probe_at(const struct tensor *tensor, int probe) {
    return (uint16_t *)tensor_elements(tensor) + (size_t)probe * COLS;
}

static void write_probes(const struct scene *scene) {
    for (int i = 0; i < PROBES; i++) {
        const size_t offset = scene->row[i] * scene->stride * sizeof(uint16_t);
        assert_int_equal(clEnqueueWriteBuffer(scene->fixture->queue, scene->x, CL_TRUE, offset, COLS * sizeof(uint16_t),
                                              probe_at(&scene->probes.x, i), 0, NULL, NULL),
                         CL_SUCCESS);
    }
}

static void read_probes(const struct scene *scene) {
    for (int i = 0; i < PROBES; i++) {
        const size_t offset = scene->row[i] * scene->stride * sizeof(uint16_t);
        assert_int_equal(clEnqueueReadBuffer(scene->fixture->queue, scene->x, CL_TRUE, offset, COLS * sizeof(uint16_t),
                                             probe_at(&scene->probes.y, i), 0, NULL, NULL),
                         CL_SUCCESS);
    }
}

/* Normalises x in place, and compares the probes, rstd included, with the reference. */
static void normalise_and_check(struct scene *scene) {
    const struct fixture *fixture = scene->fixture;
    clnorm_norm_desc desc = scene->probes.desc;
    desc.rows = scene->rows;
    desc.x.stride = desc.y.stride = scene->stride;
    clnorm_plan *plan = NULL;
    assert_int_equal(clnorm_norm_forward_plan_create(fixture->context, &desc, &plan), CLNORM_SUCCESS);
    scene->probes.config = chosen_knobs(plan);
    struct tensor rstd = tensor_make(CLNORM_F32, 1, scene->rows, scene->rows, 0, TENSOR_CANARY);
    tensor_upload(fixture, &scene->probes.weight);
    tensor_upload(fixture, &rstd);
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = args.y.mem = scene->x;
    args.weight = tensor_buffer(&scene->probes.weight);
    args.rstd = tensor_buffer(&rstd);
    if (clnorm_plan_enqueue(plan, fixture->queue, &args, 0, NULL, NULL) != CLNORM_SUCCESS)
        fail_msg("%s", clnorm_error_detail());
    assert_int_equal(clFinish(fixture->queue), CL_SUCCESS);
    clnorm_plan_destroy(plan);
    read_probes(scene);
    assert_true(tensor_receive(fixture, &rstd, "rstd"));
    for (int i = 0; i < PROBES; i++) {
        const float *all = tensor_elements(&rstd);
        ((float *)tensor_elements(&scene->probes.rstd))[i] = all[scene->row[i]];
    }
    tensor_free(&rstd);
    assert_true(norm_run_check(&scene->probes));
}

/* Elements that a buffer can have here, at most a little more than 2^31. */
static uint64_t most_elements(const struct fixture *fixture) {
    const uint64_t wanted = (UINT64_C(1) << 31) + UINT64_C(5) * COLS;
    const uint64_t host = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = fixture->device.max_allocation;
    if (fixture->device.kind != CLNORM_DEVICE_GPU && bytes > host / 2)
        bytes = host / 2; /* buffers lie in host memory, which other processes use too */
    const uint64_t most = bytes / sizeof(uint16_t) < wanted ? bytes / sizeof(uint16_t) : wanted;
    print_message("%" PRIu64 " elements, %s than 2^31\n", most, most < wanted ? "not more" : "more");
    assert_true(most > UINT64_C(1) << 24);
    return most;
}

/* Few rows, far apart, with an odd stride. Nothing touches the memory of the gaps. */
static void rows_far_apart(void **state) {
    const struct fixture *fixture = *state;
    const uint64_t stride = (most_elements(fixture) - COLS) / (PROBES - 1);
    struct scene scene = scene_open(fixture, PROBES, stride - (stride % 2 == 0));
    for (int i = 0; i < PROBES; i++)
        scene.row[i] = (uint64_t)i;
    write_probes(&scene);
    normalise_and_check(&scene);
    scene_close(&scene);
}

/* Contiguous rows over the whole buffer. All but the probes are equal to probe 1, whose result they must have. */
static void many_rows(void **state) {
    const struct fixture *fixture = *state;
    struct scene scene = scene_open(fixture, most_elements(fixture) / COLS, COLS);
    const uint64_t rows[PROBES] = {0, 1, scene.rows / 2, scene.rows - 6, scene.rows - 2, scene.rows - 1};
    memcpy(scene.row, rows, sizeof rows);
    enum { PERIOD = 64 };
    uint16_t *usual = probe_at(&scene.probes.x, 1);
    for (size_t i = PERIOD; i < COLS; i++)
        usual[i] = usual[i - PERIOD];
    const size_t bytes = scene.rows * COLS * sizeof(uint16_t);
    assert_int_equal(
        clEnqueueFillBuffer(fixture->queue, scene.x, usual, PERIOD * sizeof(uint16_t), 0, bytes, 0, NULL, NULL),
        CL_SUCCESS);
    write_probes(&scene);
    normalise_and_check(&scene);
    uint16_t *other = malloc(COLS * sizeof *other);
    assert_non_null(other);
    for (uint64_t row = 2; row < scene.rows - 2; row += scene.rows / 97) {
        if (row == rows[2] || row == rows[3])
            continue;
        assert_int_equal(clEnqueueReadBuffer(fixture->queue, scene.x, CL_TRUE, row * COLS * sizeof *other,
                                             COLS * sizeof *other, other, 0, NULL, NULL),
                         CL_SUCCESS);
        assert_memory_equal(other, probe_at(&scene.probes.y, 1), COLS * sizeof *other);
    }
    free(other);
    scene_close(&scene);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_far_apart),
        cmocka_unit_test(many_rows),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
