#include "config/database.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/comment.h"
#include "base/status.h"

enum { TERM = 128, KNOBS_TEXT = 512 };

/* The next line, or the end of the text. */
static const char *next_line(const char *line) {
    const char *const end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* --------------------------------------------------------------------------------------------------- matching devices */

/* term: KEY=VALUE. */
static bool term_holds(const char *term, const clnorm_device_info *device) {
    const char *const equals = strchr(term, '=');
    if (!equals)
        return false;
    const char *const value = equals + 1;
    const size_t key = (size_t)(value - term);
    if (!strncmp(term, "platform=", key))
        return !strcmp(value, clnorm_platform_family_name(device->family));
    if (!strncmp(term, "capability=", key))
        return strtoul(value, NULL, 10) == device->compute_capability;
    if (!strncmp(term, "vector=", key))
        return strtoul(value, NULL, 10) == device->native_vector_float;
    if (!strncmp(term, "name=", key))
        return strstr(device->name, value) != NULL;
    return !strncmp(term, "vendor=", key) && strstr(device->vendor, value) != NULL;
}

/* line: "match TERM TERM …". */
static bool matches(const char *line, const clnorm_device_info *device) {
    const char *const end = next_line(line);
    for (const char *at = line + strlen("match"); at < end && *at == ' ';) {
        char term[TERM] = "";
        const size_t length = strcspn(++at, " \n");
        if (length < sizeof term)
            memcpy(term, at, length);
        if (!term_holds(term, device))
            return false;
        at += length;
    }
    return true;
}

const char *cln_database_rows(const struct cln_database_file *files, const clnorm_device_info *device) {
    for (; files->name; files++)
        for (const char *line = files->text; *line; line = next_line(line))
            if (!strncmp(line, "match ", 6) && matches(line, device))
                return next_line(line);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------- finding rows */

static struct cln_database_row read_knobs(uint64_t cols, const char *knobs) {
    struct cln_database_row row = {0};
    char text[KNOBS_TEXT] = "";
    const size_t length = cols ? cln_before_comment(knobs, strcspn(knobs, "\r\n")) : 0;
    if (length >= sizeof text)
        return row;
    if (length)
        memcpy(text, knobs, length);
    if (length && !cln_config_parse(text, &row.knobs))
        row.cols = cols;
    return row;
}

static bool is_alike(uint64_t width, struct cln_database_widths widths) {
    const uint64_t aligned = cln_smaller(cln_lowest_bit(width), widths.widest);
    return widths.lead ? aligned < widths.widest : aligned == widths.vec;
}

struct cln_database_rows cln_database_find(const char *rows, const char *name, uint64_t cols, bool few,
                                           struct cln_database_widths widths) {
    const char *const ending = few ? " few: " : ": ";
    const size_t name_length = strlen(name), ending_length = strlen(ending);
    const char *below = NULL, *above = NULL;
    uint64_t below_cols = 0, above_cols = 0;
    for (const char *line = rows; *line; line = next_line(line)) {
        if (strncmp(line, name, name_length) != 0 || line[name_length] != ' ')
            continue;
        char *end;
        const uint64_t width = strtoull(line + name_length + 1, &end, 10);
        if (strncmp(end, ending, ending_length) != 0 || !is_alike(width, widths))
            continue;
        if (width <= cols && width > below_cols) {
            below_cols = width;
            below = end + ending_length;
        } else if (width > cols && (!above_cols || width < above_cols)) {
            above_cols = width;
            above = end + ending_length;
        }
    }
    return (struct cln_database_rows){read_knobs(below_cols, below), read_knobs(above_cols, above)};
}
