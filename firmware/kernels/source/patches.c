#include "patches.h"

#include <stdbool.h>
#include <stddef.h>

#include "columns.h"

// The patch one group of an output pixel sees. image starts at the group's first channel.
static void write_patch(const patch_geometry* g, const int8_t* image, int32_t out_y, int32_t out_x,
                        column_writer writer) {
    const int32_t channels = g->filter->c;
    const int32_t pixel = g->input->c;
    const cmsis_nn_tile dilation = g->params->dilation;
    const int32_t top = out_y * g->params->stride.h - g->params->padding.h;
    const int32_t left = out_x * g->params->stride.w - g->params->padding.w;
    const bool inside = left >= 0 && left + g->filter->w <= g->input->w;
    const bool contiguous = inside && dilation.w == 1 && channels == pixel;
    for (int32_t ky = 0; ky < g->filter->h; ky++) {
        const int32_t y = top + ky * dilation.h;
        if (y < 0 || y >= g->input->h) {
            put_padding(&writer, g->filter->w * channels);
            continue;
        }
        if (contiguous) {
            put_samples(&writer, image + (y * g->input->w + left) * pixel, g->filter->w * channels);
            continue;
        }
        for (int32_t kx = 0; kx < g->filter->w; kx++) {
            const int32_t x = left + kx * dilation.w;
            if (x < 0 || x >= g->input->w) {
                put_padding(&writer, channels);
            } else {
                put_samples(&writer, image + (y * g->input->w + x) * pixel, channels);
            }
        }
    }
    end_column(&writer);
}

// Position of an output pixel: batch, row, column.
typedef struct {
    int32_t n;
    int32_t y;
    int32_t x;
} position;

static position next_position(position at, const cmsis_nn_dims* output) {
    at.x++;
    if (at.x == output->w) {
        at.x = 0;
        at.y++;
        if (at.y == output->h) {
            at.y = 0;
            at.n++;
        }
    }
    return at;
}

void convolve_patches(const patch_geometry* g, const int8_t* input, const int8_t* filter, int32_t row_stride,
                      const int32_t* bias, const output_stage* stage, uint32_t* columns, int8_t* output) {
    const int32_t groups = g->input->c / g->filter->c;
    const int32_t depth = g->filter->h * g->filter->w * g->filter->c;
    const int32_t channels = g->output->c / groups;
    const int32_t image = g->input->h * g->input->w * g->input->c;
    const int32_t pixels = g->output->n * g->output->h * g->output->w;
    position first = {0, 0, 0};
    for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        const bool pair = pixel + 1 < pixels;
        const position second = pair ? next_position(first, g->output) : first;
        for (int32_t group = 0; group < groups; group++) {
            const int8_t* samples = input + group * g->filter->c;
            const int32_t channel = group * channels;
            write_patch(g, samples + first.n * image, first.y, first.x,
                        start_column(columns, 0, g->params->input_offset));
            write_patch(g, samples + second.n * image, second.y, second.x,
                        start_column(columns, 1, g->params->input_offset));
            multiply_columns(columns, depth, filter + channel * row_stride, row_stride, channels, bias, stage,
                             channel, output + channel, pair ? output + g->output->c + channel : NULL);
        }
        output += 2 * g->output->c;
        first = next_position(second, g->output);
    }
}
