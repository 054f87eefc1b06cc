// The int8 part of the CMSIS-NN public API, implemented by this library.
//
// Prototypes are CMSIS-NN's; results are bit-exact with its default build (double rounding), except where
// that library is wrong, in which case the arithmetic of tests/golden/kernels/README.md holds. Tensors are
// NHWC without gaps.
//
// Scratch: each function with a `cmsis_nn_context` needs the bytes its *_get_buffer_size function returns.
// The formula stands at each declaration, holds for every core, and may be larger or smaller than CMSIS-NN's.
// R4(x) is x rounded up to a multiple of 4. A context whose size is 0 may have a NULL buffer. `_dsp` and
// `_mve` forms return the same number.

#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include "arm_nn_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// 2-D convolution, also grouped, strided, dilated and with batches.
//
// filter is (C_out, kernel_h, kernel_w, C_in / groups), groups = input_dims->c / filter_dims->c. bias_data
// may be NULL. Scratch: 4 * R4(filter_dims->h * filter_dims->w * filter_dims->c) bytes. Returns ARG_ERROR
// without it, and when groups do not divide the channels.
arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context* ctx,
                                            const cmsis_nn_conv_params* conv_params,
                                            const cmsis_nn_per_channel_quant_params* quant_params,
                                            const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                            const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                            const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                            const cmsis_nn_dims* output_dims, int8_t* output_data);
int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params* conv_params,
                                                const cmsis_nn_dims* input_dims,
                                                const cmsis_nn_dims* filter_dims,
                                                const cmsis_nn_dims* output_dims);
int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params* conv_params,
                                                    const cmsis_nn_dims* input_dims,
                                                    const cmsis_nn_dims* filter_dims,
                                                    const cmsis_nn_dims* output_dims);
int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params* conv_params,
                                                    const cmsis_nn_dims* input_dims,
                                                    const cmsis_nn_dims* filter_dims,
                                                    const cmsis_nn_dims* output_dims);

// Depthwise convolution: output channel c * ch_mult + k sees input channel c alone.
//
// filter is (1, kernel_h, kernel_w, C_in * ch_mult). bias_data may be NULL. Dilation and batches are
// supported. Scratch: with input_dims->c == 1 and more than one output channel, (C_out + 4) *
// R4(filter_dims->h * filter_dims->w) bytes, C_out = output_dims->c; otherwise 0. Returns ARG_ERROR without
// it.
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(const cmsis_nn_context* ctx,
                                                  const cmsis_nn_dw_conv_params* dw_conv_params,
                                                  const cmsis_nn_per_channel_quant_params* quant_params,
                                                  const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                                  const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                                  const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                                  const cmsis_nn_dims* output_dims, int8_t* output_data);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                      const cmsis_nn_dims* input_dims,
                                                      const cmsis_nn_dims* filter_dims,
                                                      const cmsis_nn_dims* output_dims);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                          const cmsis_nn_dims* input_dims,
                                                          const cmsis_nn_dims* filter_dims,
                                                          const cmsis_nn_dims* output_dims);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params* dw_conv_params,
                                                          const cmsis_nn_dims* input_dims,
                                                          const cmsis_nn_dims* filter_dims,
                                                          const cmsis_nn_dims* output_dims);

// Transposed convolution (scatter form, kernel not flipped): input pixel (y, x) adds to the output pixels
// (y * stride.h - padding.h + ky, x * stride.w - padding.w + kx) that lie inside output_dims.
//
// filter is (C_out, kernel_h, kernel_w, C_in). Any stride, kernel and padding. Scratch: 0 for both contexts.
arm_cmsis_nn_status arm_transpose_conv_wrapper_s8(const cmsis_nn_context* ctx,
                                                  const cmsis_nn_context* reverse_conv_ctx,
                                                  const cmsis_nn_transpose_conv_params* transpose_conv_params,
                                                  const cmsis_nn_per_channel_quant_params* quant_params,
                                                  const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                                  const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                                  const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                                  const cmsis_nn_dims* output_dims, int8_t* output_data);
int32_t arm_transpose_conv_s8_get_buffer_size(const cmsis_nn_transpose_conv_params* transposed_conv_params,
                                              const cmsis_nn_dims* input_dims,
                                              const cmsis_nn_dims* filter_dims,
                                              const cmsis_nn_dims* out_dims);
int32_t arm_transpose_conv_s8_get_buffer_size_mve(
    const cmsis_nn_transpose_conv_params* transposed_conv_params, const cmsis_nn_dims* input_dims,
    const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* out_dims);
int32_t arm_transpose_conv_s8_get_reverse_conv_buffer_size(
    const cmsis_nn_transpose_conv_params* transposed_conv_params, const cmsis_nn_dims* input_dims,
    const cmsis_nn_dims* filter_dims);

// Fully connected layer: input (input_dims->n, filter_dims->n), filter (filter_dims->c, filter_dims->n), one
// row per output. bias_data may be NULL. Scratch: 0; ctx is not looked at and may be NULL.
arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context* ctx, const cmsis_nn_fc_params* fc_params,
                                           const cmsis_nn_per_tensor_quant_params* quant_params,
                                           const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                           const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                           const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                           const cmsis_nn_dims* output_dims, int8_t* output_data);
arm_cmsis_nn_status arm_fully_connected_per_channel_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_fc_params* fc_params,
    const cmsis_nn_per_channel_quant_params* quant_params, const cmsis_nn_dims* input_dims,
    const int8_t* input_data, const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
    const cmsis_nn_dims* bias_dims, const int32_t* bias_data, const cmsis_nn_dims* output_dims,
    int8_t* output_data);
