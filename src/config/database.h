/* Configs measured on devices of a family: text files of `clnorm tune --grid`, src/config/database/FAMILY.txt, embedded
 * when the library is built.
 *
 *     # who measured it, when, on which device and driver
 *     clnorm database 1
 *     match platform=nvidia capability=90
 *     rms_norm bf16 4096: vec=8,lanes=256,keep=reread
 *     rms_norm bf16 4096 few: vec=8,lanes=512,keep=registers
 *
 * Every term of a match line must hold: platform=pocl|nvidia|mesa|other, capability=N (NVIDIA's, 90 for 9.0), vector=N
 * (floats of a CPU's vector register), name=TEXT and vendor=TEXT (a part of the name). Rows are those of a tuning file. */
#ifndef CLN_DATABASE_H
#define CLN_DATABASE_H

#include "config/knobs.h"

struct cln_database_file {
    const char *name;
    const char *text;
};

/* The files. A name of NULL ends the list. */
extern const struct cln_database_file cln_database_files[];

/* The rows of the first file that matches the device; NULL: no file does. */
const char *cln_database_rows(const struct cln_database_file *files, const clnorm_device_info *device);

/* A row's width and knobs. */
struct cln_database_row {
    uint64_t cols; /* 0: no row */
    struct cln_config knobs;
};

/* The two rows of an operation nearest to a width: at the width or next below, and next above. */
struct cln_database_rows {
    struct cln_database_row below, above;
};

/* The widths whose rows are considered: those that allow vectors of vec elements and, unless that is widest, no wider ones;
 * or with lead those where rows begin anywhere within vectors of widest elements. */
struct cln_database_widths {
    uint64_t vec, widest;
    bool lead;
};

/* name: an operation and its dtypes, "rms_norm bf16". few: considers rows with that word, else those without it. */
struct cln_database_rows cln_database_find(const char *rows, const char *name, uint64_t cols, bool few,
                                           struct cln_database_widths widths);

#endif
