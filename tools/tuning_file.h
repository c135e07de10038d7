/* A device's file of measured configs; clnorm_tuning_path of the library says where it is, and src/tuning.h what is in it.
 */
#ifndef TUNING_FILE_H
#define TUNING_FILE_H

#include <stddef.h>

#include "fault.h"

enum { TUNING_KEY = 96 }; /* bytes that any key fits in */

struct tuning_file {
    char *path;
    char *head;  /* the lines before the first row */
    char **rows; /* lines, without their ends */
    size_t count, capacity;
};

/* path: NULL for the one that the library reads. Rows of another device or driver are not taken over. On failure nothing is
 * left to free. */
bool tuning_file_read(struct tuning_file *file, const char *path, const clnorm_device_info *device, struct fault *fault);

void tuning_file_free(struct tuning_file *file);

/* Puts a row in place of the one with the same key, clnorm_plan_tuning_key's. config NULL: only takes that one away. share:
 * of the time of the library's own choice. */
bool tuning_file_put(struct tuning_file *file, const char *key, const clnorm_config *config, double share,
                     struct fault *fault);

/* Writes the file anew, and its folder where that is missing; who reads it meanwhile sees the old one. */
bool tuning_file_write(const struct tuning_file *file, struct fault *fault);

#endif
