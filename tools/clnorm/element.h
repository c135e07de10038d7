/* The element types of files, and their values as doubles. */
#ifndef ELEMENT_H
#define ELEMENT_H

#include <stdint.h>

#include "clnorm/clnorm.h"

struct element {
    const char *name;   /* as safetensors spells it: "BF16" */
    const char *npy;    /* as npy spells it: "<f4"; NULL where npy has no such type */
    clnorm_dtype dtype; /* CLNORM_DTYPE_NONE: files may have it, but no operation reads it as real numbers */
    unsigned bits;
};

/* Each returns NULL where there is none. */
const struct element *element_by_name(const char *name);
const struct element *element_by_npy(const char *descr);
const struct element *element_by_dtype(clnorm_dtype dtype);

/* The functions below are for elements that have a dtype. data may have any alignment; values are little-endian, as in
 * files, on a little-endian host. */

double element_load(const struct element *element, const void *data, uint64_t index);

/* The largest finite number. */
double element_largest(const struct element *element);

/* Rounds to nearest even. A value beyond the range becomes infinite, in 8 bits the largest number. */
double element_round(const struct element *element, double value);

/* Stores element_round of value. */
void element_store(const struct element *element, void *data, uint64_t index, double value);

/* The largest relative error of rounding to nearest: half a unit in the last place of 1. */
double element_epsilon(const struct element *element);

#endif
