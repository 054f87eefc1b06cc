#include "patches.h"

#include <stdbool.h>
#include <stddef.h>

#include "columns.h"

#define GATHER_MAX 64  // bytes of a small patch that are gathered on the stack before they become a column

// What one output pixel sees. `image` starts at the first channel of the group; taps outside it are padding.
typedef struct {
    const int8_t* image;
    int32_t top;  // of the kernel, in the image
    int32_t left;
    // Where samples of one line of the kernel are neighbours in memory: `before` and `after` samples of
    // padding around `count` others, the first of them `offset` from the image's first if the line were line
    // 0 of the kernel.
    int32_t before;
    int32_t count;
    int32_t after;
    int32_t offset;
} patch;

// Are the samples under one line of the kernel neighbours in memory?
static bool is_contiguous(const patch_geometry* g) {
    return g->filter->w == 1 || (g->params->dilation.w == 1 && g->filter->c == g->input->c);
}

static patch patch_at(const patch_geometry* g, const int8_t* image, int32_t out_y, int32_t out_x) {
    const int32_t left = out_x * g->params->stride.w - g->params->padding.w;
    const int32_t top = out_y * g->params->stride.h - g->params->padding.h;
    const int32_t taps = g->filter->w;
    const int32_t channels = g->filter->c;
    const int32_t room = g->input->w - left;
    int32_t first = left < 0 ? -left : 0;
    int32_t end = room < taps ? room : taps;
    if (end <= first) {  // all padding
        first = 0;
        end = 0;
    }
    const patch p = {image,
                     top,
                     left,
                     first * channels,
                     (end - first) * channels,
                     (taps - end) * channels,
                     (top * g->input->w + left + first) * g->input->c};
    return p;
}

// Line ky of a contiguous kernel, or NULL if it is all padding.
static inline const int8_t* line_at(const patch_geometry* g, const patch* p, int32_t ky) {
    const int32_t down = ky * g->params->dilation.h;
    const int32_t y = p->top + down;
    const bool inside = (uint32_t)y < (uint32_t)g->input->h && p->count != 0;
    return inside ? p->image + p->offset + down * g->input->w * g->input->c : NULL;
}

// Is a patch of a contiguous kernel free of padding?
static bool is_inside(const patch_geometry* g, const patch* p) {
    return p->before == 0 && p->after == 0 && p->top >= 0 &&
           p->top + (g->filter->h - 1) * g->params->dilation.h < g->input->h;
}

// The samples of any kernel, in the order of the filter, through the writer.
static void write_any(const patch_geometry* g, const patch* p, column_writer writer) {
    const int32_t channels = g->filter->c;
    const bool contiguous = is_contiguous(g);
    for (int32_t ky = 0; ky < g->filter->h; ky++) {
        if (contiguous) {
            const int8_t* samples = line_at(g, p, ky);
            if (samples == NULL) {
                put_padding(&writer, g->filter->w * channels);
            } else {
                put_padding(&writer, p->before);
                put_samples(&writer, samples, p->count);
                put_padding(&writer, p->after);
            }
            continue;
        }
        const int32_t y = p->top + ky * g->params->dilation.h;
        for (int32_t kx = 0; kx < g->filter->w; kx++) {
            const int32_t x = p->left + kx * g->params->dilation.w;
            if (y < 0 || y >= g->input->h || x < 0 || x >= g->input->w) {
                put_padding(&writer, channels);
            } else {
                put_samples(&writer, p->image + (y * g->input->w + x) * g->input->c, channels);
            }
        }
    }
    end_column(&writer);
}

// One line into one column; samples is NULL for padding.
static void write_line(uint32_t* column, const int8_t* samples, const patch* p, int32_t count,
                       int32_t input_offset) {
    if (samples == NULL) {
        expand_line(column, samples, count, 0, 0, input_offset);
    } else {
        expand_line(column, samples, p->before, p->count, p->after, input_offset);
    }
}

// Contiguous kernels whose lines are whole groups: both patches at once wherever neither has padding.
static void write_whole_groups(const patch_geometry* g, const patch patches[2], uint32_t* columns) {
    const int32_t offset = g->params->input_offset;
    const int32_t count = g->filter->w * g->filter->c;
    const bool inside = patches[0].count == count && patches[1].count == count;
    for (int32_t ky = 0; ky < g->filter->h; ky++) {
        const int8_t* first = line_at(g, &patches[0], ky);
        const int8_t* second = line_at(g, &patches[1], ky);
        if (inside && first != NULL && second != NULL) {
            expand_both(columns, first, second, count, offset);
        } else {
            write_line(columns, first, &patches[0], count, offset);
            write_line(columns + 1, second, &patches[1], count, offset);
        }
        columns += count;
    }
}

static void copy(int8_t* to, const int8_t* from, int32_t count) {
    if (count >= 4) {
        // The last word overlaps the one before it, so that nothing outside is touched.
        const int32_t last = count - 4;
        for (int32_t i = 0; i < last; i += 4) {
            store4(to + i, load4(from + i));
        }
        store4(to + last, load4(from + last));
    } else {
        for (int32_t i = 0; i < count; i++) {
            to[i] = from[i];
        }
    }
}

