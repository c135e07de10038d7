/* A device's file of measured configs, to be changed: clnorm_tuning_path of the library says where it is, and
 * src/config/tuning.h what is in it. Lines that are not changed stay as they are, comments too. */
#ifndef TUNING_FILE_H
#define TUNING_FILE_H

#include <stddef.h>

#include "fault.h"

enum { TUNING_KEY = 96 }; /* bytes that any key fits in */

struct tuning_file {
    char *path;
    char **lines; /* without their ends */
    size_t count, capacity;
    size_t first_row; /* lines before it are the head, and comments */
};

/* path: NULL for the one that the library reads. Fails where the file cannot be written, or is not one that the library
 * would use on this device; force starts the latter anew. On failure nothing is left to free. */
bool tuning_file_read(struct tuning_file *file, const char *path, const clnorm_device_info *device, bool force,
                      struct fault *fault);

void tuning_file_free(struct tuning_file *file);

size_t tuning_file_rows(const struct tuning_file *file);

/* Puts a row in the place of the one with the same key, clnorm_plan_tuning_key's, or at the end. config NULL: only takes
 * that one away. share: of the time of the library's own choice. */
bool tuning_file_put(struct tuning_file *file, const char *key, const clnorm_config *config, double share,
                     struct fault *fault);

/* Writes the file anew; who reads it meanwhile sees the old one. */
bool tuning_file_write(const struct tuning_file *file, struct fault *fault);

#endif
