/* Reading .npy files, damaged files of both formats, and opening, writing and replacing files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor_bytes.h"
#include "tensor_write.h"

/* ------------------------------------------------------------------------------------------------------------ npy */

static void test_npy_reads_arrays(void **state) {
    (void)state;
    static const struct {
        unsigned char version;
        const char *header;
        size_t size;
    } files[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24},
        {2, "{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }\n", 14},
        {3, "{'shape':(2,2,),'fortran_order':False,'descr':'<f8'}", 32},
        {1, "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": ()}", 4},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9)}", 0},
        {1, "{'descr': '<i8', 'fortran_order': False, 'shape': (1,)}", 8},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!accepts(FORMAT_NPY, npy(files[i].version, files[i].header, files[i].size)))
            fail_msg("refused %s", files[i].header);

    const struct bytes bytes = npy(1, files[0].header, files[0].size);
    struct tensor_file file;
    struct fault fault = {0};
    assert_true(tensor_file_parse(&file, FORMAT_NPY, "/folder.npy/x.y.npy", bytes.at, bytes.size, &fault));
    const struct tensor *const x = tensor_file_find(&file, "x.y");
    assert_non_null(x);
    assert_int_equal(x->element->dtype, CLNORM_F32);
    assert_int_equal(x->rank, 2);
    assert_int_equal(x->shape[0], 2);
    assert_int_equal(x->shape[1], 3);
    assert_ptr_equal(x->data, bytes.at + bytes.size - 24);
    tensor_file_close(&file);
    free(bytes.at);
}

