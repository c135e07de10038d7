#include "operation/norm_checks.h"

#include <math.h>

#include "base/dtype.h"
#include "base/status.h"

void cln_norm_complete_z(clnorm_gate gate, clnorm_dtype x, clnorm_tensor *z) {
    if (!gate && cln_dtype_real(z->dtype))
        *z = (clnorm_tensor)CLNORM_TENSOR_NONE;
    else if (gate && !z->dtype && !cln_dtype_fp8(x))
        z->dtype = x;
}

clnorm_status cln_norm_check_gate(clnorm_gate gate, bool gate_first, clnorm_dtype z) {
    if (gate_first && !gate)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.gate_first is 1: expected 0 without a gate");
    if (gate && !z)
        return cln_dtype_refuse("z.dtype", z, "f32, f16 or bf16 with a gate and an 8-bit x");
    return CLNORM_SUCCESS;
}

clnorm_status cln_norm_check_weight_offset(double weight_offset, clnorm_dtype weight, clnorm_dtype x) {
    const double largest = cln_dtype_largest(x);
    if (!(fabs(weight_offset) <= largest))
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected a magnitude of at most %g", weight_offset,
                        largest);
    if (weight_offset != 0 && !weight)
        return cln_fail(CLNORM_INVALID_VALUE, "desc.weight_offset is %g: expected 0 without a weight", weight_offset);
    return CLNORM_SUCCESS;
}
