#include "rows.h"

static inline int32_t add_products(uint32_t even, uint32_t odd, uint32_t weights, int32_t sum) {
    return smlad(odd, sxtb16_ror8(weights), smlad(even, sxtb16(weights), sum));
}

// sum[i] += (samples + offset) times row i, for whole groups up to `end`; at least one. offset in both
// halves.
#if DEPLOY_DSP
void deploy_add_row_groups(const int8_t* samples, uint32_t offset, const int8_t* weights, int32_t stride,
                           const int8_t* end, int32_t sum[4]);  // rows_dsp.S
#else
static void deploy_add_row_groups(const int8_t* samples, uint32_t offset, const int8_t* weights,
                                  int32_t stride, const int8_t* end, int32_t sum[4]) {
    for (; samples != end; samples += 4, weights += 4) {
        const uint32_t word = load4(samples);
        const uint32_t even = sxtab16(offset, word);
        const uint32_t odd = sxtab16_ror8(offset, word);
        for (int32_t i = 0; i < 4; i++) {
            sum[i] = add_products(even, odd, load4(weights + i * stride), sum[i]);
        }
    }
}
#endif

void multiply_four_rows(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t stride,
                        int32_t depth, int32_t sum[4]) {
    if (depth >= 4) {
        deploy_add_row_groups(samples, twice16(offset), weights, stride, samples + (depth & ~3), sum);
    }
    for (int32_t k = depth & ~3; k < depth; k++) {
        const int32_t sample = samples[k] + offset;
        for (int32_t i = 0; i < 4; i++) {
            sum[i] += sample * weights[i * stride + k];
        }
    }
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
