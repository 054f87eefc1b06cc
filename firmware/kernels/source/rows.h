// Products of one row of samples with several rows of weights: the core of the fully connected layer, of the
// matrix product and of the transposed convolution.

#ifndef DEPLOY_ROWS_H
#define DEPLOY_ROWS_H

#include <stdint.h>

#include "simd.h"

// sum[i] += sum over k < depth of (samples[k] + offset) * weights[i * stride + k], i = 0 to 3.
void multiply_four_rows(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t stride,
                        int32_t depth, int32_t sum[4]);

// The same for a single row; returns the sum.
int32_t multiply_row(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t depth);

// Sum of samples + offset.
int32_t sum_row(const int8_t* samples, int32_t offset, int32_t depth);

#endif
