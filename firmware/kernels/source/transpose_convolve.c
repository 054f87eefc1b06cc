#include "arm_nnfunctions.h"

#include <stddef.h>

#include "requantize.h"
#include "rows.h"

typedef struct {
    const cmsis_nn_transpose_conv_params* params;
    const cmsis_nn_dims* input;
    const cmsis_nn_dims* filter;
    const int8_t* weights;
    const int32_t* bias;
    int32_t channels;  // of the output
    output_stage stage;
} layer;

// Input coordinate that reaches an output coordinate through tap k, or -1 if none does.
static int32_t source_of(int32_t out, int32_t padding, int32_t k, int32_t stride, int32_t size) {
    const int32_t shifted = out + padding - k;
    if (shifted < 0 || shifted % stride != 0 || shifted / stride >= size) {
        return -1;
    }
    return shifted / stride;
}

// Sums of four output channels from `channel` on; channels past the last are computed from the last.
static void add_taps(const layer* l, const int8_t* image, int32_t out_y, int32_t out_x, int32_t channel,
                     bool four, int32_t sum[4]) {
    const int32_t depth = l->input->c;
    const int32_t row = l->filter->h * l->filter->w * depth;
    const int32_t offset = l->params->input_offset;
    for (int32_t ky = 0; ky < l->filter->h; ky++) {
        const int32_t y = source_of(out_y, l->params->padding.h, ky, l->params->stride.h, l->input->h);
        if (y < 0) {
            continue;
        }
        for (int32_t kx = 0; kx < l->filter->w; kx++) {
            const int32_t x = source_of(out_x, l->params->padding.w, kx, l->params->stride.w, l->input->w);
            if (x < 0) {
                continue;
            }
            const int8_t* samples = image + (y * l->input->w + x) * depth;
            const int8_t* weights = l->weights + channel * row + (ky * l->filter->w + kx) * depth;
            if (four) {
                multiply_four_rows(samples, offset, weights, row, depth, sum);
            } else {
                sum[0] += multiply_row(samples, offset, weights, depth);
            }
        }
    }
}

static void write_pixel(const layer* l, const int8_t* image, int32_t out_y, int32_t out_x, int8_t* output) {
    int32_t channel = 0;
    while (channel < l->channels) {
        const bool four = channel + 4 <= l->channels;
        const int32_t count = four ? 4 : 1;
        int32_t sum[4];
        for (int32_t i = 0; i < count; i++) {
            sum[i] = l->bias != NULL ? l->bias[channel + i] : 0;
        }
        add_taps(l, image, out_y, out_x, channel, four, sum);
        for (int32_t i = 0; i < count; i++) {
            output[channel + i] = (int8_t)finish_exact(&l->stage, channel + i, sum[i]);
        }
        channel += count;
    }
}

arm_cmsis_nn_status arm_transpose_conv_wrapper_s8(const cmsis_nn_context* ctx,
                                                  const cmsis_nn_context* reverse_conv_ctx,
                                                  const cmsis_nn_transpose_conv_params* transpose_conv_params,
                                                  const cmsis_nn_per_channel_quant_params* quant_params,
                                                  const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                                  const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                                  const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                                  const cmsis_nn_dims* output_dims, int8_t* output_data) {
    (void)ctx;
    (void)reverse_conv_ctx;
    (void)bias_dims;
    const layer l = {
        transpose_conv_params,
        input_dims,
        filter_dims,
        filter_data,
        bias_data,
        output_dims->c,
        make_output_stage(quant_params->multiplier, quant_params->shift, 1, output_dims->c,
                          transpose_conv_params->output_offset, bias_data,
                          filter_dims->h * filter_dims->w * input_dims->c,
                          transpose_conv_params->activation.min, transpose_conv_params->activation.max)};
    for (int32_t n = 0; n < input_dims->n; n++) {
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                write_pixel(&l, input_data, y, x, output_data);
                output_data += output_dims->c;
            }
        }
        input_data += input_dims->h * input_dims->w * input_dims->c;
    }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_transpose_conv_s8_get_buffer_size(const cmsis_nn_transpose_conv_params* transposed_conv_params,
                                              const cmsis_nn_dims* input_dims,
                                              const cmsis_nn_dims* filter_dims,
                                              const cmsis_nn_dims* out_dims) {
    (void)transposed_conv_params;
    (void)input_dims;
    (void)filter_dims;
    (void)out_dims;
    return 0;
}

int32_t arm_transpose_conv_s8_get_buffer_size_mve(
    const cmsis_nn_transpose_conv_params* transposed_conv_params, const cmsis_nn_dims* input_dims,
    const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* out_dims) {
    return arm_transpose_conv_s8_get_buffer_size(transposed_conv_params, input_dims, filter_dims, out_dims);
}

int32_t arm_transpose_conv_s8_get_reverse_conv_buffer_size(
    const cmsis_nn_transpose_conv_params* transposed_conv_params, const cmsis_nn_dims* input_dims,
    const cmsis_nn_dims* filter_dims) {
    (void)transposed_conv_params;
    (void)input_dims;
    (void)filter_dims;
    return 0;
}
