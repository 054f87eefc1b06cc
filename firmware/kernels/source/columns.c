#include "columns.h"

#include <stddef.h>

column_writer start_column(uint32_t* columns, int32_t index, int32_t input_offset) {
    const column_writer writer = {columns + index, twice16(input_offset), 0, 0};
    return writer;
}

static inline uint32_t* put_group(uint32_t* column, uint32_t offset, uint32_t samples) {
    column[0] = sxtab16(offset, samples);
    column[2] = sxtab16_ror8(offset, samples);
    return column + 4;
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

// add_group over `groups` groups, an even number.
static inline void add_even_groups(int32_t sum[4], const uint32_t* column, int32_t groups,
                                   const int8_t* row_0, const int8_t* row_1) {
    const uint32_t* const end = column + 4 * groups;
    if (column == end) {
        return;
    }
#if DEPLOY_DSP && defined(__OPTIMIZE__)
    // By hand, because all 13 registers are needed and the compiler spills: 34 instructions for 32 products.
#define DEPLOY_GROUP                         \
    "ldr %[w0], [%[row_0]], #4\n\t"          \
    "ldr %[w1], [%[row_1]], #4\n\t"          \
    "ldrd %[c0], %[c1], [%[column]], #8\n\t" \
    "sxtb16 %[even], %[w0]\n\t"              \
    "smlad %[s0], %[even], %[c0], %[s0]\n\t" \
    "smlad %[s1], %[even], %[c1], %[s1]\n\t" \
    "sxtb16 %[even], %[w1]\n\t"              \
    "smlad %[s2], %[even], %[c0], %[s2]\n\t" \
    "smlad %[s3], %[even], %[c1], %[s3]\n\t" \
    "ldrd %[c0], %[c1], [%[column]], #8\n\t" \
    "sxtb16 %[w0], %[w0], ror #8\n\t"        \
    "sxtb16 %[w1], %[w1], ror #8\n\t"        \
    "smlad %[s0], %[w0], %[c0], %[s0]\n\t"   \
    "smlad %[s1], %[w0], %[c1], %[s1]\n\t"   \
    "smlad %[s2], %[w1], %[c0], %[s2]\n\t"   \
    "smlad %[s3], %[w1], %[c1], %[s3]\n\t"
    int32_t s0 = sum[0];
    int32_t s1 = sum[1];
    int32_t s2 = sum[2];
    int32_t s3 = sum[3];
    uint32_t w0;
    uint32_t w1;
    uint32_t c0;
    uint32_t c1;
    uint32_t even;
    __asm__("1:\n\t" DEPLOY_GROUP DEPLOY_GROUP
            "cmp %[column], %[end]\n\t"
            "bne 1b\n\t"
            : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [row_0] "+r"(row_0),
              [row_1] "+r"(row_1), [column] "+r"(column), [w0] "=&r"(w0), [w1] "=&r"(w1), [c0] "=&r"(c0),
              [c1] "=&r"(c1), [even] "=&r"(even)
            : [end] "r"(end)
            : "cc", "memory");
    sum[0] = s0;
    sum[1] = s1;
    sum[2] = s2;
    sum[3] = s3;
#undef DEPLOY_GROUP
#else
    for (; column != end; column += 4, row_0 += 4, row_1 += 4) {
        add_group(sum, column, load4(row_0), load4(row_1));
    }
#endif
}

static inline void multiply_block(const uint32_t* column, int32_t depth, const int8_t* row_0,
                                  const int8_t* row_1, int32_t sum[4]) {
    const int32_t even = depth & ~7;
    add_even_groups(sum, column, even >> 2, row_0, row_1);
    for (int32_t done = even; done < depth; done += 4) {
        const int32_t left = depth - done;
        add_group(sum, column + done, left < 4 ? load_tail(row_0 + done, left) : load4(row_0 + done),
                  left < 4 ? load_tail(row_1 + done, left) : load4(row_1 + done));
    }
}

// Results of a block as bytes: column 0 rows 0 and 1, column 1 rows 0 and 1.
static inline uint32_t finish_block(const output_stage* stage, int32_t channel_0, int32_t channel_1,
                                    const int32_t sum[4]) {
    if (!stage->fast) {
        return pack8(finish_exact(stage, channel_0, sum[0]), finish_exact(stage, channel_1, sum[2]),
                     finish_exact(stage, channel_0, sum[1]), finish_exact(stage, channel_1, sum[3]));
    }
    const fast_channel first = load_channel(stage, channel_0);
    const fast_channel second = load_channel(stage, channel_1);
    return clamp8(stage, pack8(finish_fast(first, sum[0]), finish_fast(second, sum[2]),
                               finish_fast(first, sum[1]), finish_fast(second, sum[3])));
}

void multiply_columns(const uint32_t* columns, int32_t depth, const int8_t* filter, int32_t row_stride,
                      int32_t channels, const int32_t* bias, const output_stage* stage, int32_t first_channel,
                      int8_t* first, int8_t* second) {
    for (int32_t row = 0; row < channels; row += 2) {
        // An odd last row is multiplied twice and stored once.
        const int32_t last = row + 1 < channels ? row + 1 : row;
        const int32_t channel_0 = first_channel + row;
        const int32_t channel_1 = first_channel + last;
        const int32_t bias_0 = bias != NULL ? bias[channel_0] : 0;
        const int32_t bias_1 = bias != NULL ? bias[channel_1] : 0;
        int32_t sum[4] = {bias_0, bias_0, bias_1, bias_1};
        multiply_block(columns, depth, filter + row * row_stride, filter + last * row_stride, sum);
        const uint32_t results = finish_block(stage, channel_0, channel_1, sum);
        if (last == row) {
            first[row] = (int8_t)(uint8_t)results;
            if (second != NULL) {
                second[row] = (int8_t)(uint8_t)(results >> 16);
            }
        } else {
            store2(first + row, results);
            if (second != NULL) {
                store2(second + row, results >> 16);
            }
        }
    }
}
