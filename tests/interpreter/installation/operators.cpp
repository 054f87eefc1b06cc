// The Cortex-M operators that the golden models call, on this project's kernels, registered with ExecuTorch's
// runtime: what an installation brings as cortex_m_ops_lib. Arguments are those of the operators'
// declarations.
#include <cstring>

#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include "arm_nnfunctions.h"
#include "deploy_kernels.h"

// A wrong answer, for those who want to see it found.
#ifndef ZERO_POINT_ERROR
#define ZERO_POINT_ERROR 0
#endif

namespace {

using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::Kernel;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::Span;
using Arguments = Span<EValue*>;

// The program's scratch tensors are of the sizes that Arm's kernels ask for; these kernels ask for others.
alignas(8) uint8_t working_memory[1 << 16];

const Tensor& tensor(Arguments arguments, size_t index) {
    return arguments[index]->toTensor();
}

int32_t integer(Arguments arguments, size_t index) {
    return static_cast<int32_t>(arguments[index]->toInt());
}

double real(Arguments arguments, size_t index) {
    const EValue& value = *arguments[index];
    return value.isInt() ? static_cast<double>(value.toInt()) : value.toDouble();
}

int32_t item(Arguments arguments, size_t index, size_t element) {
    const auto list = arguments[index]->toIntList();
    return static_cast<int32_t>(list[element < list.size() ? element : 0]);
}

cmsis_nn_tile tile(Arguments arguments, size_t index) {
    return {item(arguments, index, 1), item(arguments, index, 0)};
}

const int8_t* samples(const Tensor& tensor) {
    return tensor.const_data_ptr<int8_t>();
}

const int32_t* optional_bias(Arguments arguments, size_t index) {
    return arguments[index]->isNone() ? nullptr : tensor(arguments, index).const_data_ptr<int32_t>();
}

// Of an image whose logical order is batch, channels, height, width and whose channels lie together.
cmsis_nn_dims image(const Tensor& tensor) {
    const auto sizes = tensor.sizes();
    return {sizes[0], sizes[2], sizes[3], sizes[1]};
}

cmsis_nn_dims as_stored(const Tensor& tensor) {
    const auto sizes = tensor.sizes();
    return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

void check(KernelRuntimeContext& context, int status) {
    if (status != ARM_CMSIS_NN_SUCCESS) {
        context.fail(Error::Internal);
    }
}

void quantize(KernelRuntimeContext&, Arguments a) {
    const Tensor& input = tensor(a, 0);
    const float inverse = static_cast<float>(1.0 / real(a, 1));
    deploy_quantize_f32_s8(input.const_data_ptr<float>(), a[6]->toTensor().mutable_data_ptr<int8_t>(),
                           static_cast<int32_t>(input.numel()), inverse, integer(a, 2), integer(a, 3),
                           integer(a, 4));
}

void dequantize(KernelRuntimeContext&, Arguments a) {
    const Tensor& input = tensor(a, 0);
    deploy_dequantize_s8_f32(samples(input), a[6]->toTensor().mutable_data_ptr<float>(),
                             static_cast<int32_t>(input.numel()), static_cast<float>(real(a, 1)),
                             integer(a, 2) + ZERO_POINT_ERROR);
}

template <bool depthwise>
void convolution(KernelRuntimeContext& context, Arguments a) {
    const size_t shift = depthwise ? 1 : 0;  // the depth multiplier stands between
    const Tensor& input = tensor(a, 0);
    const Tensor& weight = tensor(a, 1);
    Tensor out = a[13 + shift]->toTensor();
    cmsis_nn_context working{working_memory, sizeof working_memory};
    cmsis_nn_per_channel_quant_params scales{tensor(a, 8 + shift).mutable_data_ptr<int32_t>(),
                                             tensor(a, 9 + shift).mutable_data_ptr<int32_t>()};
    const cmsis_nn_dims in = image(input), filter = as_stored(weight), result = image(out);
    const cmsis_nn_dims bias{1, 1, 1, result.c};
    const cmsis_nn_activation range{integer(a, 10 + shift), integer(a, 11 + shift)};
    if (depthwise) {
        const cmsis_nn_dw_conv_params params{integer(a, 7), integer(a, 8), integer(a, 6), tile(a, 3),
                                             tile(a, 4),    tile(a, 5),    range};
        check(context, arm_depthwise_conv_wrapper_s8(&working, &params, &scales, &in, samples(input), &filter,
                                                     samples(weight), &bias, optional_bias(a, 2), &result,
                                                     out.mutable_data_ptr<int8_t>()));
    } else {
        const cmsis_nn_conv_params params{integer(a, 6), integer(a, 7), tile(a, 3),
                                          tile(a, 4),    tile(a, 5),    range};
        check(context, arm_convolve_wrapper_s8(&working, &params, &scales, &in, samples(input), &filter,
                                               samples(weight), &bias, optional_bias(a, 2), &result,
                                               out.mutable_data_ptr<int8_t>()));
    }
}

void linear(KernelRuntimeContext& context, Arguments a) {
    const Tensor& input = tensor(a, 0);
    const Tensor& weight = tensor(a, 1);
    const int32_t outputs = weight.size(0), depth = weight.size(1);
    const int32_t rows = static_cast<int32_t>(input.numel()) / depth;
    cmsis_nn_context working{nullptr, 0};
    const cmsis_nn_fc_params params{
        integer(a, 4), integer(a, 5), integer(a, 6), {integer(a, 10), integer(a, 9)}};
    const cmsis_nn_per_tensor_quant_params scale{item(a, 7, 0), item(a, 8, 0)};
    const cmsis_nn_dims in{rows, 1, 1, depth}, filter{depth, 1, 1, outputs}, bias{1, 1, 1, outputs};
    const cmsis_nn_dims result{rows, 1, 1, outputs};
    check(context, arm_fully_connected_s8(&working, &params, &scale, &in, samples(input), &filter,
                                          samples(weight), &bias, optional_bias(a, 2), &result,
                                          a[11]->toTensor().mutable_data_ptr<int8_t>()));
}

void avg_pool(KernelRuntimeContext& context, Arguments a) {
    const Tensor& input = tensor(a, 0);
    Tensor out = a[9]->toTensor();
    cmsis_nn_context working{working_memory, sizeof working_memory};
    const cmsis_nn_pool_params params{tile(a, 2), tile(a, 3), {-128, 127}};
    const cmsis_nn_dims in = image(input), filter{1, item(a, 1, 0), item(a, 1, 1), 1}, result = image(out);
    check(context, arm_avgpool_s8(&working, &params, &in, samples(input), &filter, &result,
                                  out.mutable_data_ptr<int8_t>()));
}

void add(KernelRuntimeContext& context, Arguments a) {
    Tensor out = a[13]->toTensor();
    check(context,
          arm_elementwise_add_s8(samples(tensor(a, 0)), samples(tensor(a, 4)), -integer(a, 1), integer(a, 2),
                                 integer(a, 3), -integer(a, 5), integer(a, 6), integer(a, 7), 20,
                                 out.mutable_data_ptr<int8_t>(), integer(a, 8), integer(a, 9), integer(a, 10),
                                 integer(a, 11), integer(a, 12), static_cast<int32_t>(out.numel())));
}

// The golden models pad by nothing and clone without another order.
template <size_t out>
void copy(KernelRuntimeContext& context, Arguments a) {
    const Tensor& input = tensor(a, 0);
    const Tensor result = a[out]->toTensor();
    if (input.nbytes() != result.nbytes()) {
        context.fail(Error::NotSupported);
        return;
    }
    std::memmove(result.mutable_data_ptr<int8_t>(), samples(input), input.nbytes());
}

const Kernel kernels[] = {
    Kernel("cortex_m::quantize_per_tensor.out", quantize),
    Kernel("cortex_m::dequantize_per_tensor.out", dequantize),
    Kernel("cortex_m::quantized_conv2d.out", convolution<false>),
    Kernel("cortex_m::quantized_depthwise_conv2d.out", convolution<true>),
    Kernel("cortex_m::quantized_linear.out", linear),
    Kernel("cortex_m::quantized_avg_pool2d.out", avg_pool),
    Kernel("cortex_m::quantized_add.out", add),
    Kernel("cortex_m::pad.out", copy<4>),
    Kernel("dim_order_ops::_clone_dim_order.out", copy<3>),
};

const Error registered = executorch::runtime::register_kernels({kernels, sizeof kernels / sizeof *kernels});

}  // namespace