static int8_t* fill(int8_t* to, uint32_t value, int32_t count) {
    for (; count > 0; count--) {
        *to++ = (int8_t)(uint8_t)value;
    }
    return to;
}

// A small patch of a contiguous kernel, as bytes.
static void gather(const patch_geometry* g, const patch* p, int8_t* to) {
    const int32_t count = g->filter->w * g->filter->c;
    if (is_inside(g, p)) {
        const int32_t down = g->params->dilation.h * g->input->w * g->input->c;
        const int8_t* samples = p->image + p->offset;
        for (int32_t ky = 0; ky < g->filter->h; ky++) {
            copy(to, samples, count);
            to += count;
            samples += down;
        }
        return;
    }
    const uint32_t padding = four_times8(-g->params->input_offset);
    for (int32_t ky = 0; ky < g->filter->h; ky++) {
        const int8_t* samples = line_at(g, p, ky);
        if (samples == NULL) {
            to = fill(to, padding, count);
        } else {
            to = fill(to, padding, p->before);
            copy(to, samples, p->count);
            to = fill(to + p->count, padding, p->after);
        }
    }
}

static void write_gathered(const patch_geometry* g, const patch patches[2], int32_t depth,
                           uint32_t* columns) {
    int8_t bytes[2][GATHER_MAX];
    const int32_t whole = (depth + 3) & ~3;
    for (int32_t i = 0; i < 2; i++) {
        // The last group ends in padding unless the patch fills it.
        store4(bytes[i] + whole - 4, four_times8(-g->params->input_offset));
        gather(g, &patches[i], bytes[i]);
    }
    expand_both(columns, bytes[0], bytes[1], whole, g->params->input_offset);
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

// Kernels of one tap without padding, in whole groups: a patch is a pixel of the input.
static void convolve_pixels(const patch_geometry* g, const int8_t* input, const multiplication* m,
                            uint32_t* columns, int8_t* output) {
    const int32_t channels = g->output->c;
    const int32_t step = g->params->stride.w * g->input->c;
    const int32_t line = g->params->stride.h * g->input->w * g->input->c;
    const int32_t image = g->input->h * g->input->w * g->input->c;
    const int32_t pixels = g->output->n * g->output->h * g->output->w;
    position at = {0, 0, 0};
    const int8_t* first = input;
    for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        const int8_t* second = first;
        if (pixel + 1 < pixels) {
            at = next_position(at, g->output);
            second = at.x != 0 ? first + step : input + at.n * image + at.y * line;
        }
        expand_both(columns, first, second, g->input->c, g->params->input_offset);
        multiply_columns(m, columns, 0, channels, output, output + (pixel + 1 < pixels ? channels : 0));
        output += 2 * channels;
        at = next_position(at, g->output);
        first = at.x != 0 ? second + step : input + at.n * image + at.y * line;
    }
}

void convolve_patches(const patch_geometry* g, const int8_t* input, const int8_t* filter, int32_t depth,
                      const int32_t* bias, const output_stage* stage, uint32_t* columns, int8_t* output) {
    const int32_t groups = g->input->c / g->filter->c;
    const int32_t channels = g->output->c / groups;
    const int32_t pixels = g->output->n * g->output->h * g->output->w;
    const int32_t image = g->input->h * g->input->w * g->input->c;
    const multiplication m = {filter, depth, bias, stage};
    if (g->filter->h == 1 && g->filter->w == 1 && g->params->padding.h == 0 && g->params->padding.w == 0 &&
        groups == 1 && depth % 4 == 0 && (g->output->h - 1) * g->params->stride.h < g->input->h &&
        (g->output->w - 1) * g->params->stride.w < g->input->w) {
        convolve_pixels(g, input, &m, columns, output);
        return;
    }
    const bool contiguous = is_contiguous(g);
    const bool whole_groups = contiguous && g->filter->c % 4 == 0;
    const bool gathered = contiguous && depth <= GATHER_MAX;
    position at = {0, 0, 0};
    for (int32_t pixel = 0; pixel < pixels; pixel += 2) {
        const bool pair = pixel + 1 < pixels;
        const position next = pair ? next_position(at, g->output) : at;
        for (int32_t group = 0; group < groups; group++) {
            const int8_t* samples = input + group * g->filter->c;
            const int32_t channel = group * channels;
            const patch patches[2] = {patch_at(g, samples + at.n * image, at.y, at.x),
                                      patch_at(g, samples + next.n * image, next.y, next.x)};
            if (whole_groups) {
                write_whole_groups(g, patches, columns);
            } else if (gathered) {
                write_gathered(g, patches, depth, columns);
            } else {
                write_any(g, &patches[0], start_column(columns, 0, g->params->input_offset));
                write_any(g, &patches[1], start_column(columns, 1, g->params->input_offset));
            }
            multiply_columns(&m, columns, channel, channels, output + channel,
                             output + channel + (pair ? g->output->c : 0));
        }
        output += 2 * g->output->c;
        at = next_position(next, g->output);
    }
}
