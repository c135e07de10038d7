/* What the commands print alike. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "clnorm/clnorm.h"

/* A line, cut where 80 columns end, that replaces itself on a terminal's stderr; nothing where stderr is none. */
__attribute__((format(printf, 1, 2))) void progress(const char *format, ...);

/* Takes the line away. */
void progress_end(void);

/* Prints a label and a text; the text continues below itself where 80 columns end, after a space or a comma that is
 * in no brackets. */
void print_wrapped(const char *label, const char *text);

/* A name in a column so wide, and a space. A longer name has a line of its own. */
void print_column(const char *name, int width);

/* What a word ends in that counts so many: "" or "s". */
const char *plural(size_t count);

enum { LEFT_TEXT = 32 };

/* "about 25 min left". Returns text. */
char *left_text(double seconds, char text[LEFT_TEXT]);

enum { US_TEXT = 24 };

/* Microseconds, "12.34": 8 characters up to 28 hours. Returns text. */
char *us_text(double us, char text[US_TEXT]);

enum { SIZE_TEXT = 24 };

/* "1.5 GiB". Returns text. */
char *size_text(uint64_t bytes, char text[SIZE_TEXT]);

/* One line after a label, cut at 80 columns: "device   0:1 NVIDIA H200 (NVIDIA CUDA)". */
void device_print_line(const char *label, const clnorm_device_info *device);

/* Several lines, at most 80 columns wide. */
void device_print(const clnorm_device_info *device);

/* NULL when out of memory. */
json_t *device_json(const clnorm_device_info *device);

/* Prints and releases it, indented. false: out of memory, json NULL. */
bool json_print(json_t *json);

#endif