static void test_npy_refuses_wrong_files(void **state) {
    (void)state;
    static const struct {
        unsigned char version;
        const char *header;
        size_t size;
        const char *part;
    } files[] = {
        {0, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "version 0.0"},
        {4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "version 4.0"},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", 4, "row-major"},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, "descr '>f4'"},
        {1, "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", 2, "bf16: use safetensors"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, "4 bytes of data"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 5, "5 bytes of data"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0, "0 bytes of data"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}", 0, "0 bytes of data"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 0, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False}", 4, "npy header"},
        {1, "{'descr': '<f4', 'shape': (1,)}", 4, "npy header"},
        {1, "{'fortran_order': False, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "npy header"},
        {1, "{'descr': '<f4, 'fortran_order': False, 'shape': (1,)}", 4, "npy header"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, "npy header"},
        {1, "", 4, "npy header"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        assert_refused(FORMAT_NPY, npy(files[i].version, files[i].header, files[i].size), files[i].part);

    const struct bytes long_header = npy(1, files[0].header, 4);
    long_header.at[9] = 0xff;
    assert_refused(FORMAT_NPY, long_header, "npy header of 65335 bytes");
    assert_refused(FORMAT_NPY, copy_of("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "npy header of 4294967295 bytes");
    assert_refused(FORMAT_NPY, copy_of("\x93NUMPX\1\0\0\0\0\0", 12), "expected an npy file");
}

/* ------------------------------------------------------------------------------------------------------- mutation */

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Makes up to eight changes: flips a bit, sets a byte, sets a character of JSON, or copies a run of bytes. */
static void mutate(struct bytes bytes, uint64_t *random) {
    static const char digits[] = "0123456789-,[]{}\"e.";
    for (uint64_t n = bytes.size > 0 ? next_random(random) % 8 + 1 : 0; n > 0; n--) {
        const size_t at = next_random(random) % bytes.size;
        switch (next_random(random) % 4) {
        case 0:
            bytes.at[at] ^= (unsigned char)(1U << next_random(random) % 8);
            break;
        case 1:
            bytes.at[at] = (unsigned char)next_random(random);
            break;
        case 2:
            bytes.at[at] = (unsigned char)digits[next_random(random) % (sizeof digits - 1)];
            break;
        default: {
            const size_t from = next_random(random) % bytes.size;
            const size_t room = bytes.size - (at > from ? at : from);
            memmove(bytes.at + at, bytes.at + from, next_random(random) % (room < 24 ? room : 24));
        }
        }
    }
}

static void assert_survives_mutation(enum tensor_format format, struct bytes valid, int rounds) {
    assert_true(accepts(format, copy_of(valid.at, valid.size)));
    for (size_t size = 0; size < valid.size; size++)
        assert_false(accepts(format, copy_of(valid.at, size)));
    for (size_t at = 0; at < valid.size; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            const struct bytes flipped = copy_of(valid.at, valid.size);
            flipped.at[at] ^= (unsigned char)(1U << bit);
            (void)accepts(format, flipped);
        }
    uint64_t random = 1;
    int refused = 0;
    for (int i = 0; i < rounds; i++) {
        const struct bytes mutant = copy_of(valid.at, valid.size);
        mutate(mutant, &random);
        refused += !accepts(format, mutant);
    }
    assert_true(refused > rounds / 2);
    free(valid.at);
}

static void test_mutated_files_are_refused_or_valid(void **state) {
    (void)state;
    assert_survives_mutation(FORMAT_SAFETENSORS, safetensors(two_tensors, 30), 50000);
    assert_survives_mutation(FORMAT_NPY, npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24),
                             50000);
    assert_survives_mutation(FORMAT_NPY, npy(2, "{'descr': '<f2', 'fortran_order': False, 'shape': (12,), }\n", 24), 50000);
}

/* ---------------------------------------------------------------------------------------------------------- files */

static char folder[] = "/tmp/clnorm-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return !chdir("/") && !rmdir(folder) ? 0 : -1;
}

static void put_file(const char *path, const void *bytes, size_t size) {
    FILE *const stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static void assert_cannot_open(const char *path, const char *part) {
    struct tensor_file file;
    struct fault fault = {0};
    assert_false(tensor_file_open(&file, path, &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    if (!strstr(fault.text, part))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, part);
    tensor_file_close(&file);
}

static void test_open_refuses_other_files(void **state) {
    (void)state;
    assert_cannot_open("none.safetensors", "No such file");
    assert_cannot_open("x.bin", "ends in .safetensors or .npy");
    assert_int_equal(mkdir("folder.npy", 0777), 0);
    assert_cannot_open("folder.npy", "not a regular file");
    assert_int_equal(rmdir("folder.npy"), 0);
    assert_int_equal(mkfifo("pipe.npy", 0600), 0);
    assert_cannot_open("pipe.npy", "not a regular file");
    assert_int_equal(unlink("pipe.npy"), 0);
    put_file("empty.npy", "", 0);
    assert_cannot_open("empty.npy", "empty");
    assert_int_equal(unlink("empty.npy"), 0);
}

static struct tensor tensor_of(const char *name, clnorm_dtype dtype, unsigned rank, uint64_t rows, uint64_t cols,
                               const void *data) {
    struct tensor tensor = {
        .name = name, .element = element_by_dtype(dtype), .rank = rank, .shape = {rows, cols}, .data = data};
    assert_true(tensor_measure(&tensor));
    return tensor;
}

static void assert_same(const struct tensor *a, const struct tensor *b) {
    assert_non_null(b);
    assert_ptr_equal(a->element, b->element);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(memcmp(a->shape, b->shape, a->rank * sizeof *a->shape), 0);
    assert_int_equal(a->size, b->size);
    assert_int_equal(memcmp(a->data, b->data, a->size), 0);
}

static void test_written_files_read_back(void **state) {
    (void)state;
    const unsigned char bytes[] = "some bytes that stand for elements of a tensor";
    char y_name[] = "y \"quoted\"";
    char mean_name[] = "mean";
    const struct tensor y = tensor_of(y_name, CLNORM_BF16, 2, 3, 5, bytes);
    const struct tensor mean = tensor_of(mean_name, CLNORM_F32, 1, 3, 0, bytes + 7);
    const struct tensor *const tensors[] = {&y, &mean};
    struct fault fault = {0};
    struct tensor_file file;

    put_file("out.safetensors", "what was there before", 21);
    assert_true(tensor_write("out.safetensors", tensors, 2, &fault));
    assert_true(tensor_file_open(&file, "out.safetensors", &fault));
    assert_int_equal(file.count, 2);
    assert_same(&y, tensor_file_find(&file, y_name));
    assert_same(&mean, tensor_file_find(&file, "mean"));
    for (size_t i = 0; i < file.count; i++)
        assert_int_equal((uintptr_t)file.tensors[i].data % (file.tensors[i].element->bits / 8), 0);
    tensor_file_close(&file);

    const struct tensor arrays[] = {
        tensor_of(mean_name, CLNORM_F32, 1, 3, 0, bytes), tensor_of(mean_name, CLNORM_F16, 2, 4, 5, bytes),
        tensor_of(mean_name, CLNORM_F64, 0, 0, 0, bytes), tensor_of(mean_name, CLNORM_F32, 2, 0, 4, bytes)};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const struct tensor *const array = &arrays[i];
        assert_true(tensor_write("out.npy", &array, 1, &fault));
        assert_true(tensor_file_open(&file, "out.npy", &fault));
        assert_same(array, tensor_file_find(&file, "out"));
        assert_int_equal((uintptr_t)file.tensors[0].data % 64, 0);
        tensor_file_close(&file);
    }
    assert_int_equal(unlink("out.safetensors"), 0);
    assert_int_equal(unlink("out.npy"), 0);
}

static void test_failed_write_leaves_the_old_file(void **state) {
    (void)state;
    char name[] = "y";
    const struct tensor y = tensor_of(name, CLNORM_BF16, 1, 2, 0, "1234");
    const struct tensor *const tensors[] = {&y};
    struct fault fault = {0};

    put_file("y.npy", "before", 6);
    assert_false(tensor_write("y.npy", tensors, 1, &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_non_null(strstr(fault.text, "npy has no BF16"));
    char text[16] = "";
    FILE *const stream = fopen("y.npy", "rb");
    assert_non_null(stream);
    assert_int_equal(fread(text, 1, sizeof text, stream), 6);
    assert_string_equal(text, "before");
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(unlink("y.npy"), 0);

    assert_false(tensor_write("y.bin", tensors, 1, &fault));
    assert_non_null(strstr(fault.text, "ends in"));
    assert_false(tensor_write("no/such/folder/y.safetensors", tensors, 1, &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_non_null(strstr(fault.text, "No such file"));

    assert_int_equal(mkdir("y.safetensors", 0777), 0);
    assert_false(tensor_write("y.safetensors", tensors, 1, &fault));
    assert_int_equal(fault.code, EXIT_REQUEST);
    assert_non_null(strstr(fault.text, "not a regular file"));
    assert_int_equal(rmdir("y.safetensors"), 0); /* remove_folder fails if anything is left */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy_reads_arrays),
        cmocka_unit_test(test_npy_refuses_wrong_files),
        cmocka_unit_test(test_mutated_files_are_refused_or_valid),
        cmocka_unit_test(test_open_refuses_other_files),
        cmocka_unit_test(test_written_files_read_back),
        cmocka_unit_test(test_failed_write_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
