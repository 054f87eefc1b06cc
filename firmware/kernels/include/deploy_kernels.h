// Kernels for operators that CMSIS-NN has no function for.
//
// float is IEEE 754 binary32; rounding is to nearest, ties to even.

#ifndef DEPLOY_KERNELS_H
#define DEPLOY_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// output[i] = clamp(round(input[i] * inverse_scale) + zero_point, quant_min, quant_max).
//
// Products outside int32 saturate, NaN counts as 0. quant_min and quant_max lie in -128..127. output may
// start at the address of input: each element is read before any byte that covers it is written.
void deploy_quantize_f32_s8(const float* input, int8_t* output, int32_t size, float inverse_scale,
                            int32_t zero_point, int32_t quant_min, int32_t quant_max);

// output[i] = (input[i] - zero_point) * scale.
void deploy_dequantize_s8_f32(const int8_t* input, float* output, int32_t size, float scale,
                              int32_t zero_point);

// output[i] = lut[input[i] + 128], lut has 256 entries. output may be input.
void deploy_lookup_s8(const int8_t* input, const int8_t* lut, int8_t* output, int32_t size);

// output[i] = clamp(round((input_1[i] - zero_point_1) / (input_2[i] - zero_point_2) * scale) +
// output_zero_point) to int8, the quotient being 0 where the divisor is. scale = scale_1 / (scale_2 * output
// scale). output may be an input.
void deploy_div_s8(const int8_t* input_1, const int8_t* input_2, int32_t zero_point_1, int32_t zero_point_2,
                   float scale, int8_t* output, int32_t output_zero_point, int32_t size);

// count blocks of block elements each: the i-th goes from input + i * input_step to output + i * output_step.
// An input_step of 0 repeats one block. output must not overlap input.
void deploy_copy_s8(const int8_t* input, int32_t input_step, int8_t* output, int32_t output_step,
                    int32_t block, int32_t count);

// Each of the rows of output is one block of every part in turn: blocks[i] elements of parts[i], whose blocks
// follow each other. output must not overlap a part.
void deploy_concatenate_s8(const int8_t* const* parts, const int32_t* blocks, int32_t count, int8_t* output,
                           int32_t rows);

#ifdef __cplusplus
}
#endif

#endif
