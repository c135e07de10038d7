#include "widths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static const uint64_t usual_widths[] = {
    64,    80,    96,    128,   192,   256,   257,   384,   512,   640,   768,   896,   1000,  1001,
    1024,  1152,  1280,  1536,  1600,  1792,  2001,  2048,  2304,  2560,  2880,  3072,  3584,  3840,
    4096,  4608,  5001,  5120,  5376,  6144,  6656,  7168,  8192,  9216,  10001, 10240, 11008, 12288,
    13824, 14336, 16384, 18432, 20480, 24576, 28672, 32768, 40960, 49152, 65536,
};

struct widths widths_usual(void) {
    struct widths widths = {.count = sizeof usual_widths / sizeof *usual_widths};
    memcpy(widths.width, usual_widths, sizeof usual_widths);
    return widths;
}

bool numbers_read(const char *text, const char *option, uint64_t *numbers, size_t most, size_t *count,
                  struct fault *fault) {
    *count = 0;
    for (const char *at = text; *at;) {
        char *end;
        errno = 0;
        uint64_t number = strtoull(at, &end, 10);
        const bool digits = end > at && *at >= '0' && *at <= '9' && !errno;
        const unsigned shift = *end == 'M' ? 20 : *end == 'K' ? 10 : 0;
        end += shift != 0;
        if (!digits || !number || number > UINT32_MAX || (*end && *end != ',') || (*end && !end[1]) || *count == most)
            return fault_set(fault, EXIT_REQUEST,
                             "--%s %s: expected at most %zu number%s from 1 to 4294967295, such as 64%s or 64M", option,
                             text, most, plural(most), most > 1 ? ",128" : "");
        number <<= shift;
        for (size_t i = 0; i < *count; i++)
            if (numbers[i] == number)
                return fault_set(fault, EXIT_REQUEST, "--%s %s: %.*s is given twice", option, text, (int)(end - at), at);
        numbers[(*count)++] = number;
        at = *end ? end + 1 : end;
    }
    return *count > 0 || fault_set(fault, EXIT_REQUEST, "--%s: expected numbers", option);
}

static int narrower_first(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

bool widths_read(const char *text, const char *option, struct widths *widths, struct fault *fault) {
    *widths = widths_usual();
    if (!strcmp(text, "grid"))
        return true;
    if (!numbers_read(text, option, widths->width, MOST_WIDTHS, &widths->count, fault))
        return false;
    qsort(widths->width, widths->count, sizeof *widths->width, narrower_first);
    return true;
}
