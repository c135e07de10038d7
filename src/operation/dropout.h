/* Dropout, as both directions of the norms have it: its probability and the numbers that kernels are given for that. */
#ifndef CLN_DROPOUT_H
#define CLN_DROPOUT_H

#include "clnorm/clnorm.h"

/* Refuses what is no probability, and rows and columns that the generator's counter has no room for. */
clnorm_status cln_dropout_check(double probability, uint64_t rows, uint64_t cols);

/* Random words from here on keep their element. */
cl_uint cln_dropout_threshold(double probability);

/* The factor of elements that are kept. */
double cln_dropout_scale(double probability);

#endif
