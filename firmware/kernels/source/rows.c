#include "rows.h"

static inline int32_t add_products(uint32_t even, uint32_t odd, uint32_t weights, int32_t sum) {
    return smlad(odd, sxtb16_ror8(weights), smlad(even, sxtb16(weights), sum));
}

void multiply_four_rows(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t stride,
                        int32_t depth, int32_t sum[4]) {
    const uint32_t both = twice16(offset);
    const int8_t* row_1 = weights + stride;
    const int8_t* row_2 = row_1 + stride;
    const int8_t* row_3 = row_2 + stride;
    int32_t sum_0 = sum[0];
    int32_t sum_1 = sum[1];
    int32_t sum_2 = sum[2];
    int32_t sum_3 = sum[3];
    const int8_t* const end = samples + (depth & ~3);
    while (samples != end) {
        const uint32_t word = load4(samples);
        const uint32_t even = sxtab16(both, word);
        const uint32_t odd = sxtab16_ror8(both, word);
        sum_0 = add_products(even, odd, load4(weights), sum_0);
        sum_1 = add_products(even, odd, load4(row_1), sum_1);
        sum_2 = add_products(even, odd, load4(row_2), sum_2);
        sum_3 = add_products(even, odd, load4(row_3), sum_3);
        samples += 4;
        weights += 4;
        row_1 += 4;
        row_2 += 4;
        row_3 += 4;
    }
    for (int32_t k = 0; k < (depth & 3); k++) {
        const int32_t sample = samples[k] + offset;
        sum_0 += sample * weights[k];
        sum_1 += sample * row_1[k];
        sum_2 += sample * row_2[k];
        sum_3 += sample * row_3[k];
    }
    sum[0] = sum_0;
    sum[1] = sum_1;
    sum[2] = sum_2;
    sum[3] = sum_3;
}

int32_t multiply_row(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t depth) {
    const uint32_t both = twice16(offset);
    int32_t sum = 0;
    for (; depth >= 4; depth -= 4, samples += 4, weights += 4) {
        const uint32_t word = load4(samples);
        sum = add_products(sxtab16(both, word), sxtab16_ror8(both, word), load4(weights), sum);
    }
    for (int32_t k = 0; k < depth; k++) {
        sum += (samples[k] + offset) * weights[k];
    }
    return sum;
}

int32_t sum_row(const int8_t* samples, int32_t offset, int32_t depth) {
    int32_t sum = depth * offset;
    const uint32_t ones = twice16(1);
    for (; depth >= 4; depth -= 4, samples += 4) {
        const uint32_t word = load4(samples);
        sum = smlad(sxtb16_ror8(word), ones, smlad(sxtb16(word), ones, sum));
    }
    for (int32_t k = 0; k < depth; k++) {
        sum += samples[k];
    }
    return sum;
}
