/* Reading and writing tensor files: what is sound is read to the bit, everything else is refused in one line. Bytes to be
 * parsed lie in allocations of just their size, so that a sanitizer sees a read past them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tensor_file.h"
#include "tensor_write.h"

struct bytes {
    unsigned char *at;
    size_t size;
};

static struct bytes copy_of(const void *at, size_t size) {
    const struct bytes copy = {malloc(size ? size : 1), size};
    assert_non_null(copy.at);
    memcpy(copy.at, at, size);
    return copy;
}

/* A safetensors file of a header and size bytes of data that count 0, 1, 2, … */
static struct bytes safetensors(const char *header, size_t size) {
    const size_t length = strlen(header);
    const struct bytes file = {malloc(8 + length + size), 8 + length + size};
    assert_non_null(file.at);
    for (unsigned i = 0; i < 8; i++)
        file.at[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memcpy(file.at + 8, header, length);
    for (size_t i = 0; i < size; i++)
        file.at[8 + length + i] = (unsigned char)i;
    return file;
}

static struct bytes npy(unsigned char version, const char *header, size_t size) {
    const size_t length = strlen(header);
    const size_t start = version == 1 ? 10 : 12;
    const struct bytes file = {calloc(1, start + length + size), start + length + size};
    assert_non_null(file.at);
    memcpy(file.at, "\x93NUMPY", 6);
    file.at[6] = version;
    file.at[8] = (unsigned char)length;
    file.at[9] = (unsigned char)(length >> 8);
    memcpy(file.at + start, header, length);
    return file;
}

static const char *path_of(enum tensor_format format) {
    return format == FORMAT_NPY ? "folder/x.npy" : "folder/x.safetensors";
}

/* Parses and frees bytes; reads every byte of every tensor. What is refused is refused as a wrong request, in a line that
 * begins with the file's name. */
static bool accepts(enum tensor_format format, struct bytes bytes) {
    struct tensor_file file;
    struct fault fault = {0};
    const bool done = tensor_file_parse(&file, format, path_of(format), bytes.at, bytes.size, &fault);
    unsigned sum = 0;
    for (size_t i = 0; i < file.count; i++) {
        const struct tensor *const tensor = &file.tensors[i];
        assert_ptr_equal(tensor_file_find(&file, tensor->name), tensor);
        assert_true(tensor->data >= bytes.at && tensor->data + tensor->size <= bytes.at + bytes.size);
        for (uint64_t b = 0; b < tensor->size; b++)
            sum += tensor->data[b];
    }
    if (!done) {
        assert_int_equal(fault.code, EXIT_REQUEST);
        assert_true(!strncmp(fault.text, path_of(format), strlen(path_of(format))));
        assert_true(strlen(fault.text) > strlen(path_of(format)) + 2);
        assert_null(strchr(fault.text, '\n'));
        assert_null(file.tensors);
    } else {
        assert_string_equal(fault.text, "");
    }
    tensor_file_close(&file);
    free(bytes.at);
    return done && sum + 1 != 0;
}

/* Refuses bytes with a line that has part in it. */
static void assert_refused(enum tensor_format format, struct bytes bytes, const char *part) {
    struct tensor_file file;
    struct fault fault = {0};
    assert_false(tensor_file_parse(&file, format, path_of(format), bytes.at, bytes.size, &fault));
    if (!strstr(fault.text, part))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, part);
    assert_false(accepts(format, bytes));
}

/* ---------------------------------------------------------------------------------------------------- safetensors */

static const char two_tensors[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                  "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[24,30]},"
                                  "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}  ";

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

static void test_safetensors_reads_odd_but_sound_files(void **state) {
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
} lies[] = {
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
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "size 0 of its shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "size 0 of its shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,\"1\"],\"data_offsets\":[0,4]}}", 4, "size 1 of its shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, "rank past 16"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0, "whole number of bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551617],\"data_offsets\":[0,4]}}", 4, "too big integer"},
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

static void test_safetensors_refuses_lies(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        assert_refused(FORMAT_SAFETENSORS, safetensors(lies[i].header, lies[i].size), lies[i].part);
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

/* Names are kept as UTF-8, escapes undone. */
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

/* Calls function in a process of its own, whose memory may grow by so many bytes. */
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

/* In a child of the test, whose exit code tells. */
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

/* A header of many parts, each made by a format that may have one number. */
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
    at += sprintf(at, "%s", end);
    const struct bytes file = safetensors(header, 0);
    free(header);
    return file;
}

/* 30 MB of header take no more than a few times that; 100,000 tensors load within the same bounds. */
static void test_safetensors_memory_is_bounded(void **state) {
    (void)state;
    static const char good[] = "\"layers.#\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[0,0]}";
    const struct bytes files[] = {
        header_of("{\"x\":[", "{}", 10000000, "]}"),
        header_of("{\"x\":{\"more\":[", "[]", 10000000, "]}}"),
        header_of("{\"__metadata__\":{", "\"#\":\"\"", 500000, "},\"x\":1}"),
    };
    const uint64_t slack = UINT64_C(64) << 20; /* what the system and sanitizers add */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        with_limit(slack, refuse_or_exit, files[i]);
        free(files[i].at);
    }
    const struct bytes many = header_of("{", good, 100000, "}");
    with_limit(8 * many.size + slack, accept_or_exit, many);
    free(many.at);
}

/* A parser that recurses must stop before the stack does. */
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

static void test_npy_refuses_lies(void **state) {
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
    assert_refused(FORMAT_NPY, copy_of("\x93NUMPX\1\0\0\0\0\0", 12), "does not begin");
}

/* ------------------------------------------------------------------------------------------------------- mutation */

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Changes up to eight places: a bit, a byte, a number's digit, or a run that moves elsewhere. */
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

static void test_mutated_files_are_refused_or_sound(void **state) {
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

static void test_open_refuses_what_is_no_tensor_file(void **state) {
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

static void test_failed_write_leaves_what_was_there(void **state) {
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
        cmocka_unit_test(test_safetensors_reads_tensors),
        cmocka_unit_test(test_safetensors_reads_odd_but_sound_files),
        cmocka_unit_test(test_safetensors_refuses_lies),
        cmocka_unit_test(test_safetensors_refuses_absurd_lengths),
        cmocka_unit_test(test_safetensors_refuses_deep_nesting),
        cmocka_unit_test(test_safetensors_reads_names),
        cmocka_unit_test(test_safetensors_memory_is_bounded),
        cmocka_unit_test(test_npy_reads_arrays),
        cmocka_unit_test(test_npy_refuses_lies),
        cmocka_unit_test(test_mutated_files_are_refused_or_sound),
        cmocka_unit_test(test_open_refuses_what_is_no_tensor_file),
        cmocka_unit_test(test_written_files_read_back),
        cmocka_unit_test(test_failed_write_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
