/* Reading .safetensors files: valid files are read to the bit, all others are refused in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensor_bytes.h"

static void test_safetensors_reads_tensors(void **state) {
    (void)state;
    const struct bytes bytes = safetensors(two_tensors, 30);
    struct tensor_file file;
    struct fault fault = {0};
    assert_true(tensor_file_parse(&file, FORMAT_SAFETENSORS, "m.safetensors", bytes.at, bytes.size, &fault));
    assert_int_equal(file.count, 2);
    const struct tensor *const a = tensor_file_find(&file, "a");
    const struct tensor *const b = tensor_file_find(&file, "b");
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a->element->dtype, CLNORM_F32);
    assert_int_equal(a->rank, 2);
    assert_int_equal(a->shape[0], 2);
    assert_int_equal(a->shape[1], 3);
    assert_int_equal(a->size, 24);
    assert_int_equal(a->data[0], 0);
    assert_int_equal(b->element->dtype, CLNORM_BF16);
    assert_int_equal(b->count, 3);
    assert_int_equal(b->data[0], 24);
    char shape[SHAPE_TEXT];
    assert_string_equal(tensor_shape_text(a, shape), "[2, 3]");
    assert_null(tensor_file_find(&file, "__metadata__"));
    assert_null(tensor_file_find(&file, "c"));
    tensor_file_close(&file);
    free(bytes.at);
}

static void test_safetensors_reads_odd_but_valid_files(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t size;
    } files[] = {
        {"{}", 0},
        {"{\"__metadata__\":{}}", 0},
        {"{\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8},
        {"{\"e\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}}", 0},
        {"{\"e\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[2,2]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
         2},
        {"{\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[1,9]},"
         "\"t\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         9},
        {"{\"q\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3},
        {"{\"\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,1],\"more\":null}}", 1},
        {"{ \"a\" : { \"more\" : [ true , {\"b\":-1.5e+3,\"c\":[]} , 0, \"\\\"\" ] ,\t\"shape\" : [ ] ,\n"
         "\"data_offsets\":[0 ,1] , \"dtype\":\"U8\" } }\r\n",
         1},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!accepts(FORMAT_SAFETENSORS, safetensors(files[i].header, files[i].size)))
            fail_msg("refused %s", files[i].header);
}

static const struct {
    const char *header;
    size_t size;
    const char *part;
} wrongs[] = {
    {"", 4, "does not begin with '{'"},
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{", 0, "header, byte"},
    {"{}x", 0, "header, byte"},
    {"{\"a\":1}", 0, "'a': expected an object of dtype, shape and data_offsets"},
    {"{\"a\":{}}", 0, "no dtype"},
    {"{\"a\":{\"dtype\":5,\"shape\":[],\"data_offsets\":[0,0]}}", 0, "dtype must be a string"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype 'F33'"},
    {"{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype 'f32'"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "it has no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}", 16, "shape must be a list"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "shape[0] must be a whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "shape[0] must be a whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,\"1\"],\"data_offsets\":[0,4]}}", 4, "shape[1] must be a whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "rank above 16"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, "whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551617],\"data_offsets\":[0,4]}}", 4, "an integer is too large"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "it has no data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets must be"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "data_offsets must be"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]}}", 4, "data_offsets must be"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "do not lie within"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "data_offsets must be"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "do not lie within"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9223372036854775803,9223372036854775807]}}", 4,
     "do not lie within"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "span 4 bytes, but F32 of shape [2] takes 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "span 8 bytes, but F32 of shape [1] takes 4"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
     7, "tensors 'a' and 'b' overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
     4, "overlap"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6, "2 bytes of data before tensor 'a'"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 6, "last 2 bytes"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     1, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "duplicate"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ must be"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "a duplicate __metadata__"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ 'a' must be a string"},
    {"{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "header, byte"},
    {"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "header, byte"},
    {"{\"a\\n\\u001b[31m\":{\"dtype\":\"?\",\"shape\":[],\"data_offsets\":[0,0]}}", 0, "'a??[31m': unknown dtype '?'"},
    {"{\"a\":{\"dtype\":\"?\"}}", 0, "'a': it has no shape"},
    {"{\"a\":{\"more\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}}", 0, "nested too deeply"},
    {"{\"a\":{\"more\":[1,]}}", 0, "header, byte 16: expected a value"},
    {"{\"a\":{\"more\":-}}", 0, "header, byte"},
    {"{\"a\":{\"more\":01}}", 0, "header, byte"},
    {"{\"a\":{\"more\":1.}}", 0, "header, byte"},
    {"{\"a\":{\"more\":1e}}", 0, "header, byte"},
    {"{\"a\":{\"more\":nul}}", 0, "header, byte"},
    {"{\"a\":{\"more\":\"\t\"}}", 0, "a control character"},
    {"{\"a\":{\"more\" 1}}", 0, "expected ':'"},
    {"{\"a\":{} \"b\":{}}", 0, "it has no dtype"},
    {"{\"\\ud800\":{}}", 0, "bad escape"},
    {"{\"\\udc00\":{}}", 0, "bad escape"},
    {"{\"\\ud800\\u0041\":{}}", 0, "bad escape"},
    {"{\"\\u12g4\":{}}", 0, "bad escape"},
    {"{\"\\x\":{}}", 0, "bad escape"},
    {"{\"\xc0\x80\":{}}", 0, "UTF-8"},
    {"{\"\xe0\x80\x80\":{}}", 0, "UTF-8"},
    {"{\"\xed\xa0\x80\":{}}", 0, "UTF-8"},
    {"{\"\xf4\x90\x80\x80\":{}}", 0, "UTF-8"},
    {"{\"\xf8\x88\x80\x80\x80\":{}}", 0, "UTF-8"},
    {"{\"\xc3(\":{}}", 0, "UTF-8"},
};

static void test_safetensors_refuses_wrong_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++)
        assert_refused(FORMAT_SAFETENSORS, safetensors(wrongs[i].header, wrongs[i].size), wrongs[i].part);
    static const char header[] = "{}?garbage";
    const struct bytes bytes = safetensors(header, 0);
    *(unsigned char *)memchr(bytes.at, '?', bytes.size) = '\0';
    assert_refused(FORMAT_SAFETENSORS, bytes, "continues after its last");
}

static void test_safetensors_refuses_absurd_lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {0,          3,         100,        100000000,      100000001,
                                       UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const struct bytes bytes = safetensors("{}", 0);
        for (unsigned b = 0; b < 8; b++)
            bytes.at[b] = (unsigned char)(lengths[i] >> 8 * b);
        assert_refused(FORMAT_SAFETENSORS, bytes, "header");
    }
    for (size_t size = 0; size < 8; size++)
        assert_refused(FORMAT_SAFETENSORS, copy_of("\2\0\0\0\0\0\0\0", size), "too few");
}

/* Names are UTF-8, with escapes replaced. */
static void test_safetensors_reads_names(void **state) {
    (void)state;
    static const struct {
        const char *quoted, *name;
    } names[] = {
        {"\\u0041\\u00e9\\u20ac\\ud83d\\ude00", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t"},
        {"\x7f\xf4\x8f\xbf\xbf\\uFFff", "\x7f\xf4\x8f\xbf\xbf\xef\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char header[256];
        (void)snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
                       names[i].quoted);
        const struct bytes bytes = safetensors(header, 1);
        struct tensor_file file;
        struct fault fault = {0};
        assert_true(tensor_file_parse(&file, FORMAT_SAFETENSORS, "m.safetensors", bytes.at, bytes.size, &fault));
        assert_non_null(tensor_file_find(&file, names[i].name));
        tensor_file_close(&file);
        free(bytes.at);
    }
}

static uint64_t most_resident(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

/* Calls function in a process of its own, which may use up to bytes more memory. */
static void with_limit(uint64_t bytes, void (*function)(struct bytes file), struct bytes file) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uint64_t before = most_resident();
        function(file);
        _exit(most_resident() - before <= bytes ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* For with_limit: the exit code is the result. */
static void refuse_or_exit(struct bytes bytes) {
    struct tensor_file file;
    struct fault fault = {0};
    const bool done = tensor_file_parse(&file, FORMAT_SAFETENSORS, "m.safetensors", bytes.at, bytes.size, &fault);
    if (done || fault.code != EXIT_REQUEST)
        _exit(1);
}

static void accept_or_exit(struct bytes bytes) {
    struct tensor_file file;
    struct fault fault = {0};
    if (!tensor_file_parse(&file, FORMAT_SAFETENSORS, "m.safetensors", bytes.at, bytes.size, &fault) ||
        file.count != 100000)
        _exit(1);
    tensor_file_close(&file);
}

/* A header of count parts. # in part stands for the part's number. */
static struct bytes header_of(const char *start, const char *part, unsigned count, const char *end) {
    const size_t most = strlen(start) + strlen(end) + count * (strlen(part) + 16) + 1;
    char *const header = malloc(most);
    assert_non_null(header);
    char *at = header + sprintf(header, "%s", start);
    for (unsigned i = 0; i < count; i++) {
        const char *const place = strchr(part, '#');
        at += sprintf(at, "%s", i ? "," : "");
        at += place ? sprintf(at, "%.*s%u%s", (int)(place - part), part, i, place + 1) : sprintf(at, "%s", part);
    }
    (void)sprintf(at, "%s", end);
    const struct bytes file = safetensors(header, 0);
    free(header);
    return file;
}

/* Headers of up to 30 MB are refused in 64 MiB. 100,000 tensors load in that and 8 times the size of their file. */
static void test_safetensors_memory_is_bounded(void **state) {
    (void)state;
    static const char good[] = "\"layers.#\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}";
    const struct bytes files[] = {
        header_of("{\"x\":[", "{}", 10000000, "]}"),
        header_of("{\"x\":{\"more\":[", "[]", 10000000, "]}}"),
        header_of("{\"__metadata__\":{", "\"#\":\"\"", 500000, "},\"x\":1}"),
    };
    const uint64_t slack = UINT64_C(64) << 20; /* includes what the system and sanitizers add */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        with_limit(slack, refuse_or_exit, files[i]);
        free(files[i].at);
    }
    const struct bytes many = header_of("{", good, 100000, "}");
    with_limit(8 * many.size + slack, accept_or_exit, many);
    free(many.at);
}

/* A recursive parser must stop before the stack overflows. */
static void test_safetensors_refuses_deep_nesting(void **state) {
    (void)state;
    enum { DEPTH = 1000000 };
    static const char start[] = "{\"a\":{\"more\":";
    static const char openings[] = {'[', '{'};
    for (size_t i = 0; i < 2; i++) {
        char *const header = calloc(1, 64 + (size_t)DEPTH * 5);
        assert_non_null(header);
        char *at = header + sprintf(header, "%s", start);
        for (int d = 0; d < DEPTH; d++)
            at += sprintf(at, "%c%s", openings[i], openings[i] == '{' ? "\"\":" : "");
        assert_refused(FORMAT_SAFETENSORS, safetensors(header, 0), "values are nested too deeply");
        free(header);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors_reads_tensors),
        cmocka_unit_test(test_safetensors_reads_odd_but_valid_files),
        cmocka_unit_test(test_safetensors_refuses_wrong_files),
        cmocka_unit_test(test_safetensors_refuses_absurd_lengths),
        cmocka_unit_test(test_safetensors_refuses_deep_nesting),
        cmocka_unit_test(test_safetensors_reads_names),
        cmocka_unit_test(test_safetensors_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
