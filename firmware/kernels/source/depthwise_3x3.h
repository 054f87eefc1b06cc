// Depthwise convolution with a 3 x 3 kernel, channel by channel.

#ifndef DEPLOY_DEPTHWISE_3X3_H
#define DEPLOY_DEPTHWISE_3X3_H

#include <stdbool.h>
#include <stdint.h>

#include "arm_nn_types.h"
#include "requantize.h"

// Can depthwise_3x3 do this layer? Kernel 3 x 3, no dilation, one output per input channel, equal strides of
// 1 or 2, at most one row or column of padding on each side, an image of at least 3 rows, a
// fast stage.
bool is_depthwise_3x3(const cmsis_nn_dw_conv_params* params, const cmsis_nn_dims* input,
                      const cmsis_nn_dims* filter, const cmsis_nn_dims* output, const output_stage* stage);

// One image. bias may be NULL. Results are not clamped yet.
void depthwise_3x3(const cmsis_nn_dw_conv_params* params, const cmsis_nn_dims* input_dims,
                   const int8_t* input, const int8_t* filter, const int32_t* bias,
                   const cmsis_nn_dims* output_dims, const output_stage* stage, int8_t* output);

#endif
