#include "norm_quantized_check.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fp8_model.h"
#include "reference.h"

/* Of an addition and two divisions in float. */
static const double rounding = 0x1p-22;

/* Columns that share a scale. */
static uint64_t sharing(const clnorm_norm_desc *desc) {
    const uint64_t columns = desc->y_scaling == CLNORM_SCALING_GROUP ? desc->y_group_size : desc->cols;
    return columns > 0 ? columns : 1;
}

struct scales norm_scales_of(const clnorm_norm_desc *desc) {
    if (desc->y_scaling != CLNORM_SCALING_ROW && desc->y_scaling != CLNORM_SCALING_GROUP)
        return (struct scales){0, 0};
    return (struct scales){desc->rows, (desc->cols + sharing(desc) - 1) / sharing(desc)};
}

static double scale_at(const struct norm_run *run, uint64_t row, uint64_t column) {
    if (run->desc.y_scaling == CLNORM_SCALING_TENSOR)
        return (double)(float)run->desc.y_scale;
    return ref_load(CLNORM_F32, tensor_elements(&run->y_scale), row * run->y_scale.stride + column / sharing(&run->desc));
}

/* Codes are in the order of what they stand for. */
static bool check_code(const struct norm_run *run, uint64_t row, uint64_t column, double y, double error) {
    const clnorm_dtype dtype = run->desc.y_dtype;
    const unsigned code = ((const unsigned char *)tensor_elements(&run->y))[row * run->y.stride + column];
    const double scale = scale_at(run, row, column), slack = isfinite(y) ? error + fabs(y) * rounding : 0;
    const double value = fp8_value(dtype, code);
    const double low = fp8_value(dtype, fp8_code(dtype, (y - slack) / scale));
    const double high = fp8_value(dtype, fp8_code(dtype, (y + slack) / scale));
    if (isnan(y) ? code == 0x7f : value >= low && value <= high)
        return true;
    print_error("y[%" PRIu64 ", %" PRIu64 "] is code %02x, %g of %g, but should be %.9g within %.3g\n", row, column, code,
                value, scale, y, slack);
    return false;
}

/* The scale that these columns share. */
static bool check_scale(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                        const double *error) {
    double low = 0, high = 0;
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(y[i])) {
            low = fmax(low, fabs(y[i]) - error[i]);
            high = fmax(high, fabs(y[i]) + error[i]);
        }
    const double largest = fp8_largest(run->desc.y_dtype), scale = scale_at(run, row, first);
    if (scale >= (low + 1e-10) / largest * (1 - rounding) && scale <= (high + 1e-10) / largest * (1 + rounding))
        return true;
    print_error("y_scale of [%" PRIu64 ", %" PRIu64 "] is %.9g, but should be of %.9g to %.9g\n", row, first, scale, low,
                high);
    return false;
}

bool norm_quantized_check(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                          const double *error) {
    for (uint64_t i = 0; run->y_scale.mem && i < count; i += sharing(&run->desc)) {
        const uint64_t left = count - i;
        const uint64_t own = left < sharing(&run->desc) ? left : sharing(&run->desc);
        if (!check_scale(run, row, first + i, own, y + i, error + i))
            return false;
    }
    for (uint64_t i = 0; i < count; i++)
        if (!check_code(run, row, first + i, y[i], error[i]))
            return false;
    return true;
}
