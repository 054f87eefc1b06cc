#include "arm_nnfunctions.h"

#include <stddef.h>

#include "depthwise_3x3.h"
#include "patches.h"

// What stays the same for all output pixels.
typedef struct {
    const cmsis_nn_dw_conv_params* params;
    const cmsis_nn_dims* input;
    const cmsis_nn_dims* filter;
    const int8_t* weights;
    const int32_t* bias;
    output_stage stage;
} layer;

// The part of the kernel that lies inside the image for one output pixel.
typedef struct {
    const int8_t* samples;  // of the first such tap, channel 0
    const int8_t* weights;
    int32_t rows;
    int32_t columns;
} window;

// First tap at or after the image's edge, for a kernel whose first tap is at `start`.
static int32_t first_tap(int32_t start, int32_t dilation) {
    return start < 0 ? (dilation - 1 - start) / dilation : 0;
}

// One past the last tap before the image's other edge.
static int32_t end_tap(int32_t start, int32_t dilation, int32_t taps, int32_t size) {
    const int32_t inside = start < size ? (size - 1 - start) / dilation + 1 : 0;
    return inside < taps ? inside : taps;
}

static window window_at(const layer* l, const int8_t* image, int32_t out_y, int32_t out_x) {
    const cmsis_nn_tile dilation = l->params->dilation;
    const int32_t y = out_y * l->params->stride.h - l->params->padding.h;
    const int32_t x = out_x * l->params->stride.w - l->params->padding.w;
    const int32_t ky = first_tap(y, dilation.h);
    const int32_t kx = first_tap(x, dilation.w);
    const int32_t rows = end_tap(y, dilation.h, l->filter->h, l->input->h) - ky;
    const int32_t columns = end_tap(x, dilation.w, l->filter->w, l->input->w) - kx;
    window w = {image, l->weights, 0, 0};
    if (rows > 0 && columns > 0) {
        w.samples = image + ((y + ky * dilation.h) * l->input->w + x + kx * dilation.w) * l->input->c;
        w.weights = l->weights + (ky * l->filter->w + kx) * l->filter->c;
        w.rows = rows;
        w.columns = columns;
    }
    return w;
}

// Any channel multiplier, one output channel at a time.
static void one_channel(const layer* l, const window* w, int32_t channel, int8_t* output) {
    const int32_t sample_step = l->params->dilation.w * l->input->c;
    const int32_t sample_row = l->params->dilation.h * l->input->w * l->input->c;
    const int32_t weight_step = l->filter->c;
    int32_t sum = l->bias != NULL ? l->bias[channel] : 0;
    const int8_t* samples = w->samples + channel / l->params->ch_mult;
    const int8_t* weights = w->weights + channel;
    for (int32_t row = 0; row < w->rows; row++) {
        for (int32_t column = 0; column < w->columns; column++) {
            sum += (samples[column * sample_step] + l->params->input_offset) * weights[column * weight_step];
        }
        samples += sample_row;
        weights += l->filter->w * weight_step;
    }
    output[channel] = (int8_t)finish_exact(&l->stage, channel, sum);
}

// Four channels from `channel` on, channel multiplier 1.
static void four_channels(const layer* l, const window* w, int32_t channel, int8_t* output) {
    const int32_t step = l->input->c;
    const int32_t sample_step = l->params->dilation.w * step;
    const int32_t sample_row = l->params->dilation.h * l->input->w * step;
    const uint32_t offset = twice16(l->params->input_offset);
    const int32_t* bias = l->bias;
    int32_t sum_0 = bias != NULL ? bias[channel] : 0;
    int32_t sum_1 = bias != NULL ? bias[channel + 1] : 0;
    int32_t sum_2 = bias != NULL ? bias[channel + 2] : 0;
    int32_t sum_3 = bias != NULL ? bias[channel + 3] : 0;
    const int8_t* sample_line = w->samples + channel;
    const int8_t* weight_line = w->weights + channel;
    for (int32_t row = 0; row < w->rows; row++) {
        const int8_t* samples = sample_line;
        const int8_t* weights = weight_line;
        for (int32_t column = w->columns; column > 0; column--) {
            const uint32_t sample = load4(samples);
            const uint32_t weight = load4(weights);
            const uint32_t even = sxtab16(offset, sample);
            const uint32_t odd = sxtab16_ror8(offset, sample);
            const uint32_t weight_even = sxtb16(weight);
            const uint32_t weight_odd = sxtb16_ror8(weight);
            sum_0 = smlabb(even, weight_even, sum_0);
            sum_1 = smlabb(odd, weight_odd, sum_1);
            sum_2 = smlatt(even, weight_even, sum_2);
            sum_3 = smlatt(odd, weight_odd, sum_3);
            samples += sample_step;
            weights += step;
        }
        sample_line += sample_row;
        weight_line += l->filter->w * step;
    }
    const output_stage* stage = &l->stage;
    uint32_t results;
    if (stage->fast) {
        results = pack8(finish_fast(load_channel(stage, channel), sum_0),
                        finish_fast(load_channel(stage, channel + 1), sum_1),
                        finish_fast(load_channel(stage, channel + 2), sum_2),
                        finish_fast(load_channel(stage, channel + 3), sum_3));
    } else {
        results = pack8(finish_exact(stage, channel, sum_0), finish_exact(stage, channel + 1, sum_1),
                        finish_exact(stage, channel + 2, sum_2), finish_exact(stage, channel + 3, sum_3));
    }
    store4(output + channel, results);
}

