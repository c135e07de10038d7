#include "norm_backward_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

clnorm_norm_backward_desc norm_backward_desc_of(clnorm_norm norm, uint64_t rows, uint64_t cols) {
    clnorm_norm_backward_desc desc = CLNORM_NORM_BACKWARD_DESC_INIT;
    desc.norm = norm;
    desc.rows = rows;
    desc.cols = cols;
    desc.dx.dtype = CLNORM_F32;
    return desc;
}

clnorm_norm_backward_desc norm_backward_full_desc(clnorm_norm norm, uint64_t rows, uint64_t cols, clnorm_dtype dtype) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(norm, rows, cols);
    desc.x.dtype = desc.weight.dtype = desc.bias.dtype = dtype;
    desc.dx.dtype = desc.y.dtype = desc.dweight.dtype = desc.dbias.dtype = dtype;
    return desc;
}

bool norm_backward_locks(const struct fixture *fixture) {
    clnorm_norm_backward_desc desc = norm_backward_desc_of(CLNORM_RMS_NORM, 1, 1);
    desc.dbias.dtype = CLNORM_F32;
    desc.reduction = CLNORM_REDUCTION_LOCKED;
    clnorm_plan *plan = NULL;
    const clnorm_status status = clnorm_norm_backward_plan_create(fixture->context, &desc, &plan);
    clnorm_plan_destroy(plan);
    return status != CLNORM_UNSUPPORTED;
}

static void print_tensor(const char *name, clnorm_dtype dtype, uint64_t stride, uint64_t shift) {
    if (dtype != CLNORM_DTYPE_NONE)
        print_error("  %s %s, stride %" PRIu64 ", shift %" PRIu64 "\n", name, clnorm_dtype_name(dtype), stride, shift);
}

static void print_config(const clnorm_config *config) {
    char text[320];
    clnorm_config_text(config, text, sizeof text);
    print_error("  config: %s\n", text);
}

void norm_backward_case_print(const struct norm_backward_case *backward_case) {
    static const char *const gates[] = {"none", "silu", "sigmoid"};
    static const char *const places[] = {"", ", dx over x", ", dx over dy"};
    const clnorm_norm_backward_desc desc = ref_norm_backward_complete(&backward_case->desc);
    print_error("case: %s %" PRIu64 "x%" PRIu64 ", groups of %" PRIu64 ", %s, seed %" PRIu64 "%s%s\n",
                desc.norm == CLNORM_LAYER_NORM ? "layer_norm" : "rms_norm", desc.rows, desc.cols, desc.group_size,
                input_name(backward_case->input), backward_case->seed, places[backward_case->dx_place],
                backward_case->dz_over_z ? ", dz over z" : "");
    print_error("  gate %s%s, offset %g, eps %g, mean %d, rstd %d, accumulate %d, %s with %u slots\n", gates[desc.gate],
                desc.gate_first ? " first" : "", desc.weight_offset, desc.eps, desc.mean_given, desc.rstd_given,
                desc.accumulate, desc.reduction == CLNORM_REDUCTION_LOCKED ? "locked" : "partial", desc.slots);
    if (desc.weight_rows)
        print_error("  %" PRIu64 " rows of weights, %" PRIu64 " neighbours take one, strides %" PRIu64 " %" PRIu64
                    ", of the gradients %" PRIu64 " %" PRIu64 "\n",
                    desc.weight_rows, desc.weight_repeat, desc.weight.stride, desc.bias.stride, desc.dweight.stride,
                    desc.dbias.stride);
    print_tensor("x", desc.x.dtype, desc.x.stride, backward_case->shift.x);
    print_tensor("z", desc.gate ? desc.z.dtype : CLNORM_DTYPE_NONE, desc.z.stride, backward_case->shift.z);
    print_tensor("dy", desc.dy.dtype, desc.dy.stride, backward_case->shift.dy);
    print_tensor("weight", desc.weight.dtype, desc.cols, backward_case->shift.weight);
    print_tensor("bias", desc.bias.dtype, desc.cols, backward_case->shift.bias);
    print_tensor("dx", desc.dx.dtype, desc.dx.stride, backward_case->shift.dx);
    print_tensor("dz", desc.dz.dtype, desc.dz.stride, backward_case->shift.dz);
    print_tensor("y", desc.y.dtype, desc.y.stride, backward_case->shift.y);
    print_tensor("dweight", desc.dweight.dtype, desc.cols, backward_case->shift.dweight);
    print_tensor("dbias", desc.dbias.dtype, desc.cols, backward_case->shift.dbias);
    print_tensor("residual", desc.residual.dtype, desc.residual.stride, backward_case->shift.residual);
    print_tensor("dresidual_out", desc.dresidual_out.dtype, desc.dresidual_out.stride, backward_case->shift.dresidual_out);
    print_tensor("dresidual", desc.dresidual.dtype, desc.dresidual.stride, backward_case->shift.dresidual);
    if (desc.rope)
        print_error("  rope %d of %" PRIu64 " columns, %" PRIu64 " positions, given %u, repeat %" PRIu64
                    "; tables %s %s+%u\n",
                    (int)desc.rope, desc.rope_dims, desc.rope_positions, desc.position_given, desc.rope_repeat,
                    clnorm_dtype_name(desc.rope_cos.dtype), clnorm_dtype_name(desc.rope_sin.dtype),
                    (unsigned)backward_case->shift.rope);
    print_error("  dropout %g, row_scale %d, s_given %d, y_given %d, activation %d%s\n", desc.dropout, desc.row_scale,
                desc.s_given, desc.y_given, (int)desc.activation,
                backward_case->dresidual_in_place ? ", dresidual over dresidual_out" : "");
    print_config(&desc.config);
}

bool norm_backward_case_passes(const struct fixture *fixture, const struct norm_backward_case *backward_case) {
    struct norm_backward_run run = norm_backward_run_make(backward_case);
    const clnorm_status status = norm_backward_run_go(fixture, &run);
    bool good = status == CLNORM_SUCCESS;
    if (good)
        good = norm_backward_run_receive(fixture, &run) && norm_backward_run_check(&run);
    else
        print_error("%s: %s\n", clnorm_status_text(status), clnorm_error_detail());
    if (!good)
        norm_backward_case_print(backward_case);
    norm_backward_run_free(&run);
    return good;
}

void norm_backward_settle(const struct fixture *fixture, clnorm_norm_backward_desc *desc) {
    clnorm_plan *plan = NULL;
    while (clnorm_norm_backward_plan_create(fixture->context, desc, &plan) == CLNORM_INVALID_VALUE) {
        const char *const detail = clnorm_error_detail();
        const bool tiled = strstr(detail, "desc.config.tile") || strstr(detail, "desc.config.chunks");
        if (strstr(detail, "desc.config.vec") && KNOB(desc->config, vec) > 1)
            KNOB(desc->config, vec) /= 2;
        else if (tiled && KNOB(desc->config, tile))
            KNOB(desc->config, tile) = KNOB(desc->config, chunks) = 0;
        else
            break;
    }
    clnorm_plan_destroy(plan);
}
