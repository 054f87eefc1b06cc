// Matrix product of int8 filter rows with columns of int16 samples, two by two: the core of every
// convolution.
//
// A pair of columns holds two patches of `depth` samples with the input offset already added, four words per
// group of four samples k0..k3: first patch (k0, k2), second patch (k0, k2), first patch (k1, k3), second
// patch (k1, k3). Those are the lanes SXTB16 and SXTB16 ROR 8 give for four int8 weights, so weights are
// expanded in the loop and need no rearranging. Samples past `depth` in the last group are 0.

#ifndef DEPLOY_COLUMNS_H
#define DEPLOY_COLUMNS_H

#include <stdint.h>

#include "requantize.h"

// Bytes of a pair of columns.
static inline int32_t columns_size(int32_t depth) {
    return 4 * ((depth + 3) & ~3);
}

// Columns of patches whose samples come in whole groups. expand_line writes one column (columns, or columns +
// 1 for the second) of a line with padding before and after it; counts are multiples of 4.
void expand_both(uint32_t* columns, const int8_t* first, const int8_t* second, int32_t count,
                 int32_t input_offset);
void expand_line(uint32_t* column, const int8_t* samples, int32_t before, int32_t count, int32_t after,
                 int32_t input_offset);

// Collects the samples of one patch, in runs of any length, into its column.
typedef struct {
    uint32_t* column;  // next group: words 0 and 2 are this patch's
    uint32_t offset;   // input offset in both lanes
    uint32_t pending;  // samples not yet written, low byte first
    int32_t bits;      // how many bits of `pending` are in use: 0, 8, 16 or 24
} column_writer;

// index: 0 or 1, which of the two columns.
column_writer start_column(uint32_t* columns, int32_t index, int32_t input_offset);
void put_samples(column_writer* writer, const int8_t* samples, int32_t count);
// Samples that are zero after the input offset.
void put_padding(column_writer* writer, int32_t count);
// Fills the last group.
void end_column(column_writer* writer);

// What stays the same for all pixels of a layer.
typedef struct {
    const int8_t* filter;  // one row of `depth` weights per output channel
    int32_t depth;
    const int32_t* bias;  // may be NULL
    const output_stage* stage;
} multiplication;

// Multiplies the rows of `channels` output channels with both columns and writes one int8 per row to each
// output; the results of a fast stage are not clamped yet. Where only the first column is wanted, second is
// the same as first.
void multiply_columns(const multiplication* m, const uint32_t* columns, int32_t first_channel,
                      int32_t channels, int8_t* first, int8_t* second);

#endif
