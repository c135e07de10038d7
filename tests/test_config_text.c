/* Configs as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "knob.h"

static void text_is_read_back(void **state) {
    (void)state;
    const clnorm_config every = {{16, 1024, 2, 3, 2, 8, 2, 2, 3, 2, 65536, 4, 2, 64, 2, 1, 9, 2, 7}};
    clnorm_config read;
    char text[320];
    const size_t length = clnorm_config_text(&every, text, sizeof text);
    assert_string_equal(text,
                        "vec=16,lanes=1024,segments=2,iterations=3,keep=reread,unroll=8,reduce=shuffle,stores=streaming,"
                        "weights=kept,isa=ptx,tile=65536,accumulator=split,pipeline=2,chunks=64,row_split=exchange,"
                        "groups_per_cu=1,run_length=9,prefetch=next,local_vectors=7");
    assert_int_equal(length, strlen(text));
    assert_int_equal(clnorm_config_parse(text, &read), CLNORM_SUCCESS);
    assert_memory_equal(&read, &every, sizeof every);

    char part[8];
    memset(part, 'x', sizeof part);
    assert_int_equal(clnorm_config_text(&every, part, sizeof part), length);
    assert_string_equal(part, "vec=16,");
    assert_int_equal(clnorm_config_text(&every, NULL, 0), length);

    assert_int_equal(clnorm_config_text(NULL, part, sizeof part), 0);
    assert_string_equal(part, "");

    const clnorm_config automatic = {{0}};
    assert_int_equal(clnorm_config_text(&automatic, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(clnorm_config_parse("", &read), CLNORM_SUCCESS);
    assert_memory_equal(&read, &automatic, sizeof automatic);
    assert_int_equal(clnorm_config_parse("vec=2,keep=registers,vec=4", &read), CLNORM_SUCCESS);
    assert_int_equal(KNOB(read, vec), 4);
    assert_int_equal(KNOB(read, keep), CLN_KEEP_REGISTERS);
}

static void other_text_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"vec", "'vec'"},
        {"ve=4", "'ve=4'"},
        {"=4", "'=4'"},
        {"vec=4,", "last comma"},
        {"vec=4,,lanes=1", "''"},
        {"vec=", "vec="},
        {"vec=-1", "vec=-1"},
        {"vec=3", "vec=3: expected a power of two from 1 to 16"},
        {"lanes=2048", "lanes=2048: expected a power of two from 1 to 1024"},
        {"pipeline=4", "pipeline=4: expected 1 to 3"},
        {"vec=4x", "vec=4x"},
        {"vec=4294967296", "vec=4294967296"},
        {"vec=00000000000000000000000000000004", "2^32"},
        {"keep=1", "registers, reread"},
        {"keep=", "registers, reread"},
    };
    const clnorm_config before = {{1, 2, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clnorm_config config = before;
        if (clnorm_config_parse(cases[i].text, &config) != CLNORM_INVALID_VALUE ||
            !strstr(clnorm_error_detail(), cases[i].says))
            fail_msg("\"%s\": %s", cases[i].text, clnorm_error_detail());
        assert_memory_equal(&config, &before, sizeof before);
    }
    clnorm_config config;
    assert_int_equal(clnorm_config_parse(NULL, &config), CLNORM_INVALID_ARGUMENT);
    assert_int_equal(clnorm_config_parse("", NULL), CLNORM_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read_back),
        cmocka_unit_test(other_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