int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims* filter_dims);
int32_t arm_fully_connected_s8_get_buffer_size_dsp(const cmsis_nn_dims* filter_dims);
int32_t arm_fully_connected_s8_get_buffer_size_mve(const cmsis_nn_dims* filter_dims);

// Batched matrix product: lhs (n, h, rows, k), rhs (n, h, columns, k), that is already transposed, output (n,
// h, rows, columns); rows and columns stand in `w`, k in `c`. n and h of 1 broadcast. Scratch: 0.
arm_cmsis_nn_status arm_batch_matmul_s8(const cmsis_nn_context* ctx, const cmsis_nn_bmm_params* bmm_params,
                                        const cmsis_nn_per_tensor_quant_params* quant_params,
                                        const cmsis_nn_dims* input_lhs_dims, const int8_t* input_lhs,
                                        const cmsis_nn_dims* input_rhs_dims, const int8_t* input_rhs,
                                        const cmsis_nn_dims* output_dims, int8_t* output);

// sums[r] = bias[r] (0 where bias_data is NULL) + lhs_offset * sum over row r of (vector_data + rhs_offset).
arm_cmsis_nn_status arm_vector_sum_s8(int32_t* vector_sum_buf, const int32_t vector_cols,
                                      const int32_t vector_rows, const int8_t* vector_data,
                                      const int32_t lhs_offset, const int32_t rhs_offset,
                                      const int32_t* bias_data);

// Sum and product of two tensors of the same shape, block_size elements. Both inputs of the sum are shifted
// left by left_shift before they are scaled. The output may be one of the inputs.
arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t* input_1_vect, const int8_t* input_2_vect,
                                           const int32_t input_1_offset, const int32_t input_1_mult,
                                           const int32_t input_1_shift, const int32_t input_2_offset,
                                           const int32_t input_2_mult, const int32_t input_2_shift,
                                           const int32_t left_shift, int8_t* output, const int32_t out_offset,
                                           const int32_t out_mult, const int32_t out_shift,
                                           const int32_t out_activation_min, const int32_t out_activation_max,
                                           const int32_t block_size);
arm_cmsis_nn_status arm_elementwise_mul_s8(const int8_t* input_1_vect, const int8_t* input_2_vect,
                                           const int32_t input_1_offset, const int32_t input_2_offset,
                                           int8_t* output, const int32_t out_offset, const int32_t out_mult,
                                           const int32_t out_shift, const int32_t out_activation_min,
                                           const int32_t out_activation_max, const int32_t block_size);

// Larger or smaller of two values of one scale; axes of length 1 broadcast. ctx is not looked at and may be
// NULL.
arm_cmsis_nn_status arm_maximum_s8(const cmsis_nn_context* ctx, const int8_t* input_1_data,
                                   const cmsis_nn_dims* input_1_dims, const int8_t* input_2_data,
                                   const cmsis_nn_dims* input_2_dims, int8_t* output_data,
                                   const cmsis_nn_dims* output_dims);
arm_cmsis_nn_status arm_minimum_s8(const cmsis_nn_context* ctx, const int8_t* input_1_data,
                                   const cmsis_nn_dims* input_1_dims, const int8_t* input_2_data,
                                   const cmsis_nn_dims* input_2_dims, int8_t* output_data,
                                   const cmsis_nn_dims* output_dims);

// Pooling over a filter_dims->h x filter_dims->w window. Padding takes no part: it is neither summed nor
// counted. The average rounds halves away from zero and returns ARG_ERROR for a window that lies in padding
// altogether. Scratch: 0; ctx is not looked at and may be NULL.
arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* pool_params,
                                   const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                   const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* output_dims,
                                   int8_t* output_data);
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context* ctx, const cmsis_nn_pool_params* pool_params,
                                    const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                    const cmsis_nn_dims* filter_dims, const cmsis_nn_dims* output_dims,
                                    int8_t* output_data);
int32_t arm_avgpool_s8_get_buffer_size(const int dim_dst_width, const int ch_src);
int32_t arm_avgpool_s8_get_buffer_size_dsp(const int dim_dst_width, const int ch_src);
int32_t arm_avgpool_s8_get_buffer_size_mve(const int dim_dst_width, const int ch_src);

// Softmax of each row; output scale 1/256, zero point -128. mult and shift carry input scale * 2^26; elements
// further than -diff_min below the row's maximum give -128. A row whose sum of exponentials reaches 2^28
// (about 512 elements near the maximum) gives -127 for every other element, as CMSIS-NN does on Arm cores.
void arm_softmax_s8(const int8_t* input, const int32_t num_rows, const int32_t row_size, const int32_t mult,
                    const int32_t shift, const int32_t diff_min, int8_t* output);

// Output axis j is input axis permutations[j]. With fewer than four axes they fill n, h, w in that order.
arm_cmsis_nn_status arm_transpose_s8(const int8_t* input_data, int8_t* const output_data,
                                     const cmsis_nn_dims* const input_dims,
                                     const cmsis_nn_dims* const output_dims,
                                     const cmsis_nn_transpose_params* const transpose_params);

// Surrounds a tensor with pad_value: pre_pad before and post_pad after, per axis.
arm_cmsis_nn_status arm_pad_s8(const int8_t* input, int8_t* output, const int8_t pad_value,
                               const cmsis_nn_dims* input_size, const cmsis_nn_dims* pre_pad,
                               const cmsis_nn_dims* post_pad);

#ifdef __cplusplus
}
#endif

#endif
