#include "arm_nnfunctions.h"

#include "exponential.h"
#include "requantize.h"

static int32_t wrapping_add(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

// value * 2^bits, saturating.
static int32_t saturating_shift(int32_t value, int32_t bits) {
    const int64_t wide = (int64_t)value * ((int64_t)1 << bits);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

int32_t exp_of_negative(int32_t z) {
    // exp(-2^(k - 2)) in Q0.31.
    static const int32_t powers[7] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    if (z == 0) {
        return INT32_MAX;
    }
    // z = q - r with q in [-1/4, 0) and r a multiple of 1/4.
    const int32_t q = (int32_t)((uint32_t)z & 0xFFFFFFu) - (1 << 24);
    const uint32_t r = (uint32_t)q - (uint32_t)z;
    // Taylor series around -1/8; the constants are exp(-1/8) and 1/3.
    const int32_t x = q * 32 + (1 << 28);
    const int32_t x2 = high_multiply_saturating(x, x);
    const int32_t x3 = high_multiply_saturating(x2, x);
    const int32_t x4 = high_multiply_saturating(x2, x2);
    const int32_t terms = high_multiply_saturating(rounding_divide(x4, 2) + x3, 715827883) + x2;
    int32_t y = 1895147668 + high_multiply_saturating(1895147668, x + rounding_divide(terms, 1));
    for (int32_t k = 0; k < 7; k++) {
        if ((r >> (24 + k) & 1u) != 0) {
            y = high_multiply_saturating(y, powers[k]);
        }
    }
    return y;
}

int32_t one_over_one_plus(int32_t a) {
    const int64_t sum = (int64_t)a + INT32_MAX;
    const int32_t half = (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
    // Newton's iteration, started from 48/17 - 32/17 * half, all in Q2.29.
    int32_t x = wrapping_add(1515870810, high_multiply_saturating(half, -1010580540));
    for (int32_t i = 0; i < 3; i++) {
        const int32_t error = (1 << 29) - high_multiply_saturating(half, x);
        x = wrapping_add(x, saturating_shift(high_multiply_saturating(x, error), 2));
    }
    return saturating_shift(x, 1);
}

static int32_t leading_zeros(uint32_t value) {
    return value == 0 ? 32 : __builtin_clz(value);
}

// RDIV where the exponent may exceed 31. C leaves that undefined; what every Arm core gives is 1 for a
// positive value.
static int32_t divide_quotient(int32_t value, int32_t exponent) {
    return exponent > 31 ? 1 : rounding_divide(value, exponent);
}

static void softmax_row(const int8_t* input, int32_t size, int32_t mult, int32_t shift, int32_t diff_min,
                        int8_t* output) {
    int32_t max = input[0];
    for (int32_t i = 1; i < size; i++) {
        max = input[i] > max ? input[i] : max;
    }
    const int32_t mask = (int32_t)(1u << shift);
    uint32_t sum = 0;
    for (int32_t i = 0; i < size; i++) {
        const int32_t difference = input[i] - max;
        if (difference >= diff_min) {
            const int32_t scaled =
                high_multiply_saturating((int32_t)((uint32_t)difference * (uint32_t)mask), mult);
            sum += (uint32_t)rounding_divide(exp_of_negative(scaled), 12);
        }
    }
    const int32_t headroom = leading_zeros(sum);
    const int32_t inverse = one_over_one_plus((int32_t)((headroom < 32 ? sum << headroom : 0) ^ 0x80000000u));
    for (int32_t i = 0; i < size; i++) {
        const int32_t difference = input[i] - max;
        int32_t result = -128;
        if (difference >= diff_min) {
            const int32_t scaled =
                high_multiply_saturating((int32_t)((uint32_t)difference * (uint32_t)mask), mult);
            const int32_t product = high_multiply_saturating(inverse, exp_of_negative(scaled));
            result = saturate8(divide_quotient(product, 35 - headroom) - 128);
        }
        output[i] = (int8_t)result;
    }
}

void arm_softmax_s8(const int8_t* input, const int32_t num_rows, const int32_t row_size, const int32_t mult,
                    const int32_t shift, const int32_t diff_min, int8_t* output) {
    for (int32_t row = 0; row < num_rows; row++) {
        softmax_row(input + row * row_size, row_size, mult, shift, diff_min, output + row * row_size);
    }
}
