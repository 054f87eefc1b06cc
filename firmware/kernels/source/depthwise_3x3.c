#include "depthwise_3x3.h"

#include <stddef.h>

// One channel's kernel for output lines that see the same of the image's rows.
//
// Everything is doubled, which saves finish_fast's shift. Three rows of the image are read for each output
// line, even where the kernel reaches beyond: there the kernel's rows are moved by one and the free row is
// zero. Columns of the kernel: left, middle, right. Rows 0 and 1 are the halves of a word.
typedef struct {
    uint32_t left;
    uint32_t middle;
    uint32_t right;
    uint32_t left_middle;  // row 2 of the left and of the middle column
    uint32_t last;         // row 2 of the right column
    int32_t bias;          // with the input offset times the kernel's sum
    int32_t bias_at_left;  // where the left column is padding
    int32_t right_offset;  // to be taken away where the right column is padding
    fast_channel scale;
} kernel;

static int32_t padded_after(int32_t out, int32_t stride, int32_t padding, int32_t in) {
    return (out - 1) * stride - padding + 3 - in;
}

bool is_depthwise_3x3(const cmsis_nn_dw_conv_params* params, const cmsis_nn_dims* input,
                      const cmsis_nn_dims* filter, const cmsis_nn_dims* output, const output_stage* stage) {
    const cmsis_nn_tile stride = params->stride;
    return filter->h == 3 && filter->w == 3 && params->dilation.h == 1 && params->dilation.w == 1 &&
           params->ch_mult == 1 && stride.h == stride.w && (stride.h == 1 || stride.h == 2) &&
           params->padding.h <= 1 && params->padding.w <= 1 && input->h >= 3 &&
           padded_after(output->h, stride.h, params->padding.h, input->h) <= 1 &&
           padded_after(output->w, stride.w, params->padding.w, input->w) <= 1 && stage->fast;
}

// A channel's kernel, doubled, with a row of zeros above and below.
typedef struct {
    int32_t row[5][3];
} taps;

static void load_row(int32_t row[3], const int8_t* filter, int32_t channels) {
    row[0] = 2 * filter[0];
    row[1] = 2 * filter[channels];
    row[2] = 2 * filter[2 * channels];
}

// shift: how many rows the kernel's first row lies below the first row read: -1, 0 or 1. bias is not doubled
// yet.
static void make_kernel(kernel* k, const taps* t, int32_t shift, int32_t input_offset, int32_t bias) {
    const int32_t (*w)[3] = &t->row[1 - shift];
    const int32_t left = input_offset * (w[0][0] + w[1][0] + w[2][0]);
    const int32_t middle = input_offset * (w[0][1] + w[1][1] + w[2][1]);
    const int32_t right = input_offset * (w[0][2] + w[1][2] + w[2][2]);
    k->left = pkhbt((uint32_t)w[0][0], (uint32_t)w[1][0]);
    k->middle = pkhbt((uint32_t)w[0][1], (uint32_t)w[1][1]);
    k->right = pkhbt((uint32_t)w[0][2], (uint32_t)w[1][2]);
    k->left_middle = pkhbt((uint32_t)w[2][0], (uint32_t)w[2][1]);
    k->last = (uint32_t)w[2][2];
    k->bias_at_left = 2 * bias + middle + right;
    k->bias = k->bias_at_left + left;
    k->right_offset = right;
}

static inline int8_t finish(const kernel* k, int32_t doubled) {
    const int32_t scaled = smmlar(doubled, k->scale.multiplier, k->scale.rounding);
    return (int8_t)saturate8((scaled + (doubled >> 31)) >> k->scale.right);
}

// Rows 0 and 1 of a column of the image.
static inline uint32_t upper(const int8_t* samples, int32_t row) {
    return pkhbt((uint32_t)(int32_t)samples[0], (uint32_t)(int32_t)samples[row]);
}

static inline uint32_t third(const int8_t* samples, int32_t row) {
    return (uint32_t)(int32_t)samples[2 * row];
}

// What stays the same for all channels. Distances are in bytes.
typedef struct {
    int32_t pixel;      // from one pixel to the next, in input and output
    int32_t row;        // from one row of the input to the next
    int32_t down;       // from the rows read for one output line to those for the next
    int32_t out_row;    // from one output line to the next
    bool left_padded;   // is the kernel's left column padding at the first output?
    bool right_padded;  // and its right column at the last?
    int32_t inside;     // outputs of a line whose right column is not padding
    int32_t input_offset;
} shape;

