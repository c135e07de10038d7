/* Every operation of the tool. */
#include <string.h>

#include "closest.h"
#include "operation.h"

/* The operations that are not row-wise. */
static const struct operation own[] = {
    {"layer_norm", "(x - mean) / sqrt(var + eps) * weight + bias", OPERATION_NORM, CLNORM_LAYER_NORM, norm_roles,
     norm_describe, norm_plan, norm_verify, NULL, NULL},
    {"rms_norm", "x / sqrt(mean of squares + eps) * weight + bias", OPERATION_NORM, CLNORM_RMS_NORM, norm_roles,
     norm_describe, norm_plan, norm_verify, NULL, NULL},
    {"layer_norm_backward", "the gradients of layer_norm", OPERATION_NORM_BACKWARD, CLNORM_LAYER_NORM, norm_backward_roles,
     norm_backward_describe, norm_backward_plan, norm_backward_verify, NULL, NULL},
    {"rms_norm_backward", "the gradients of rms_norm", OPERATION_NORM_BACKWARD, CLNORM_RMS_NORM, norm_backward_roles,
     norm_backward_describe, norm_backward_plan, norm_backward_verify, NULL, NULL},
    {"layer_norm_backward_from_y", "the gradients of layer_norm, from y instead of x", OPERATION_NORM_BACKWARD_FROM_Y,
     CLNORM_LAYER_NORM, norm_backward_from_y_roles, norm_backward_from_y_describe, norm_backward_plan, norm_backward_verify,
     NULL, NULL},
    {"rms_norm_backward_from_y", "the gradients of rms_norm, from y instead of x", OPERATION_NORM_BACKWARD_FROM_Y,
     CLNORM_RMS_NORM, norm_backward_from_y_roles, norm_backward_from_y_describe, norm_backward_plan, norm_backward_verify,
     NULL, NULL},
    {"quantize", "x / scale in 8 bits, with scale = (the largest |x| + 1e-10) / the largest number", OPERATION_QUANTIZE, 0,
     quantize_roles, quantize_describe, quantize_plan, quantize_verify, NULL, NULL},
    {"dequantize", "q * scale", OPERATION_DEQUANTIZE, 0, dequantize_roles, dequantize_describe, dequantize_plan,
     dequantize_verify, NULL, NULL},
    {"fp8_rms_norm", "rms_norm of x * x_scale, quantised", OPERATION_FP8_NORM, CLNORM_RMS_NORM, fp8_rms_norm_roles,
     fp8_rms_norm_describe, norm_plan, fp8_rms_norm_verify, NULL, NULL},
    {"fp8_rms_norm_backward", "the gradients of fp8_rms_norm", OPERATION_FP8_NORM_BACKWARD, CLNORM_RMS_NORM,
     fp8_rms_norm_backward_roles, fp8_rms_norm_backward_describe, norm_backward_plan, norm_backward_verify, NULL, NULL},
    {"group_norm", "the norm of each group of channels of a sample", OPERATION_GROUP_NORM, 0, group_norm_roles,
     group_norm_describe, group_norm_plan, group_norm_verify, NULL, NULL},
    {"group_norm_backward", "the gradients of group_norm", OPERATION_GROUP_NORM, 0, group_norm_backward_roles,
     group_norm_backward_describe, group_norm_backward_plan, group_norm_backward_verify, NULL, NULL},
    {"instance_norm", "group_norm with one channel per group", OPERATION_INSTANCE_NORM, 0, group_norm_roles,
     group_norm_describe, group_norm_plan, group_norm_verify, NULL, NULL},
    {"instance_norm_backward", "the gradients of instance_norm", OPERATION_INSTANCE_NORM, 0, group_norm_backward_roles,
     group_norm_backward_describe, group_norm_backward_plan, group_norm_backward_verify, NULL, NULL},
};

#define ROW(name) {&cln_##name, ref_##name##_row},
#define NONE(name)
static const struct {
    const struct cln_operation *record;
    ref_row_fn reference;
} rows[] = {CLN_OPERATION_LIST(ROW, NONE)};

enum { OWN = sizeof own / sizeof *own, ROWS = sizeof rows / sizeof *rows };

static void copy_without_mean(struct role *to, const struct role *from) {
    for (; from->name; from++)
        if (strcmp(from->name, "mean") != 0)
            *to++ = *from;
}

const struct operation *operation_list(void) {
    static struct operation all[OWN + ROWS + 1];
    static struct role roles[ROWS][ROLES + 1], of_rms_norm[OWN][ROLES + 1];
    if (all[0].name)
        return all;
    memcpy(all, own, sizeof own);
    for (int i = 0; i < OWN; i++)
        if (own[i].norm == CLNORM_RMS_NORM) {
            copy_without_mean(of_rms_norm[i], own[i].roles);
            all[i].roles = of_rms_norm[i];
        }
    for (int i = 0; i < ROWS; i++)
        all[OWN + i] = row_operation_of(rows[i].record, rows[i].reference, roles[i]);
    return all;
}

bool operation_find(const char *name, const struct operation **operation, struct fault *fault) {
    struct closest closest = closest_to(name);
    for (const struct operation *row = operation_list(); row->name; row++) {
        if (closest_is(name, strlen(name), row->name)) {
            *operation = row;
            return true;
        }
        closest_offer(&closest, row->name);
    }
    char text[CLOSEST_TEXT];
    return fault_set(fault, EXIT_REQUEST, "'%s' is not an operation; %s", name, closest_text(&closest, text));
}

const struct operation *operation_from_y(const struct operation *operation) {
    const size_t length = strlen(operation->name);
    for (const struct operation *row = operation_list(); row->name; row++)
        if (!strncmp(row->name, operation->name, length) && !strcmp(row->name + length, "_from_y"))
            return row;
    return NULL;
}
