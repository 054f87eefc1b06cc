#include "arm_nnfunctions.h"

#include "simd.h"

// The part of the pooling window that lies inside the image.
typedef struct {
    const int8_t* samples;  // first such pixel, channel 0
    int32_t rows;
    int32_t columns;
} window;

static int32_t smaller(int32_t a, int32_t b) {
    return a < b ? a : b;
}

static int32_t larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

static window window_at(const cmsis_nn_pool_params* params, const cmsis_nn_dims* input,
                        const cmsis_nn_dims* filter, const int8_t* image, int32_t out_y, int32_t out_x) {
    const int32_t y = out_y * params->stride.h - params->padding.h;
    const int32_t x = out_x * params->stride.w - params->padding.w;
    const int32_t top = larger(y, 0);
    const int32_t left = larger(x, 0);
    const window w = {image, larger(smaller(y + filter->h, input->h) - top, 0),
                      larger(smaller(x + filter->w, input->w) - left, 0)};
    window result = w;
    if (w.rows > 0 && w.columns > 0) {
        result.samples = image + (top * input->w + left) * input->c;
    }
    return result;
}

static int8_t clamp(int32_t value, const cmsis_nn_activation* activation) {
    value = value < activation->min ? activation->min : value;
    return (int8_t)(value > activation->max ? activation->max : value);
}

// Halves away from zero where count is even; the division truncates.
static int32_t average(int32_t sum, int32_t count) {
    return sum > 0 ? (sum + count / 2) / count : (sum - count / 2) / count;
}

static int32_t sum_channel(const window* w, int32_t pixel, int32_t row) {
    int32_t sum = 0;
    for (int32_t y = 0; y < w->rows; y++) {
        for (int32_t x = 0; x < w->columns; x++) {
            sum += w->samples[y * row + x * pixel];
        }
    }
    return sum;
}

// Sums of four channels in int16 lanes: channels 0 and 2 in even, 1 and 3 in odd. At most 255 taps.
static void sum_four_channels(const int8_t* samples, const window* w, int32_t pixel, int32_t row,
                              uint32_t* even, uint32_t* odd) {
    uint32_t even_sum = 0;
    uint32_t odd_sum = 0;
    for (int32_t y = 0; y < w->rows; y++) {
        const int8_t* sample = samples + y * row;
        for (int32_t x = 0; x < w->columns; x++) {
            const uint32_t word = load4(sample);
            even_sum = sxtab16(even_sum, word);
            odd_sum = sxtab16_ror8(odd_sum, word);
            sample += pixel;
        }
    }
    *even = even_sum;
    *odd = odd_sum;
}

static void average_window(const window* w, const cmsis_nn_dims* input, const cmsis_nn_activation* activation,
                           int8_t* output) {
    const int32_t pixel = input->c;
    const int32_t row = input->w * pixel;
    const int32_t count = w->rows * w->columns;
    int32_t c = 0;
    if (count <= 255) {
        for (; c + 4 <= input->c; c += 4) {
            uint32_t even;
            uint32_t odd;
            sum_four_channels(w->samples + c, w, pixel, row, &even, &odd);
            output[c] = clamp(average((int16_t)(uint16_t)even, count), activation);
            output[c + 1] = clamp(average((int16_t)(uint16_t)odd, count), activation);
            output[c + 2] = clamp(average((int16_t)(uint16_t)(even >> 16), count), activation);
            output[c + 3] = clamp(average((int16_t)(uint16_t)(odd >> 16), count), activation);
        }
    }
    for (; c < input->c; c++) {
        const window rest = {w->samples + c, w->rows, w->columns};
        output[c] = clamp(average(sum_channel(&rest, pixel, row), count), activation);
    }
}

static void largest_of_window(const window* w, const cmsis_nn_dims* input,
                              const cmsis_nn_activation* activation, int8_t* output) {
    const int32_t pixel = input->c;
    const int32_t row = input->w * pixel;
    const uint32_t min = four_times8(activation->min);
    const uint32_t max = four_times8(activation->max);
    for (int32_t c = 0; c < input->c; c += 4) {
        const int32_t left = input->c - c;
        uint32_t best = four_times8(-128);
        for (int32_t y = 0; y < w->rows; y++) {
            const int8_t* sample = w->samples + y * row + c;
            for (int32_t x = 0; x < w->columns; x++) {
                best = max8(best, left < 4 ? load_tail(sample, left) : load4(sample));
                sample += pixel;
            }
        }
        best = min8(max8(best, min), max);
        if (left >= 4) {
            store4(output + c, best);
        } else {
            for (int32_t i = 0; i < left; i++) {
                output[c + i] = (int8_t)(uint8_t)(best >> (8 * i));
            }
        }
    }
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* pool_params,
                                   const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                   const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* output_dims,
                                   int8_t* output_data) {
    (void)ctx;
    for (int32_t n = 0; n < input_dims->n; n++) {
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                const window w = window_at(pool_params, input_dims, filter_dims, input_data, y, x);
                if (w.rows == 0 || w.columns == 0) {
                    return ARM_CMSIS_NN_ARG_ERROR;
                }
                average_window(&w, input_dims, &pool_params->activation, output_data);
                output_data += input_dims->c;
            }
        }
        input_data += input_dims->h * input_dims->w * input_dims->c;
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* pool_params,
                                    const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                    const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* output_dims,
                                    int8_t* output_data) {
    (void)ctx;
    for (int32_t n = 0; n < input_dims->n; n++) {
        for (int32_t y = 0; y < output_dims->h; y++) {
            for (int32_t x = 0; x < output_dims->w; x++) {
                const window w = window_at(pool_params, input_dims, filter_dims, input_data, y, x);
                largest_of_window(&w, input_dims, &pool_params->activation, output_data);
                output_data += input_dims->c;
            }
        }
        input_data += input_dims->h * input_dims->w * input_dims->c;
    }
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src) {
    (void)dim_dst_width;
    (void)ch_src;
    return 0;
}

int32_t arm_avgpool_s8_get_buffer_size_dsp(const int dim_dst_width, const int ch_src) {
    return arm_avgpool_s8_get_buffer_size(dim_dst_width, ch_src);
}

int32_t arm_avgpool_s8_get_buffer_size_mve(const int dim_dst_width, const int ch_src) {
    return arm_avgpool_s8_get_buffer_size(dim_dst_width, ch_src);
}
