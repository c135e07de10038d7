/* Output that commands share. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "clnorm/clnorm.h"
#include "fault.h"

/* Shows a line on a terminal's stderr, cut at 80 columns, in place of the one before. Prints nothing where stderr is not a
 * terminal. */
__attribute__((format(printf, 1, 2))) void progress(const char *format, ...);

/* Removes the line. */
void progress_end(void);

/* Prints a label and a text. The text wraps at 80 columns, at spaces and after commas outside brackets; its further lines
 * are indented by the width of the label. */
void print_wrapped(const char *label, const char *text);

/* Prints a name, with '?' in place of control characters, which a file's names may have. */
void print_name(const char *name);

/* Prints a name in a column of this width, and a space. A longer name gets a line of its own. */
void print_column(const char *name, int width);

/* The end of a counted noun: "" for one, else "s". */
const char *plural(uint64_t count);

enum { LEFT_TEXT = 32 };

/* "about 25 min left". Returns text. */
char *left_text(double seconds, char text[LEFT_TEXT]);

enum { US_TEXT = 24 };

/* Microseconds, "12.34": at most 8 characters below 100 s. Returns text. */
char *us_text(double us, char text[US_TEXT]);

enum { SIZE_TEXT = 24 };

/* "1.5 GiB". Returns text. */
char *size_text(uint64_t bytes, char text[SIZE_TEXT]);

/* The index, name and platform after a label, wrapped at 80 columns: "device   0:1 NVIDIA H200 (NVIDIA CUDA)". */
void device_print_line(const char *label, const clnorm_device_info *device);

/* Several lines, wrapped at 80 columns. */
void device_print(const clnorm_device_info *device);

/* NULL: out of memory. */
json_t *device_json(const clnorm_device_info *device);

/* Prints a value, indented, and releases it. NULL, for lack of memory, is a failure. */
bool json_print(json_t *json, struct fault *fault);

#endif
