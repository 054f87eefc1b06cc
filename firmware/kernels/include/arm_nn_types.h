// Argument structures of the CMSIS-NN public API: names, fields and their order as published, text our own.
//
// Code written against Arm's header of the same name compiles against this one unchanged.

#ifndef ARM_NN_TYPES_H
#define ARM_NN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

// What every kernel returns.
typedef enum {
    ARM_CMSIS_NN_SUCCESS = 0,
    ARM_CMSIS_NN_ARG_ERROR = -1,      // an argument cannot be worked with; the output was not written in full
    ARM_CMSIS_NN_NO_IMPL_ERROR = -2,  // this library has no code for the request
    ARM_CMSIS_NN_FAILURE = -3,
} arm_cmsis_nn_status;

// A pair of horizontal and vertical values: strides, padding, dilation.
typedef struct {
    int32_t w;
    int32_t h;
} cmsis_nn_tile;

// Scratch memory of one call. `buf` is aligned to 4 bytes; `size` in bytes is informative.
typedef struct {
    void* buf;
    int32_t size;
} cmsis_nn_context;

// Shape of a tensor, samples in NHWC order. What `n` and `c` mean for filters is said at each function.
typedef struct {
    int32_t n;
    int32_t h;
    int32_t w;
    int32_t c;
} cmsis_nn_dims;

// Requantisation with one multiplier and shift per output channel: real scale = multiplier / 2^31 * 2^shift.
typedef struct {
    int32_t* multiplier;
    int32_t* shift;
} cmsis_nn_per_channel_quant_params;

// Requantisation with one multiplier and shift for the whole tensor.
typedef struct {
    int32_t multiplier;
    int32_t shift;
} cmsis_nn_per_tensor_quant_params;

// Range the result is clamped to.
typedef struct {
    int32_t min;
    int32_t max;
} cmsis_nn_activation;

// In all structures below `input_offset` and `filter_offset` are ADDED to samples and weights (minus their
// zero points) and `output_offset` is ADDED to the requantised result (plus the output's zero point).

typedef struct {
    int32_t input_offset;   // -127 to 128
    int32_t output_offset;  // -128 to 127
    cmsis_nn_tile stride;
    cmsis_nn_tile
        padding;  // above and to the left; what is needed below and to the right follows from the output
    cmsis_nn_tile dilation;
    cmsis_nn_activation activation;
} cmsis_nn_conv_params;

typedef struct {
    int32_t input_offset;
    int32_t output_offset;
    cmsis_nn_tile stride;
    cmsis_nn_tile padding;          // rows and columns cut off at the top and left of the full result
    cmsis_nn_tile padding_offsets;  // has no effect
    cmsis_nn_tile dilation;         // has no effect
    cmsis_nn_activation activation;
} cmsis_nn_transpose_conv_params;

typedef struct {
    int32_t input_offset;
    int32_t output_offset;
    int32_t ch_mult;  // output channels per input channel
    cmsis_nn_tile stride;
    cmsis_nn_tile padding;
    cmsis_nn_tile dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;

typedef struct {
    cmsis_nn_tile stride;
    cmsis_nn_tile padding;
    cmsis_nn_activation activation;
} cmsis_nn_pool_params;

typedef struct {
    int32_t input_offset;
    int32_t filter_offset;
    int32_t output_offset;
    cmsis_nn_activation activation;
} cmsis_nn_fc_params;

typedef struct {
    const bool adj_x;  // not looked at: operands come in the order the function documents
    const bool adj_y;
    cmsis_nn_fc_params fc_params;
} cmsis_nn_bmm_params;

typedef struct {
    const int32_t num_dims;
    const uint32_t* permutations;
} cmsis_nn_transpose_params;

#endif
