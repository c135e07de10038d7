/* Dropout of the norms, forward and backward: checks its probability, and converts it into kernel arguments. */
#ifndef CLN_DROPOUT_H
#define CLN_DROPOUT_H

#include "clnorm/clnorm.h"

/* Refuses an invalid probability, and more rows or columns than the generator's counter can count. */
clnorm_status cln_dropout_check(double probability, uint64_t rows, uint64_t cols);

/* An element is kept if its random word is at least this threshold. */
cl_uint cln_dropout_threshold(double probability);

/* The factor of kept elements. */
double cln_dropout_scale(double probability);

#endif
