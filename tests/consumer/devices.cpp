// The header in C++, with warnings for what only C writes: lists the devices, and checks the initial values of all structs.
#include <clnorm/clnorm.h>

#include <iostream>
#include <vector>

template <class Struct> static bool has_its_size(const Struct &initial) {
    return initial.size == sizeof(Struct);
}

int main() {
    std::size_t count = 0;
    if (clnorm_device_list(nullptr, 0, &count) != CLNORM_SUCCESS || count == 0) {
        std::cerr << "no device: " << clnorm_error_detail() << '\n';
        return 1;
    }
    std::vector<cl_device_id> devices(count);
    if (clnorm_device_list(devices.data(), devices.size(), &count) != CLNORM_SUCCESS)
        return 1;
    for (cl_device_id device : devices) {
        clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
        if (clnorm_device_describe(device, &info) != CLNORM_SUCCESS)
            return 1;
        std::cout << info.name << ": " << info.compute_units << " compute units\n";
    }

    const bool sound = has_its_size<clnorm_context_options>(CLNORM_CONTEXT_OPTIONS_INIT) &&
                       has_its_size<clnorm_device_info>(CLNORM_DEVICE_INFO_INIT) &&
                       has_its_size<clnorm_args>(CLNORM_ARGS_INIT) &&
                       has_its_size<clnorm_requirements>(CLNORM_REQUIREMENTS_INIT) &&
                       has_its_size<clnorm_kernel_info>(CLNORM_KERNEL_INFO_INIT) &&
                       has_its_size<clnorm_quantize_desc>(CLNORM_QUANTIZE_DESC_INIT) &&
                       has_its_size<clnorm_dequantize_desc>(CLNORM_DEQUANTIZE_DESC_INIT) &&
                       has_its_size<clnorm_group_norm_desc>(CLNORM_GROUP_NORM_DESC_INIT) &&
                       has_its_size<clnorm_group_norm_backward_desc>(CLNORM_GROUP_NORM_BACKWARD_DESC_INIT) &&
                       has_its_size<clnorm_norm_desc>(CLNORM_NORM_DESC_INIT) &&
                       has_its_size<clnorm_norm_backward_desc>(CLNORM_NORM_BACKWARD_DESC_INIT) &&
                       has_its_size<clnorm_softmax_desc>(CLNORM_SOFTMAX_DESC_INIT) &&
                       has_its_size<clnorm_softmax_backward_desc>(CLNORM_SOFTMAX_BACKWARD_DESC_INIT) &&
                       has_its_size<clnorm_gelu_desc>(CLNORM_GELU_DESC_INIT) &&
                       has_its_size<clnorm_gelu_backward_desc>(CLNORM_GELU_BACKWARD_DESC_INIT) &&
                       has_its_size<clnorm_l2_norm_desc>(CLNORM_L2_NORM_DESC_INIT) &&
                       has_its_size<clnorm_l2_norm_backward_desc>(CLNORM_L2_NORM_BACKWARD_DESC_INIT) &&
                       has_its_size<clnorm_norm_statistics_desc>(CLNORM_NORM_STATISTICS_DESC_INIT) &&
                       has_its_size<clnorm_norm_apply_desc>(CLNORM_NORM_APPLY_DESC_INIT) &&
                       has_its_size<clnorm_norm_backward_statistics_desc>(CLNORM_NORM_BACKWARD_STATISTICS_DESC_INIT) &&
                       has_its_size<clnorm_norm_backward_apply_desc>(CLNORM_NORM_BACKWARD_APPLY_DESC_INIT);
    return sound ? 0 : 1;
}
