// C++ with the OpenCL C++ bindings (Debian: opencl-clhpp-headers): softmax of a bf16 matrix. Buffers and queues are
// cl::Buffer and cl::CommandQueue, std::unique_ptr holds plans and contexts, and failures are exceptions.
//
//   ./example_cpp
#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_TARGET_OPENCL_VERSION 120
#include <CL/opencl.hpp>
#include <clnorm/clnorm.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t rows = 16, cols = 1000;

void check(clnorm_status status) {
    if (status != CLNORM_SUCCESS)
        throw std::runtime_error(std::string(clnorm_status_text(status)) + ": " + clnorm_error_detail());
}

struct Destroy {
    void operator()(clnorm_context *context) const {
        clnorm_context_destroy(context);
    }
    void operator()(clnorm_plan *plan) const {
        clnorm_plan_destroy(plan);
    }
};
using Context = std::unique_ptr<clnorm_context, Destroy>;
using Plan = std::unique_ptr<clnorm_plan, Destroy>;

Context make_context(const cl::Context &cl, const cl::Device &device) {
    clnorm_context *context = nullptr;
    check(clnorm_context_create(cl(), device(), nullptr, &context));
    return Context(context);
}

Plan make_softmax(const Context &context) {
    clnorm_softmax_desc desc = CLNORM_SOFTMAX_DESC_INIT;
    desc.rows = rows;
    desc.cols = cols;
    desc.x.dtype = CLNORM_BF16;
    desc.y.dtype = CLNORM_F32;
    clnorm_plan *plan = nullptr;
    check(clnorm_softmax_forward_plan_create(context.get(), &desc, &plan));
    return Plan(plan);
}

// bfloat16 is the upper half of a float.
float to_float(std::uint16_t code) {
    const std::uint32_t bits = std::uint32_t{code} << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The largest relative difference from softmax in double. A NaN counts as infinite.
double largest_error(const std::vector<std::uint16_t> &x, const std::vector<float> &y) {
    double largest = 0;
    for (std::size_t row = 0; row < rows; row++) {
        double sum = 0;
        for (std::size_t col = 0; col < cols; col++)
            sum += std::exp(double{to_float(x[row * cols + col])});
        for (std::size_t col = 0; col < cols; col++) {
            const double want = std::exp(double{to_float(x[row * cols + col])}) / sum;
            const double error = std::fabs(double{y[row * cols + col]} - want) / want;
            largest = std::isnan(error) ? INFINITY : std::fmax(largest, error);
        }
    }
    return largest;
}

double run() {
    clnorm_device_info info = CLNORM_DEVICE_INFO_INIT;
    check(clnorm_device_select(nullptr, &info));
    const cl::Device device(info.device);
    const cl::Context cl(device);
    const cl::CommandQueue queue(cl, device);

    std::vector<std::uint16_t> x(rows * cols);
    for (std::size_t i = 0; i < x.size(); i++)
        x[i] = static_cast<std::uint16_t>(0x3f80 + i % 256); // 1 to almost 4
    std::vector<float> y(x.size());
    const cl::Buffer x_buffer(cl, x.begin(), x.end(), true);
    const cl::Buffer y_buffer(cl, CL_MEM_WRITE_ONLY, y.size() * sizeof y[0]);

    const Context context = make_context(cl, device);
    const Plan plan = make_softmax(context); // destroyed before its context
    clnorm_args args = CLNORM_ARGS_INIT;
    args.x.mem = x_buffer(); // the buffer's cl_mem
    args.y.mem = y_buffer();
    cl::Event done;
    check(clnorm_plan_enqueue(plan.get(), queue(), &args, 0, nullptr, &done()));
    const std::vector<cl::Event> after{done};
    queue.enqueueReadBuffer(y_buffer, CL_TRUE, 0, y.size() * sizeof y[0], y.data(), &after);

    const double largest = largest_error(x, y);
    std::cout << info.name << ", largest relative error " << largest << '\n';
    return largest;
}

} // namespace

int main() {
    try {
        return run() <= 1e-5 ? 0 : 1;
    } catch (const cl::Error &error) {
        std::cerr << error.what() << ": OpenCL error " << error.err() << '\n';
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
    }
    return 1;
}
