#include "columns.h"

#include <stddef.h>

#include "columns_dsp.h"

column_writer start_column(uint32_t* columns, int32_t index, int32_t input_offset) {
    const column_writer writer = {columns + index, twice16(input_offset), 0, 0};
    return writer;
}

static inline uint32_t* put_group(uint32_t* column, uint32_t offset, uint32_t samples) {
    column[0] = sxtab16(offset, samples);
    column[2] = sxtab16_ror8(offset, samples);
    return column + 4;
}

void expand_both(uint32_t* columns, const int8_t* first, const int8_t* second, int32_t count,
                 int32_t input_offset) {
    const uint32_t offset = twice16(input_offset);
    const int8_t* const end = first + count;
    while (first != end) {
        const uint32_t first_word = load4(first);
        const uint32_t second_word = load4(second);
        columns[0] = sxtab16(offset, first_word);
        columns[1] = sxtab16(offset, second_word);
        columns[2] = sxtab16_ror8(offset, first_word);
        columns[3] = sxtab16_ror8(offset, second_word);
        columns += 4;
        first += 4;
        second += 4;
    }
}

static uint32_t* put_zeros(uint32_t* column, int32_t count) {
    for (; count > 0; count -= 4) {
        column[0] = 0;
        column[2] = 0;
        column += 4;
    }
    return column;
}

void expand_line(uint32_t* column, const int8_t* samples, int32_t before, int32_t count, int32_t after,
                 int32_t input_offset) {
    const uint32_t offset = twice16(input_offset);
    column = put_zeros(column, before);
    for (; count > 0; count -= 4, samples += 4) {
        column = put_group(column, offset, load4(samples));
    }
    put_zeros(column, after);
}

void put_samples(column_writer* writer, const int8_t* samples, int32_t count) {
    uint32_t* column = writer->column;
    const uint32_t offset = writer->offset;
    const int32_t bits = writer->bits;
    if (bits == 0) {
        for (; count >= 4; count -= 4, samples += 4) {
            column = put_group(column, offset, load4(samples));
        }
        writer->column = column;
        writer->pending = load_tail(samples, count);
        writer->bits = 8 * count;
        return;
    }
    uint32_t pending = writer->pending;
    for (; count >= 4; count -= 4, samples += 4) {
        const uint32_t word = load4(samples);
        column = put_group(column, offset, pending | word << bits);
        pending = word >> (32 - bits);
    }
    const uint32_t tail = load_tail(samples, count);
    const int32_t total = bits + 8 * count;
    pending |= tail << bits;
    if (total >= 32) {
        column = put_group(column, offset, pending);
        pending = tail >> (32 - bits);
    }
    writer->column = column;
    writer->pending = pending;
    writer->bits = total & 31;
}

void put_padding(column_writer* writer, int32_t count) {
    // Minus the input offset, in the samples' own encoding.
    const uint32_t word = four_times8(-(int32_t)(int16_t)(uint16_t)writer->offset);
    int8_t padding[4];
    store4(padding, word);
    for (; count >= 4; count -= 4) {
        put_samples(writer, padding, 4);
    }
    put_samples(writer, padding, count);
}

void end_column(column_writer* writer) {
    if (writer->bits != 0) {
        put_padding(writer, 4 - writer->bits / 8);
    }
}

// Two filter rows times two columns, one group. sum: row 0 with columns 0 and 1, row 1 with columns 0 and 1.
static inline void add_group(int32_t sum[4], const uint32_t* column, uint32_t weights_0, uint32_t weights_1) {
    const uint32_t even_0 = sxtb16(weights_0);
    const uint32_t even_1 = sxtb16(weights_1);
    const uint32_t odd_0 = sxtb16_ror8(weights_0);
    const uint32_t odd_1 = sxtb16_ror8(weights_1);
    sum[0] = smlad(odd_0, column[2], smlad(even_0, column[0], sum[0]));
    sum[1] = smlad(odd_0, column[3], smlad(even_0, column[1], sum[1]));
    sum[2] = smlad(odd_1, column[2], smlad(even_1, column[0], sum[2]));
    sum[3] = smlad(odd_1, column[3], smlad(even_1, column[1], sum[3]));
}

