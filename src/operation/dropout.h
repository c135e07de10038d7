/* Dropout of the norms, forward and backward: checks its probability, and converts it into kernel arguments. */
#ifndef CLN_DROPOUT_H
#define CLN_DROPOUT_H

#include "plan/stage.h"

/* Refuses an invalid probability, and more rows or columns than the generator's counter can count. */
clnorm_status cln_dropout_check(double probability, uint64_t rows, uint64_t cols);

/* threshold: an element is kept if its random word is at least this. kept_scale: the factor of kept elements. */
struct cln_arguments cln_dropout_arguments(double probability);

#endif
