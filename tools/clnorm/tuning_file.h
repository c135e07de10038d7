/* Changes a device's file of measured configs. clnorm_tuning_path of the library returns its path, and src/config/tuning.h
 * describes its format. All other lines stay as they are, comments included. */
#ifndef TUNING_FILE_H
#define TUNING_FILE_H

#include <stddef.h>

#include "fault.h"

enum { TUNING_KEY = 96 }; /* bytes that hold any key */

struct tuning_file {
    char *path;
    char **lines; /* without their ends */
    size_t count, capacity;
    size_t first_row; /* the lines before it are the head and comments */
    bool force;       /* a file that the library would not use is replaced */
};

/* path: NULL for the file that the library reads. Fails where the file cannot be written, or where the library would not
 * use it on this device; force replaces such a file. After a failure there is nothing to free. */
bool tuning_file_read(struct tuning_file *file, const char *path, const clnorm_device_info *device, bool force,
                      struct fault *fault);

void tuning_file_free(struct tuning_file *file);

size_t tuning_file_rows(const struct tuning_file *file);

/* Replaces the row of a key, which is clnorm_plan_tuning_key's, or appends one. config NULL: removes the row. share: the
 * time over that of the library's own choice. */
bool tuning_file_put(struct tuning_file *file, const char *key, const clnorm_config *config, double share,
                     struct fault *fault);

/* Replaces the file at once: a reader sees the old one or the new one. */
bool tuning_file_write(const struct tuning_file *file, struct fault *fault);

/* Reads the file again, replaces the row of a key as tuning_file_put does, and writes the file. Other processes that update
 * a file of the same folder wait meanwhile, so that none loses the row of another. */
bool tuning_file_update(struct tuning_file *file, const clnorm_device_info *device, const char *key,
                        const clnorm_config *config, double share, struct fault *fault);

#endif
