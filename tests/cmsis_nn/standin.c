// Stands in for Arm's CMSIS-NN in tests: the published functions, with the kernels of this project behind
// them under other names. It asks for the working memory that the real library asks for (section 4 of
// tests/golden/kernels/README.md), refuses a call without it, and leaves it spoilt; and it is wrong for some
// of the inputs for which the real library is wrong (section 5).

#include "arm_nnfunctions.h"

#include <stddef.h>
#include <string.h>

#define KERNEL(function) extern __typeof__(arm_##function) standin_arm_##function
KERNEL(avgpool_s8);
KERNEL(batch_matmul_s8);
KERNEL(convolve_wrapper_s8);
KERNEL(depthwise_conv_wrapper_s8);
KERNEL(elementwise_add_s8);
KERNEL(elementwise_mul_s8);
KERNEL(fully_connected_per_channel_s8);
KERNEL(fully_connected_s8);
KERNEL(max_pool_s8);
KERNEL(maximum_s8);
KERNEL(minimum_s8);
KERNEL(pad_s8);
KERNEL(softmax_s8);
KERNEL(transpose_conv_wrapper_s8);
KERNEL(transpose_s8);

// STANDIN_MVE stands in for a build for cores with vector instructions.
#ifndef STANDIN_MVE
#define STANDIN_MVE 0
#endif
// STANDIN_GREED stands in for a release that asks for more memory: bytes on top for average pooling.
#ifndef STANDIN_GREED
#define STANDIN_GREED 0
#endif
#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP && !STANDIN_MVE
#define DSP 1
#else
#define DSP 0
#endif

static int32_t own_memory[4096];  // of the kernels behind, whose needs are others
static const cmsis_nn_context own = {own_memory, sizeof own_memory};

// Whether the caller's memory is there; it holds nothing of use afterwards.
static bool taken(const cmsis_nn_context* ctx, int32_t needed) {
    if (needed == 0) {
        return true;
    }
    if (ctx->buf == NULL || ctx->size < needed) {
        return false;
    }
    memset(ctx->buf, 0xA5, (size_t)needed);
    return true;
}

static arm_cmsis_nn_status wrong(int8_t* output, const cmsis_nn_dims* dims) {
    memset(output, 0x55, (size_t)(dims->n * dims->h * dims->w * dims->c));
    return ARM_CMSIS_NN_SUCCESS;
}