// One image, any kernel.
static void depthwise_image(const layer* l, const int8_t* image, const cmsis_nn_dims* output_dims,
                            int8_t* output) {
    const int32_t channels = l->filter->c;
    const int32_t in_fours = l->params->ch_mult == 1 ? channels & ~3 : 0;
    for (int32_t y = 0; y < output_dims->h; y++) {
        for (int32_t x = 0; x < output_dims->w; x++) {
            const window w = window_at(l, image, y, x);
            for (int32_t channel = 0; channel < in_fours; channel += 4) {
                four_channels(l, &w, channel, output);
            }
            for (int32_t channel = in_fours; channel < channels; channel++) {
                one_channel(l, &w, channel, output);
            }
            output += channels;
        }
    }
}

static void depthwise(const layer* l, const int8_t* input, const cmsis_nn_dims* output_dims, int8_t* output) {
    const bool is_3x3 = is_depthwise_3x3(l->params, l->input, l->filter, output_dims, &l->stage);
    for (int32_t n = 0; n < l->input->n; n++) {
        if (is_3x3) {
            depthwise_3x3(l->params, l->input, input, l->weights, l->bias, output_dims, &l->stage, output);
        } else {
            depthwise_image(l, input, output_dims, output);
        }
        input += l->input->h * l->input->w * l->input->c;
        output += output_dims->h * output_dims->w * output_dims->c;
    }
}

// One input channel: a convolution whose filter lies the other way round. The filter is transposed into
// scratch, rows rounded up to whole words, and the columns' core does the rest.
static void single_input(const layer* l, const int8_t* input, const cmsis_nn_dims* output_dims,
                         int8_t* scratch, int8_t* output) {
    const int32_t channels = l->filter->c;
    const int32_t depth = l->filter->h * l->filter->w;
    const int32_t row = (depth + 3) & ~3;
    for (int32_t channel = 0; channel < channels; channel++) {
        for (int32_t tap = 0; tap < row; tap++) {
            scratch[channel * row + tap] = tap < depth ? l->weights[tap * channels + channel] : 0;
        }
    }
    const cmsis_nn_conv_params params = {l->params->input_offset, l->params->output_offset,
                                         l->params->stride,       l->params->padding,
                                         l->params->dilation,     l->params->activation};
    const cmsis_nn_dims filter = {channels, l->filter->h, l->filter->w, 1};
    cmsis_nn_dims out = *output_dims;
    out.n = l->input->n;
    const patch_geometry geometry = {&params, l->input, &filter, &out};
    convolve_patches(&geometry, input, scratch, row, l->bias, &l->stage,
                     (uint32_t*)(void*)(scratch + channels * row), output);
}

arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context* ctx,
                                                  const cmsis_nn_dw_conv_params* dw_conv_params,
                                                  const cmsis_nn_per_channel_quant_params* quant_params,
                                                  const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                                  const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                                  const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                                  const cmsis_nn_dims* output_dims, int8_t* output_data) {
    (void)bias_dims;
    if (input_dims->c * dw_conv_params->ch_mult != output_dims->c || filter_dims->c != output_dims->c) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    const cmsis_nn_activation activation = dw_conv_params->activation;
    const layer l = {dw_conv_params,
                     input_dims,
                     filter_dims,
                     filter_data,
                     bias_data,
                     make_output_stage(quant_params->multiplier, quant_params->shift, 1, output_dims->c,
                                       dw_conv_params->output_offset, bias_data,
                                       filter_dims->h * filter_dims->w, activation.min, activation.max)};
    if (input_dims->c == 1 && output_dims->c > 1) {
        if (ctx->buf == NULL) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
        single_input(&l, input_data, output_dims, ctx->buf, output_data);
    } else {
        depthwise(&l, input_data, output_dims, output_data);
    }
    clamp_output(&l.stage, output_data, input_dims->n * output_dims->h * output_dims->w * output_dims->c);
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                      const cmsis_nn_dims* input_dims,
                                                      const cmsis_nn_dims* filter_dims,
                                                      const cmsis_nn_dims* output_dims) {
    (void)dw_conv_params;
    if (input_dims->c != 1 || output_dims->c == 1) {
        return 0;
    }
    return (output_dims->c + 4) * ((filter_dims->h * filter_dims->w + 3) & ~3);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                          const cmsis_nn_dims* input_dims,
                                                          const cmsis_nn_dims* filter_dims,
                                                          const cmsis_nn_dims* output_dims) {
    return arm_depthwise_conv_wrapper_s8_get_buffer_size(dw_conv_params, input_dims, filter_dims,
                                                         output_dims);
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                          const cmsis_nn_dims* input_dims,
                                                          const cmsis_nn_dims* filter_dims,
                                                          const cmsis_nn_dims* output_dims) {
    return arm_depthwise_conv_wrapper_s8_get_buffer_size(dw_conv_params, input_dims, filter_dims,
                                                         output_dims);
}
