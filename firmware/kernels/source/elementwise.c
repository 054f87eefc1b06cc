#include "arm_nnfunctions.h"

#include <stdbool.h>

#include "requantize.h"

typedef struct {
    int32_t offset;  // already shifted left
    int32_t shift;
    int32_t multiplier;
    int32_t rounding;  // half of what the right shift drops
    int32_t right;
} scaled_input;

// For fast_scale: one bit more on the left and one more on the right than asked for, so that a right shift of
// 0 needs no special case and the product is the high word of a 32 by 32 bit multiplication.
static scaled_input make_scaled_input(int32_t offset, int32_t left_shift, int32_t multiplier, int32_t shift) {
    const scaled_input result = {(int32_t)((uint32_t)offset << (left_shift + 1)), left_shift + 1, multiplier,
                                 (int32_t)(1u << -shift), 1 - shift};
    return result;
}

// requantize((sample + offset) << left_shift, multiplier, shift).
static inline int32_t fast_scale(const scaled_input* input, int32_t sample) {
    const int32_t scaled =
        smmulr(input->offset + (int32_t)((uint32_t)sample << input->shift), input->multiplier);
    return (2 * scaled + input->rounding + (scaled >> 31)) >> input->right;
}

static int32_t shift_left(int32_t value, int32_t shift) {
    return (int32_t)((uint32_t)value << shift);
}

static bool in_fast_range(int32_t offset, int32_t left_shift, int32_t multiplier, int32_t shift) {
    return offset >= -128 && offset <= 128 && left_shift <= 20 && multiplier >= 0 && shift <= 0 &&
           shift >= -29;
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* input_1_vect, const int8_t* input_2_vect,
                                           const int32_t input_1_offset, const int32_t input_1_mult,
                                           const int32_t input_1_shift, const int32_t input_2_offset,
                                           const int32_t input_2_mult, const int32_t input_2_shift,
                                           const int32_t left_shift, int8_t* output, const int32_t out_offset,
                                           const int32_t out_mult, const int32_t out_shift,
                                           const int32_t out_activation_min, const int32_t out_activation_max,
                                           const int32_t block_size) {
    // Each scaled input stays below 2^28, so their sum suits finish_fast whatever `terms` says.
    const output_stage stage = make_output_stage(&out_mult, &out_shift, 0, 1, out_offset, NULL, 2,
                                                 out_activation_min, out_activation_max);
    int32_t i = 0;
    if (stage.fast && in_fast_range(input_1_offset, left_shift, input_1_mult, input_1_shift) &&
        in_fast_range(input_2_offset, left_shift, input_2_mult, input_2_shift)) {
        const scaled_input first = make_scaled_input(input_1_offset, left_shift, input_1_mult, input_1_shift);
        const scaled_input second =
            make_scaled_input(input_2_offset, left_shift, input_2_mult, input_2_shift);
        const fast_channel channel = load_channel(&stage, 0);
        for (; i + 4 <= block_size; i += 4) {
            int32_t sum[4];
            for (int32_t lane = 0; lane < 4; lane++) {
                sum[lane] = finish_fast(channel, fast_scale(&first, input_1_vect[i + lane]) +
                                                     fast_scale(&second, input_2_vect[i + lane]));
            }
            store4(output + i, clamp8(&stage, pack8(sum[0], sum[1], sum[2], sum[3])));
        }
    }
    for (; i < block_size; i++) {
        const int32_t first =
            requantize(shift_left(input_1_vect[i] + input_1_offset, left_shift), input_1_mult, input_1_shift);
        const int32_t second =
            requantize(shift_left(input_2_vect[i] + input_2_offset, left_shift), input_2_mult, input_2_shift);
        output[i] = (int8_t)finish_exact(&stage, 0, first + second);
    }
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t* input_1_vect, const int8_t* input_2_vect,
                                           const int32_t input_1_offset, const int32_t input_2_offset,
                                           int8_t* output, const int32_t out_offset, const int32_t out_mult,
                                           const int32_t out_shift, const int32_t out_activation_min,
                                           const int32_t out_activation_max, const int32_t block_size) {
    const output_stage stage = make_output_stage(&out_mult, &out_shift, 0, 1, out_offset, NULL, 2,
                                                 out_activation_min, out_activation_max);
    int32_t i = 0;
    if (stage.fast) {
        const fast_channel channel = load_channel(&stage, 0);
        for (; i + 4 <= block_size; i += 4) {
            int32_t product[4];
            for (int32_t lane = 0; lane < 4; lane++) {
                product[lane] = finish_fast(channel, (input_1_vect[i + lane] + input_1_offset) *
                                                         (input_2_vect[i + lane] + input_2_offset));
            }
            store4(output + i, clamp8(&stage, pack8(product[0], product[1], product[2], product[3])));
        }
    }
    for (; i < block_size; i++) {
        const int32_t product = (input_1_vect[i] + input_1_offset) * (input_2_vect[i] + input_2_offset);
        output[i] = (int8_t)finish_exact(&stage, 0, product);
    }
    return ARM_CMSIS_NN_SUCCESS;
}