static int32_t columns(int32_t values) {
    const int32_t multiple = STANDIN_MVE ? 16 : 4;
    return 4 * ((values + multiple - 1) / multiple * multiple);
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params* params,
                                                const cmsis_nn_dims* input, const cmsis_nn_dims* filter,
                                                const cmsis_nn_dims* output) {
    (void)output;
    const bool point = filter->h == 1 && filter->w == 1 && params->padding.h == 0 && params->padding.w == 0 &&
                       params->dilation.h == 1 && params->dilation.w == 1 && input->c == filter->c;
    return point ? 0 : columns(filter->h * filter->w * input->c);
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* ctx, const cmsis_nn_conv_params* params,
                                            const cmsis_nn_per_channel_quant_params* quantisation,
                                            const cmsis_nn_dims* input, const int8_t* samples,
                                            const cmsis_nn_dims* filter, const int8_t* weights,
                                            const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                            const cmsis_nn_dims* output, int8_t* results) {
    if (!taken(ctx, arm_convolve_wrapper_s8_get_buffer_size(params, input, filter, output))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    if (input->c != filter->c && bias == NULL) {
        return wrong(results, output);
    }
    return standin_arm_convolve_wrapper_s8(&own, params, quantisation, input, samples, filter, weights,
                                           bias_dims, bias, output, results);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params* params,
                                                      const cmsis_nn_dims* input, const cmsis_nn_dims* filter,
                                                      const cmsis_nn_dims* output) {
    const bool plain =
        input->c == output->c && input->n == 1 && params->dilation.h == 1 && params->dilation.w == 1;
    const bool three = filter->h == 3 && filter->w == 3 && params->padding.h <= 1 && params->padding.w <= 1;
    if (STANDIN_MVE && input->c == 1 && output->c > 1) {
        return columns(filter->h * filter->w) + filter->h * filter->w * output->c;
    }
    if (STANDIN_MVE) {
        return plain ? 4 * 124 * filter->h * filter->w : 0;
    }
    return DSP && plain && !three ? 2 * input->c * filter->h * filter->w : 0;
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context* ctx,
                                                  const cmsis_nn_dw_conv_params* params,
                                                  const cmsis_nn_per_channel_quant_params* quantisation,
                                                  const cmsis_nn_dims* input, const int8_t* samples,
                                                  const cmsis_nn_dims* filter, const int8_t* weights,
                                                  const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                                  const cmsis_nn_dims* output, int8_t* results) {
    if (!taken(ctx, arm_depthwise_conv_wrapper_s8_get_buffer_size(params, input, filter, output))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return standin_arm_depthwise_conv_wrapper_s8(&own, params, quantisation, input, samples, filter, weights,
                                                 bias_dims, bias, output, results);
}

static bool reversed(const cmsis_nn_transpose_conv_params* params, const cmsis_nn_dims* input) {
    return input->c > 16 && params->stride.h <= 2 && params->stride.w <= 2;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

int32_t arm_transpose_conv_s8_get_buffer_size(const cmsis_nn_transpose_conv_params* params,
                                              const cmsis_nn_dims* input, const cmsis_nn_dims* filter,
                                              const cmsis_nn_dims* output) {
    if (reversed(params, input)) {
        return columns(filter->h * filter->w * input->c);
    }
    const int32_t row = (input->w - 1) * params->stride.w + larger(filter->w, params->stride.h);
    return 4 * output->c * row * larger(filter->h, params->stride.h);
}

int32_t arm_transpose_conv_s8_get_reverse_conv_buffer_size(const cmsis_nn_transpose_conv_params* params,
                                                           const cmsis_nn_dims* input,
                                                           const cmsis_nn_dims* filter) {
    return reversed(params, input) ? input->c * filter->w * filter->h * filter->n : 0;
}

arm_cmsis_nn_status arm_transpose_conv_wrapper_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_context* reverse_ctx,
    const cmsis_nn_transpose_conv_params* params, const cmsis_nn_per_channel_quant_params* quantisation,
    const cmsis_nn_dims* input, const int8_t* samples, const cmsis_nn_dims* filter, const int8_t* weights,
    const cmsis_nn_dims* bias_dims, const int32_t* bias, const cmsis_nn_dims* output, int8_t* results) {
    if (!taken(ctx, arm_transpose_conv_s8_get_buffer_size(params, input, filter, output)) ||
        !taken(reverse_ctx, arm_transpose_conv_s8_get_reverse_conv_buffer_size(params, input, filter))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    if (!reversed(params, input) && params->padding.h % params->stride.h != 0) {
        return wrong(results, output);
    }
    return standin_arm_transpose_conv_wrapper_s8(&own, &own, params, quantisation, input, samples, filter,
                                                 weights, bias_dims, bias, output, results);
}

int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims* filter) {
    return STANDIN_MVE ? 4 * filter->c : 0;
}

// Vector code finds the bias and the part of the sums that does not depend on the input in its context.
static bool summed(const cmsis_nn_context* ctx, const cmsis_nn_dims* filter, cmsis_nn_fc_params* params,
                   const int32_t** bias) {
    if (STANDIN_MVE) {
        params->input_offset = 0;
        *bias = ctx->buf;
    }
    return !STANDIN_MVE || (ctx->buf != NULL && ctx->size == 4 * filter->c);
}

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context* ctx, const cmsis_nn_fc_params* params,
                                           const cmsis_nn_per_tensor_quant_params* quantisation,
                                           const cmsis_nn_dims* input, const int8_t* samples,
                                           const cmsis_nn_dims* filter, const int8_t* weights,
                                           const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                           const cmsis_nn_dims* output, int8_t* results) {
    cmsis_nn_fc_params changed = *params;
    if (!summed(ctx, filter, &changed, &bias)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return standin_arm_fully_connected_s8(ctx, &changed, quantisation, input, samples, filter, weights,
                                          bias_dims, bias, output, results);
}

arm_cmsis_nn_status arm_fully_connected_per_channel_s8(const cmsis_nn_context* ctx,
                                                       const cmsis_nn_fc_params* params,
                                                       const cmsis_nn_per_channel_quant_params* quantisation,
                                                       const cmsis_nn_dims* input, const int8_t* samples,
                                                       const cmsis_nn_dims* filter, const int8_t* weights,
                                                       const cmsis_nn_dims* bias_dims, const int32_t* bias,
                                                       const cmsis_nn_dims* output, int8_t* results) {
    cmsis_nn_fc_params changed = *params;
    if (!summed(ctx, filter, &changed, &bias)) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return standin_arm_fully_connected_per_channel_s8(ctx, &changed, quantisation, input, samples, filter,
                                                      weights, bias_dims, bias, output, results);
}

arm_cmsis_nn_status arm_batch_matmul_s8(const cmsis_nn_context* ctx, const cmsis_nn_bmm_params* params,
                                        const cmsis_nn_per_tensor_quant_params* quantisation,
                                        const cmsis_nn_dims* left, const int8_t* left_samples,
                                        const cmsis_nn_dims* right, const int8_t* right_samples,
                                        const cmsis_nn_dims* output, int8_t* results) {
    return standin_arm_batch_matmul_s8(ctx, params, quantisation, left, left_samples, right, right_samples,
                                       output, results);
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* first, const int8_t* second,
                                           const int32_t first_offset, const int32_t first_multiplier,
                                           const int32_t first_shift, const int32_t second_offset,
                                           const int32_t second_multiplier, const int32_t second_shift,
                                           const int32_t left_shift, int8_t* results, const int32_t offset,
                                           const int32_t multiplier, const int32_t shift, const int32_t low,
                                           const int32_t high, const int32_t size) {
    return standin_arm_elementwise_add_s8(first, second, first_offset, first_multiplier, first_shift,
                                          second_offset, second_multiplier, second_shift, left_shift, results,
                                          offset, multiplier, shift, low, high, size);
}

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t* first, const int8_t* second,
                                           const int32_t first_offset, const int32_t second_offset,
                                           int8_t* results, const int32_t offset, const int32_t multiplier,
                                           const int32_t shift, const int32_t low, const int32_t high,
                                           const int32_t size) {
    return standin_arm_elementwise_mul_s8(first, second, first_offset, second_offset, results, offset,
                                          multiplier, shift, low, high, size);
}

static bool one_value_per_row(const cmsis_nn_dims* small, const cmsis_nn_dims* large) {
    return small->h > 1 && small->w == 1 && small->c == 1 && large->w * large->c > 1;
}

arm_cmsis_nn_status arm_maximum_s8(const cmsis_nn_context* ctx, const int8_t* first,
                                   const cmsis_nn_dims* first_dims, const int8_t* second,
                                   const cmsis_nn_dims* second_dims, int8_t* results,
                                   const cmsis_nn_dims* output) {
    if (one_value_per_row(first_dims, second_dims) || one_value_per_row(second_dims, first_dims)) {
        return wrong(results, output);
    }
    return standin_arm_maximum_s8(ctx, first, first_dims, second, second_dims, results, output);
}

arm_cmsis_nn_status arm_minimum_s8(const cmsis_nn_context* ctx, const int8_t* first,
                                   const cmsis_nn_dims* first_dims, const int8_t* second,
                                   const cmsis_nn_dims* second_dims, int8_t* results,
                                   const cmsis_nn_dims* output) {
    if (one_value_per_row(first_dims, second_dims) || one_value_per_row(second_dims, first_dims)) {
        return wrong(results, output);
    }
    return standin_arm_minimum_s8(ctx, first, first_dims, second, second_dims, results, output);
}

int32_t arm_avgpool_s8_get_buffer_size(const int width, const int channels) {
    (void)width;
    return STANDIN_GREED + (DSP ? 4 * channels : 0);
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                   const cmsis_nn_dims* input, const int8_t* samples,
                                   const cmsis_nn_dims* filter, const cmsis_nn_dims* output,
                                   int8_t* results) {
    if (!taken(ctx, arm_avgpool_s8_get_buffer_size(output->w, input->c))) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    return standin_arm_avgpool_s8(&own, params, input, samples, filter, output, results);
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* params,
                                    const cmsis_nn_dims* input, const int8_t* samples,
                                    const cmsis_nn_dims* filter, const cmsis_nn_dims* output,
                                    int8_t* results) {
    return standin_arm_max_pool_s8(ctx, params, input, samples, filter, output, results);
}

void arm_softmax_s8(const int8_t* input, const int32_t rows, const int32_t size, const int32_t multiplier,
                    const int32_t shift, const int32_t diff_min, int8_t* output) {
    if (size >= 512) {
        memset(output, 0x55, (size_t)(rows * size));
        return;
    }
    standin_arm_softmax_s8(input, rows, size, multiplier, shift, diff_min, output);
}

arm_cmsis_nn_status arm_transpose_s8(const int8_t* input, int8_t* const output,
                                     const cmsis_nn_dims* const input_dims,
                                     const cmsis_nn_dims* const output_dims,
                                     const cmsis_nn_transpose_params* const params) {
    return standin_arm_transpose_s8(input, output, input_dims, output_dims, params);
}

arm_cmsis_nn_status arm_pad_s8(const int8_t* input, int8_t* output, const int8_t value,
                               const cmsis_nn_dims* size, const cmsis_nn_dims* before,
                               const cmsis_nn_dims* after) {
    return standin_arm_pad_s8(input, output, value, size, before, after);
}
