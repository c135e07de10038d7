// The header in C++: lists the devices, and checks initial values of structs.
#include <clnorm/clnorm.h>

#include <iostream>
#include <vector>

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

    const clnorm_context_options options = CLNORM_CONTEXT_OPTIONS_INIT;
    const clnorm_norm_desc desc = CLNORM_NORM_DESC_INIT;
    const clnorm_args args = CLNORM_ARGS_INIT;
    const bool sound = options.size == sizeof options && desc.size == sizeof desc && args.size == sizeof args;
    return sound ? 0 : 1;
}
