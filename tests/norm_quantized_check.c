#include "norm_quantized_check.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "reference/reference.h"

const clnorm_tensor *norm_codes_of(const clnorm_norm_desc *desc) {
    return desc->y.dtype ? &desc->y : &desc->y_t;
}

/* Columns that share a scale. */
static uint64_t sharing(const struct norm_run *run) {
    const clnorm_tensor *const codes = norm_codes_of(&run->desc);
    const uint64_t columns = codes->scaling == CLNORM_SCALING_GROUP ? codes->scale_group : run->desc.cols;
    return columns > 0 ? columns : 1;
}

static double scale_at(const struct norm_run *run, uint64_t row, uint64_t column) {
    const clnorm_tensor *const codes = norm_codes_of(&run->desc);
    const bool whole = codes->scaling == CLNORM_SCALING_TENSOR;
    if (whole && codes->scale != 0)
        return (double)(float)codes->scale;
    const uint64_t place = whole ? 0 : row * run->y_scale.stride + column / sharing(run);
    return ref_load(run->y_scale.dtype, tensor_elements(&run->y_scale), place);
}

/* Reads the code of y, and checks that its transposed copy has the same. */
static bool read_code(const struct norm_run *run, uint64_t row, uint64_t column, unsigned *code) {
    const unsigned char *const y = tensor_elements(&run->y), *const y_t = tensor_elements(&run->y_t);
    const unsigned transposed = y_t ? y_t[column * run->y_t.stride + row] : 0;
    *code = y ? y[row * run->y.stride + column] : transposed;
    if (!y_t || *code == transposed)
        return true;
    print_error("y[%" PRIu64 ", %" PRIu64 "] is code %02x, but %02x transposed\n", row, column, *code, transposed);
    return false;
}

/* The value of y's expected code. */
static double coded(const struct norm_run *run, double y, double scale, double roundings) {
    const double divided = run->desc.accuracy == CLNORM_FP8_COMPATIBLE ? ref_round(CLNORM_BF16, y) : y;
    return codes_value(norm_codes_of(&run->desc)->dtype, divided, scale, roundings);
}

/* Whether a code lies between those of y's bounds: codes are ordered like their values. */
static bool check_code(const struct norm_run *run, uint64_t row, uint64_t column, double y, double error) {
    unsigned code;
    if (!read_code(run, row, column, &code))
        return false;
    const clnorm_dtype dtype = norm_codes_of(&run->desc)->dtype;
    const double scale = scale_at(run, row, column), slack = isfinite(y) ? error : 0;
    const double value = ref_code_value(dtype, code);
    const double low = coded(run, y - slack, scale, -1), high = coded(run, y + slack, scale, 1);
    if (isnan(y) ? code == 0x7f : value >= low && value <= high)
        return true;
    print_error("y[%" PRIu64 ", %" PRIu64 "] is code %02x, %g of %g, but should be %.9g within %.3g\n", row, column, code,
                value, scale, y, slack);
    return false;
}

static struct magnitude magnitude_of(uint64_t count, const double *y, const double *error) {
    struct magnitude magnitude = {0, 0};
    for (uint64_t i = 0; i < count; i++)
        magnitude_add(&magnitude, y[i], error[i]);
    return magnitude;
}

static bool check_scale(const struct norm_run *run, const char *name, const struct tensor *scales, uint64_t place,
                        struct magnitude magnitude) {
    return codes_scale_is_right(norm_codes_of(&run->desc)->dtype, name, scales, place, magnitude);
}

/* Checks the scales of groups of columns, or of the row. */
static bool check_scales(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                         const double *error) {
    for (uint64_t i = 0; i < count; i += sharing(run)) {
        const uint64_t left = count - i, own = left < sharing(run) ? left : sharing(run);
        const uint64_t place = row * run->y_scale.stride + (first + i) / sharing(run);
        if (!check_scale(run, "y_scale", &run->y_scale, place, magnitude_of(own, y + i, error + i)))
            return false;
    }
    return true;
}

bool norm_quantized_check(const struct norm_run *run, uint64_t row, uint64_t first, uint64_t count, const double *y,
                          const double *error, struct magnitude *all) {
    const struct magnitude own = magnitude_of(count, y, error);
    all->low = fmax(all->low, own.low);
    all->high = fmax(all->high, own.high);
    if (run->y_row_scale.mem && !check_scale(run, "y_row_scale", &run->y_row_scale, row, own))
        return false;
    const bool whole = norm_codes_of(&run->desc)->scaling == CLNORM_SCALING_TENSOR;
    if (!whole && run->y_scale.mem && !check_scales(run, row, first, count, y, error))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!check_code(run, row, first + i, y[i], error[i]))
            return false;
    return true;
}

bool norm_quantized_check_whole(const struct norm_run *run, struct magnitude all) {
    const bool whole = norm_codes_of(&run->desc)->scaling == CLNORM_SCALING_TENSOR;
    return !whole || !run->y_scale.mem || run->desc.rows == 0 || check_scale(run, "y_scale", &run->y_scale, 0, all);
}
