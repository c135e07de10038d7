/* Sizes of structs, for bindings of languages without sizeof. */
#include <string.h>

#include "clnorm/clnorm.h"

static const struct {
    const char *name;
    uint32_t size;
} structs[] = {
    {"clnorm_dim", sizeof(clnorm_dim)},
    {"clnorm_tensor", sizeof(clnorm_tensor)},
    {"clnorm_config", sizeof(clnorm_config)},
    {"clnorm_context_options", sizeof(clnorm_context_options)},
    {"clnorm_cache_entry", sizeof(clnorm_cache_entry)},
    {"clnorm_device_info", sizeof(clnorm_device_info)},
    {"clnorm_tensor_info", sizeof(clnorm_tensor_info)},
    {"clnorm_requirements", sizeof(clnorm_requirements)},
    {"clnorm_buffer", sizeof(clnorm_buffer)},
    {"clnorm_seed", sizeof(clnorm_seed)},
    {"clnorm_args", sizeof(clnorm_args)},
    {"clnorm_kernel_info", sizeof(clnorm_kernel_info)},
    {"clnorm_norm_desc", sizeof(clnorm_norm_desc)},
    {"clnorm_norm_backward_desc", sizeof(clnorm_norm_backward_desc)},
    {"clnorm_norm_statistics_desc", sizeof(clnorm_norm_statistics_desc)},
    {"clnorm_norm_apply_desc", sizeof(clnorm_norm_apply_desc)},
    {"clnorm_norm_backward_statistics_desc", sizeof(clnorm_norm_backward_statistics_desc)},
    {"clnorm_norm_backward_apply_desc", sizeof(clnorm_norm_backward_apply_desc)},
    {"clnorm_group_norm_desc", sizeof(clnorm_group_norm_desc)},
    {"clnorm_group_norm_backward_desc", sizeof(clnorm_group_norm_backward_desc)},
    {"clnorm_l2_norm_desc", sizeof(clnorm_l2_norm_desc)},
    {"clnorm_l2_norm_backward_desc", sizeof(clnorm_l2_norm_backward_desc)},
    {"clnorm_softmax_desc", sizeof(clnorm_softmax_desc)},
    {"clnorm_softmax_backward_desc", sizeof(clnorm_softmax_backward_desc)},
    {"clnorm_gelu_desc", sizeof(clnorm_gelu_desc)},
    {"clnorm_gelu_backward_desc", sizeof(clnorm_gelu_backward_desc)},
    {"clnorm_quantize_desc", sizeof(clnorm_quantize_desc)},
    {"clnorm_dequantize_desc", sizeof(clnorm_dequantize_desc)},
};

uint32_t clnorm_struct_size(const char *name) {
    for (size_t i = 0; name && i < sizeof structs / sizeof *structs; i++)
        if (!strcmp(structs[i].name, name))
            return structs[i].size;
    return 0;
}
