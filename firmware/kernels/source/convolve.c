#include "arm_nnfunctions.h"

#include <stddef.h>

#include "columns.h"
#include "patches.h"

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* ctx,
                                            const cmsis_nn_conv_params* conv_params,
                                            const cmsis_nn_per_channel_quant_params* quant_params,
                                            const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                            const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                            const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                            const cmsis_nn_dims* output_dims, int8_t* output_data) {
    (void)bias_dims;
    const int32_t groups = input_dims->c / filter_dims->c;
    if (ctx->buf == NULL || input_dims->c % filter_dims->c != 0 || output_dims->c % groups != 0) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    // The batch is the input's: the output's may be left at 1 by callers that only fill what is documented.
    cmsis_nn_dims output = *output_dims;
    output.n = input_dims->n;
    const patch_geometry geometry = {conv_params, input_dims, filter_dims, &output};
    const int32_t depth = filter_dims->h * filter_dims->w * filter_dims->c;
    const output_stage stage = make_output_stage(quant_params->multiplier, quant_params->shift, 1, output.c,
                                                 conv_params->output_offset, bias_data, depth,
                                                 conv_params->activation.min, conv_params->activation.max);
    convolve_patches(&geometry, input_data, filter_data, depth, bias_data, &stage, ctx->buf, output_data);
    clamp_output(&stage, output_data, output.n * output.h * output.w * output.c);
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params* conv_params,
                                                const cmsis_nn_dims* input_dims,
                                                const cmsis_nn_dims* filter_dims,
                                                const cmsis_nn_dims* output_dims) {
    (void)conv_params;
    (void)input_dims;
    (void)output_dims;
    return columns_size(filter_dims->h * filter_dims->w * filter_dims->c);
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params* conv_params,
                                                    const cmsis_nn_dims* input_dims,
                                                    const cmsis_nn_dims* filter_dims,
                                                    const cmsis_nn_dims* output_dims) {
    return arm_convolve_wrapper_s8_get_buffer_size(conv_params, input_dims, filter_dims, output_dims);
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params* conv_params,
                                                    const cmsis_nn_dims* input_dims,
                                                    const cmsis_nn_dims* filter_dims,
                                                    const cmsis_nn_dims* output_dims) {
    return arm_convolve_wrapper_s8_get_buffer_size(conv_params, input_dims, filter_dims, output_dims);
}
