#include "arm_nnfunctions.h"

#include <stdbool.h>

#include "requantize.h"

// One input of the sum, in the form fast_scale takes.
typedef struct {
    int32_t factor;  // 2^(left shift + 1)
    int32_t offset;  // times factor
    int32_t multiplier;
    int32_t rounding;
    int32_t right;
} scaled_input;

// requantize((sample + offset) << left shift, multiplier, shift), as finish_fast does it.
static inline int32_t fast_scale(const scaled_input* input, int32_t sample) {
    const int32_t shifted = sample * input->factor + input->offset;
    return (smmlar(shifted, input->multiplier, input->rounding) + (shifted >> 31)) >> input->right;
}

static int32_t shift_left(int32_t value, int32_t shift) {
    return (int32_t)((uint32_t)value << shift);
}

// Prepares fast_scale, which shifts right by at least 1. A scale of exactly 1/2, that of the larger input,
// has the shift 0; one bit more on the left stands in for it, which loses nothing because the product is
// even. Returns false for arguments fast_scale is not right for.
static bool make_scaled_input(scaled_input* input, int32_t offset, int32_t left_shift, int32_t multiplier,
                              int32_t shift) {
    const bool half = shift == 0 && multiplier == 1 << 30;
    const int32_t left = left_shift + (half ? 2 : 1);
    const int32_t right = half ? 1 : -shift;
    if (offset < -128 || offset > 128 || left_shift < 1 || left_shift > 20 || multiplier < 0 || right < 1 ||
        right > 29) {
        return false;
    }
    input->factor = 1 << left;
    input->offset = offset * input->factor;
    input->multiplier = multiplier;
    input->rounding = 1 << (right - 1);
    input->right = right;
    return true;
}

// Sums of whole groups of four elements; each step over all four, so that its constants are loaded once.
static void add_fours(const int8_t* input_1, const scaled_input* first, const int8_t* input_2,
                      const scaled_input* second, fast_channel scale, int8_t* output, int32_t count) {
    const int8_t* const end = input_1 + count;
    while (input_1 != end) {
        const int32_t a0 = fast_scale(first, input_1[0]);
        const int32_t a1 = fast_scale(first, input_1[1]);
        const int32_t a2 = fast_scale(first, input_1[2]);
        const int32_t a3 = fast_scale(first, input_1[3]);
        const int32_t b0 = a0 + fast_scale(second, input_2[0]);
        const int32_t b1 = a1 + fast_scale(second, input_2[1]);
        const int32_t b2 = a2 + fast_scale(second, input_2[2]);
        const int32_t b3 = a3 + fast_scale(second, input_2[3]);
        store4(output, pack8(finish_fast(scale, b0), finish_fast(scale, b1), finish_fast(scale, b2),
                             finish_fast(scale, b3)));
        input_1 += 4;
        input_2 += 4;
        output += 4;
    }
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* input_1_vect, const int8_t* input_2_vect,
                                           const int32_t input_1_offset, const int32_t input_1_mult,
                                           const int32_t input_1_shift, const int32_t input_2_offset,
                                           const int32_t input_2_mult, const int32_t input_2_shift,
                                           const int32_t left_shift, int8_t* output, const int32_t out_offset,
                                           const int32_t out_mult, const int32_t out_shift,
                                           const int32_t out_activation_min, const int32_t out_activation_max,
                                           const int32_t block_size) {
    // A scaled input stays below 2^28, so the sum suits finish_fast whatever number of terms stands here.
    const output_stage stage = make_output_stage(&out_mult, &out_shift, 0, 1, out_offset, NULL, 2,
                                                 out_activation_min, out_activation_max);
    scaled_input first;
    scaled_input second;
    int32_t i = 0;
    if (stage.fast && make_scaled_input(&first, input_1_offset, left_shift, input_1_mult, input_1_shift) &&
        make_scaled_input(&second, input_2_offset, left_shift, input_2_mult, input_2_shift)) {
        i = block_size & ~3;
        add_fours(input_1_vect, &first, input_2_vect, &second, load_channel(&stage, 0), output, i);
        clamp_output(&stage, output, i);
    }
    for (; i < block_size; i++) {
        const int32_t a = shift_left(input_1_vect[i] + input_1_offset, left_shift);
        const int32_t b = shift_left(input_2_vect[i] + input_2_offset, left_shift);
        const int32_t sum =
            requantize(a, input_1_mult, input_1_shift) + requantize(b, input_2_mult, input_2_shift);
        output[i] = (int8_t)finish_exact(&stage, 0, sum);
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
            store4(output + i, pack8(product[0], product[1], product[2], product[3]));
        }
        clamp_output(&stage, output, i);
    }
    for (; i < block_size; i++) {
        const int32_t product = (input_1_vect[i] + input_1_offset) * (input_2_vect[i] + input_2_offset);
        output[i] = (int8_t)finish_exact(&stage, 0, product);
    }
    return ARM_CMSIS_NN_SUCCESS;
}
