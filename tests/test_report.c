/* Texts about a device: each value is printed in full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

enum { MOST_TEXT = 8192 };

static const char long_name[] = "A device with a name of many words that does not fit into one line of a terminal, and has "
                                "its most important word at the end: Omega";
static const char one_word[] =
    "A-device-with-a-name-of-one-word-that-does-not-fit-into-one-line-of-a-terminal-but-ends-in:Omega";

static clnorm_device_info device_of(const char *name) {
    clnorm_device_info device = CLNORM_DEVICE_INFO_INIT;
    device.platform_index = 1;
    device.device_index = 2;
    device.opencl_c_version = 300;
    (void)snprintf(device.name, sizeof device.name, "%s", name);
    (void)snprintf(device.platform_name, sizeof device.platform_name, "The platform: %s", name);
    (void)snprintf(device.driver, sizeof device.driver, "The driver: %s", name);
    return device;
}

/* What print writes to stdout. */
static void text_of(void (*print)(const clnorm_device_info *), const clnorm_device_info *device, char text[MOST_TEXT]) {
    FILE *const file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    print(device);
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(file);
    text[fread(text, 1, MOST_TEXT - 1, file)] = '\0';
    fclose(file);
}

/* Joins lines that were wrapped: a line break and the spaces that follow become one space. */
static void unwrap(char *text) {
    char *end = text;
    for (const char *c = text; *c; c++) {
        const bool wrapped = *c == '\n';
        *end++ = (char)(wrapped ? ' ' : *c);
        c += wrapped ? strspn(c + 1, " ") : 0;
    }
    *end = '\0';
}

static void print_line(const clnorm_device_info *device) {
    device_print_line("device   ", device);
}

static void check_words(const char *name, void (*print)(const clnorm_device_info *), const char *begin) {
    const clnorm_device_info device = device_of(name);
    char text[MOST_TEXT];
    text_of(print, &device, text);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (name == long_name)
            assert_in_range(strcspn(line, "\n"), 1, 80);
    unwrap(text);
    char expected[sizeof device.name + 32];
    (void)snprintf(expected, sizeof expected, "%s%s", begin, name);
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, device.platform_name));
    if (print == device_print) {
        assert_non_null(strstr(text, device.driver));
        assert_non_null(strstr(text, "OpenCL C 3.0"));
    }
}

static void test_a_long_name_is_printed_in_full(void **state) {
    (void)state;
    check_words(long_name, device_print, "1:2   ");
    check_words(one_word, device_print, "1:2   ");
    check_words(long_name, print_line, "device   1:2 ");
    check_words(one_word, print_line, "device   1:2 ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_name_is_printed_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
