#include "deploy_kernels.h"

#include <string.h>

void deploy_copy_s8(const int8_t* input, int32_t input_step, int8_t* output, int32_t output_step,
                    int32_t block, int32_t count) {
    if (block == 1 && input_step == 0 && output_step == 1) {
        memset(output, *input, (size_t)count);
    } else if (block == 1) {
        for (int32_t i = 0; i < count; i++) {
            output[i * output_step] = input[i * input_step];
        }
    } else if (block == input_step && block == output_step) {
        memcpy(output, input, (size_t)block * (size_t)count);
    } else {
        for (int32_t i = 0; i < count; i++) {
            memcpy(output, input, (size_t)block);
            input += input_step;
            output += output_step;
        }
    }
}

void deploy_concatenate_s8(const int8_t* const* parts, const int32_t* blocks, int32_t count, int8_t* output,
                           int32_t rows) {
    int32_t row = 0;
    for (int32_t i = 0; i < count; i++) {
        row += blocks[i];
    }
    for (int32_t i = 0; i < count; i++) {
        deploy_copy_s8(parts[i], blocks[i], output, row, blocks[i], rows);
        output += blocks[i];
    }
}
