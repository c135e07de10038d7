/* The file that `clnorm tune --grid` extends: rows of the library's database, src/config/database. */
#ifndef GRID_FILE_H
#define GRID_FILE_H

#include <stdio.h>

#include "fault.h"

struct grid_file {
    const char *path;
    FILE *stream;
    const clnorm_device_info *device;
    char *rows;   /* the file's rows, each after a newline; of a new row only its key */
    bool made;    /* the file was not there before */
    bool replace; /* the first row replaces what the file holds */
};

/* Opens a file of this device, or makes one. A last row without an end, which a killed run may leave, is dropped. Refused:
 * a file that another run has open, that is not regular, or whose rows are not of a database for the device. force: such
 * rows are replaced, when there is a new one. path and device must outlive the file. */
bool grid_file_open(struct grid_file *file, const char *path, const clnorm_device_info *device, bool force,
                    struct fault *fault);

/* key: clnorm_plan_tuning_key, such as "rms_norm bf16 4096 few". */
bool grid_file_has(const struct grid_file *file, const char *key);

/* Adds a row. It is in the file when this returns. Knobs that follow from others are left out. */
bool grid_file_add(struct grid_file *file, const char *key, const clnorm_config *config, uint64_t cols, double us,
                   struct fault *fault);

/* good: the grid is complete, so that a file without rows gets its head. Takes half-open files. */
bool grid_file_close(struct grid_file *file, bool good, struct fault *fault);

#endif