static void lines_stride_1(const kernel* k, const shape* s, const int8_t* lines, int32_t count,
                           int8_t* output) {
    for (; count > 0; count--) {
        const int8_t* samples = lines;
        int8_t* out = output;
        int32_t current = k->bias_at_left;  // the next output; has its left column, or needs none
        if (!s->left_padded) {
            current = smlabb(k->left_middle, third(samples, s->row),
                             smlad(k->left, upper(samples, s->row), k->bias));
            samples += s->pixel;
        }
        uint32_t two_rows = upper(samples, s->row);
        uint32_t one_row = third(samples, s->row);
        current = smlatb(k->left_middle, one_row, smlad(k->middle, two_rows, current));
        int32_t next = smlabb(k->left_middle, one_row, smlad(k->left, two_rows, k->bias));
        for (int32_t inside = s->inside; inside > 0; inside--) {
            samples += s->pixel;
            two_rows = upper(samples, s->row);
            one_row = third(samples, s->row);
            const int32_t done = smlabb(k->last, one_row, smlad(k->right, two_rows, current));
            current = smlatb(k->left_middle, one_row, smlad(k->middle, two_rows, next));
            next = smlabb(k->left_middle, one_row, smlad(k->left, two_rows, k->bias));
            *out = finish(k, done);
            out += s->pixel;
        }
        if (s->right_padded) {
            *out = finish(k, current - k->right_offset);
        }
        lines += s->down;
        output += s->out_row;
    }
}

static void lines_stride_2(const kernel* k, const shape* s, const int8_t* lines, int32_t count,
                           int8_t* output) {
    for (; count > 0; count--) {
        const int8_t* samples = lines;
        int8_t* out = output;
        int32_t current = k->bias_at_left;
        if (!s->left_padded) {
            current = smlabb(k->left_middle, third(samples, s->row),
                             smlad(k->left, upper(samples, s->row), k->bias));
            samples += s->pixel;
        }
        for (int32_t inside = s->inside; inside > 0; inside--) {
            current = smlatb(k->left_middle, third(samples, s->row),
                             smlad(k->middle, upper(samples, s->row), current));
            samples += s->pixel;
            const uint32_t two_rows = upper(samples, s->row);
            const uint32_t one_row = third(samples, s->row);
            samples += s->pixel;
            const int32_t done = smlabb(k->last, one_row, smlad(k->right, two_rows, current));
            current = smlabb(k->left_middle, one_row, smlad(k->left, two_rows, k->bias));
            *out = finish(k, done);
            out += s->pixel;
        }
        if (s->right_padded) {
            current = smlatb(k->left_middle, third(samples, s->row),
                             smlad(k->middle, upper(samples, s->row), current));
            *out = finish(k, current - k->right_offset);
        }
        lines += s->down;
        output += s->out_row;
    }
}

void depthwise_3x3(const cmsis_nn_dw_conv_params* params, const cmsis_nn_dims* input_dims,
                   const int8_t* input, const int8_t* filter, const int32_t* bias,
                   const cmsis_nn_dims* output_dims, const output_stage* stage, int8_t* output) {
    const int32_t channels = input_dims->c;
    const int32_t stride = params->stride.h;
    const int32_t height = output_dims->h;
    const bool right_padded = padded_after(output_dims->w, stride, params->padding.w, input_dims->w) == 1;
    const shape s = {channels,
                     input_dims->w * channels,
                     stride * input_dims->w * channels,
                     output_dims->w * channels,
                     params->padding.w == 1,
                     right_padded,
                     output_dims->w - right_padded,
                     params->input_offset};
    // Output lines at the top, whose first row is padding, in the middle, and at the bottom, whose last row
    // is.
    const int32_t top = params->padding.h;
    const int32_t bottom = padded_after(height, stride, params->padding.h, input_dims->h) == 1;
    const int32_t counts[3] = {top, height - top - bottom, bottom};
    const int8_t* const starts[3] = {input, input + (stride - 1) * top * s.row,
                                     input + (input_dims->h - 3) * s.row};
    for (int32_t channel = 0; channel < channels; channel++) {
        taps t = {{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
        kernel k;
        load_row(t.row[1], filter + channel, channels);
        load_row(t.row[2], filter + channel + 3 * channels, channels);
        load_row(t.row[3], filter + channel + 6 * channels, channels);
        k.scale = load_channel(stage, channel);
        int8_t* line = output + channel;
        for (int32_t zone = 0; zone < 3; zone++) {
            if (counts[zone] > 0) {
                make_kernel(&k, &t, zone - 1, params->input_offset, bias != NULL ? bias[channel] : 0);
                if (stride == 1) {
                    lines_stride_1(&k, &s, starts[zone] + channel, counts[zone], line);
                } else {
                    lines_stride_2(&k, &s, starts[zone] + channel, counts[zone], line);
                }
                line += counts[zone] * s.out_row;
            }
        }
    }
}
