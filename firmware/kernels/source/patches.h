// Convolution by patches: for every pair of output pixels, the samples under the kernel become a pair of
// columns.

#ifndef DEPLOY_PATCHES_H
#define DEPLOY_PATCHES_H

#include <stdint.h>

#include "arm_nn_types.h"
#include "requantize.h"

typedef struct {
    const cmsis_nn_conv_params* params;
    const cmsis_nn_dims* input;
    const cmsis_nn_dims* filter;  // c: channels one group sees
    const cmsis_nn_dims* output;
} patch_geometry;

// filter: one row of `depth` weights per output channel; depth is kernel_h * kernel_w * filter->c, or that
// rounded up to a multiple of 4 where rows end in zeros. columns: columns_size(depth) bytes. bias may be
// NULL. The results of a fast stage are not clamped yet.
void convolve_patches(const patch_geometry* g, const int8_t* input, const int8_t* filter, int32_t depth,
                      const int32_t* bias, const output_stage* stage, uint32_t* columns, int8_t* output);

#endif
