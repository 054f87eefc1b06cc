// Fixed-point requantisation, as CMSIS-NN's default (double-rounding) build computes it.

#ifndef DEPLOY_REQUANTIZE_H
#define DEPLOY_REQUANTIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "simd.h"

// round(a * b / 2^31), ties towards plus infinity; -2^31 * -2^31 wraps to -2^31.
static inline int32_t high_multiply(int32_t a, int32_t b) {
    return (int32_t)(uint32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
}

// The same, but -2^31 * -2^31 saturates.
static inline int32_t high_multiply_saturating(int32_t a, int32_t b) {
    return a == INT32_MIN && b == INT32_MIN ? INT32_MAX : high_multiply(a, b);
}

// round(value / 2^exponent), ties away from zero; exponent 0 to 31.
static inline int32_t rounding_divide(int32_t value, int32_t exponent) {
    const int32_t mask = (int32_t)((1u << exponent) - 1u);
    const int32_t threshold = (mask >> 1) + (value < 0);
    return (value >> exponent) + ((value & mask) > threshold);
}

// value * multiplier / 2^31 * 2^shift, any arguments; a left shift that overflows wraps.
static inline int32_t requantize(int32_t value, int32_t multiplier, int32_t shift) {
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    return rounding_divide(high_multiply((int32_t)((uint32_t)value << left), multiplier), right);
}

// What happens to an accumulator: requantise, add the output's zero point, clamp.
//
// `fast` says that finish_fast may be used for all channels: shifts from -22 to -1, multipliers not negative,
// and accumulators below 2^30 in magnitude. That is every layer met in practice; the rest takes the exact
// road.
typedef struct {
    const int32_t* multipliers;
    const int32_t* shifts;
    int32_t stride;  // 1: a multiplier and shift per channel; 0: one for all
    int32_t offset;
    int32_t min;
    int32_t max;
    bool fast;
} output_stage;

// terms: products summed per accumulator, each at most 2^15 in magnitude. bias may be NULL.
output_stage make_output_stage(const int32_t* multipliers, const int32_t* shifts, int32_t stride,
                               int32_t channels, int32_t offset, const int32_t* bias, int32_t terms,
                               int32_t min, int32_t max);

// The int8 result of one accumulator of a channel, any arguments.
int32_t finish_exact(const output_stage* stage, int32_t channel, int32_t accumulator);

// Both roundings of requantize and the zero point in five instructions.
//
// With u = high_multiply(acc, m) and a right shift r >= 1, requantize's rounding_divide(u, r) equals
// (u + 2^(r-1) - (u < 0)) >> r, and (acc < 0) may stand for (u < 0) because both give 0 where u is 0. Adding
// the zero point times 2^r before the shift adds it to the result.
typedef struct {
    int32_t multiplier;
    int32_t rounding;
    int32_t right;
} fast_channel;

static inline fast_channel load_channel(const output_stage* stage, int32_t channel) {
    fast_channel result;
    result.multiplier = stage->multipliers[channel * stage->stride];
    result.right = -stage->shifts[channel * stage->stride];
    result.rounding = (int32_t)((uint32_t)(2 * stage->offset + 1) << (result.right - 1));
    return result;
}

// The result before clamping to the activation, saturated to int8.
static inline int32_t finish_fast(fast_channel channel, int32_t accumulator) {
    const int32_t scaled =
        smmlar((int32_t)((uint32_t)accumulator << 1), channel.multiplier, channel.rounding);
    return saturate8((scaled + (accumulator >> 31)) >> channel.right);
}

// Clamps what finish_fast left, in place. Costs nothing where the range is all of int8.
void clamp_output(const output_stage* stage, int8_t* output, int32_t count);

#endif