// The last depth % 4 weights of a row, followed by zeros.
static inline uint32_t last_weights(const int8_t* row, int32_t depth) {
    const int32_t tail = depth & 3;
    return depth >= 4 ? load4(row + depth - 4) >> (32 - 8 * tail) : load_tail(row, tail);
}

// Two rows and two columns, any stage.
static inline void multiply_block(int32_t sum[4], const uint32_t* columns, int32_t depth, const int8_t* row_0,
                                  const int8_t* row_1) {
    int32_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        add_group(sum, columns + k, load4(row_0 + k), load4(row_1 + k));
    }
    if (k < depth) {
        add_group(sum, columns + k, last_weights(row_0, depth), last_weights(row_1, depth));
    }
}

// One row and two columns: for an odd last row, and for stages without a fast way.
static void multiply_one_row(const multiplication* m, const uint32_t* columns, int32_t channel, int8_t* first,
                             int8_t* second) {
    const int8_t* row = m->filter + channel * m->depth;
    const int32_t bias = m->bias != NULL ? m->bias[channel] : 0;
    int32_t sum[4] = {bias, bias, 0, 0};
    multiply_block(sum, columns, m->depth, row, row);
    // second before first: they may be the same place.
    *second = (int8_t)finish_exact(m->stage, channel, sum[1]);
    *first = (int8_t)finish_exact(m->stage, channel, sum[0]);
}

// Whole pairs of rows for a fast stage, depth at least 4.
#if DEPLOY_DSP
static void multiply_row_pairs(const multiplication* m, const uint32_t* columns, int32_t channel,
                               int32_t pairs, int8_t* first, int8_t* second) {
    const int32_t groups = m->depth >> 2;
    const int32_t tail = m->depth & 3;
    row_pairs work = {m->filter + channel * m->depth,
                      m->depth,
                      columns,
                      columns + 4 * groups,
                      -groups & 3,
                      tail,
                      32 - 8 * tail,
                      m->bias != NULL ? m->bias + channel : NULL,
                      m->stage->multipliers + channel,
                      m->stage->shifts + channel,
                      2 * m->stage->offset + 1,
                      first,
                      second,
                      first + 2 * pairs};
    _Static_assert(offsetof(row_pairs, last) == 52, "columns_dsp.S knows where the fields are");
    deploy_multiply_row_pairs(&work);
}
#else
static void multiply_row_pairs(const multiplication* m, const uint32_t* columns, int32_t channel,
                               int32_t pairs, int8_t* first, int8_t* second) {
    const int8_t* row = m->filter + channel * m->depth;
    for (; pairs > 0; pairs--) {
        int32_t sum[4] = {0, 0, 0, 0};
        if (m->bias != NULL) {
            sum[0] = sum[1] = m->bias[channel];
            sum[2] = sum[3] = m->bias[channel + 1];
        }
        multiply_block(sum, columns, m->depth, row, row + m->depth);
        for (int32_t i = 0; i < 2; i++) {
            const fast_channel constants = load_channel(m->stage, channel + i);
            *second++ = (int8_t)finish_fast(constants, sum[2 * i + 1]);
            *first++ = (int8_t)finish_fast(constants, sum[2 * i]);
        }
        row += 2 * m->depth;
        channel += 2;
    }
}
#endif

void multiply_columns(const multiplication* m, const uint32_t* columns, int32_t first_channel,
                      int32_t channels, int8_t* first, int8_t* second) {
    int32_t done = 0;
    if (m->stage->fast && channels >= 2 && m->depth >= 4) {
        done = channels & ~1;
        multiply_row_pairs(m, columns, first_channel, done >> 1, first, second);
    }
    for (; done < channels; done++) {
        multiply_one_row(m, columns, first_channel + done, first + done, second + done);
    }
}
