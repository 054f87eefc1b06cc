#include "arm_nnfunctions.h"

#include "simd.h"

static void copy_strided(const int8_t* input, int32_t step, int8_t* output, int32_t count) {
    int32_t i = 0;
    if (step == 1) {
        for (; i + 4 <= count; i += 4) {
            store4(output + i, load4(input + i));
        }
        input += i;
    }
    for (; i < count; i++) {
        output[i] = *input;
        input += step;
    }
}

arm_cmsis_nn_status arm_transpose_s8(const int8_t* input_data, int8_t* const output_data,
                                     const cmsis_nn_dims* const input_dims,
                                     const cmsis_nn_dims* const output_dims,
                                     const cmsis_nn_transpose_params* const transpose_params) {
    (void)output_dims;
    const int32_t axes = transpose_params->num_dims;
    const int32_t sizes[4] = {input_dims->n, input_dims->h, input_dims->w, input_dims->c};
    if (axes < 1 || axes > 4) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    int32_t strides[4];
    int32_t stride = 1;
    for (int32_t axis = axes - 1; axis >= 0; axis--) {
        strides[axis] = stride;
        stride *= sizes[axis];
    }
    // The output's four axes from the outermost, with the input's stride along each; missing axes come first.
    int32_t out_sizes[4] = {1, 1, 1, 1};
    int32_t steps[4] = {0, 0, 0, 0};
    for (int32_t axis = 0; axis < axes; axis++) {
        const uint32_t from = transpose_params->permutations[axis];
        if (from >= (uint32_t)axes) {
            return ARM_CMSIS_NN_ARG_ERROR;
        }
        out_sizes[4 - axes + axis] = sizes[from];
        steps[4 - axes + axis] = strides[from];
    }
    int8_t* output = output_data;
    for (int32_t a = 0; a < out_sizes[0]; a++) {
        for (int32_t b = 0; b < out_sizes[1]; b++) {
            for (int32_t c = 0; c < out_sizes[2]; c++) {
                copy_strided(input_data + a * steps[0] + b * steps[1] + c * steps[2], steps[3], output,
                             out_sizes[3]);
                output += out_sizes[3];
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
