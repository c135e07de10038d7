#include "operation/dropout.h"

#include <inttypes.h>
#include <math.h>

#include "base/status.h"

clnorm_status cln_dropout_check(double probability, uint64_t rows, uint64_t cols) {
    if (!(probability >= 0 && probability < 1))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.dropout is %g: expected a probability, 0 or more and less than 1",
                        probability);
    const uint64_t most = UINT64_C(1) << 32;
    if (probability > 0 && (rows > most || cols > most))
        return cln_fail(CLNORM_INVALID_SHAPE,
                        "desc.rows is %" PRIu64 ", desc.cols is %" PRIu64 ": expected at most 2^32 with dropout", rows,
                        cols);
    return CLNORM_SUCCESS;
}

struct cln_arguments cln_dropout_arguments(double probability) {
    return (struct cln_arguments){{
        cln_integer("threshold", (uint64_t)floor(probability * 0x1p32)),
        cln_real("kept_scale", 1 / (1 - probability)),
    }};
}
