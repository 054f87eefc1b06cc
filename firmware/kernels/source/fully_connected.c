#include "arm_nnfunctions.h"

#include <stddef.h>

#include "requantize.h"
#include "rows.h"

typedef struct {
    const cmsis_nn_fc_params* params;
    const int8_t* weights;
    const int32_t* bias;
    int32_t depth;
    int32_t rows;
    output_stage stage;
} layer;

// Results of four rows. all_rows holds for every row if the stage has one multiplier.
static uint32_t finish_four(const output_stage* stage, const fast_channel* all_rows, int32_t row,
                            const int32_t sum[4]) {
    if (!stage->fast) {
        return pack8(finish_exact(stage, row, sum[0]), finish_exact(stage, row + 1, sum[1]),
                     finish_exact(stage, row + 2, sum[2]), finish_exact(stage, row + 3, sum[3]));
    }
    if (stage->stride == 0) {
        const fast_channel same = *all_rows;
        return pack8(finish_fast(same, sum[0]), finish_fast(same, sum[1]), finish_fast(same, sum[2]),
                     finish_fast(same, sum[3]));
    }
    return pack8(
        finish_fast(load_channel(stage, row), sum[0]), finish_fast(load_channel(stage, row + 1), sum[1]),
        finish_fast(load_channel(stage, row + 2), sum[2]), finish_fast(load_channel(stage, row + 3), sum[3]));
}

static void multiply_matrix(const layer* l, const int8_t* input, int8_t* output) {
    const int32_t offset = l->params->input_offset;
    const int32_t depth = l->depth;
    // Weights with a zero point: sum x * (w + f) = sum x * w + f * sum x.
    const int32_t filter_offset = l->params->filter_offset;
    const int32_t common = filter_offset != 0 ? filter_offset * sum_row(input, offset, depth) : 0;
    fast_channel first = {0, 0, 0};
    if (l->stage.fast) {
        first = load_channel(&l->stage, 0);
    }
    const int32_t* bias = l->bias;
    const int8_t* weights = l->weights;
    int32_t row = 0;
    for (; row + 4 <= l->rows; row += 4) {
        int32_t sum[4] = {common, common, common, common};
        if (bias != NULL) {
            sum[0] += bias[row];
            sum[1] += bias[row + 1];
            sum[2] += bias[row + 2];
            sum[3] += bias[row + 3];
        }
        multiply_four_rows(input, offset, weights, depth, depth, sum);
        store4(output + row, finish_four(&l->stage, &first, row, sum));
        weights += 4 * depth;
    }
    for (; row < l->rows; row++) {
        const int32_t sum = common + (bias != NULL ? bias[row] : 0);
        output[row] = (int8_t)finish_exact(&l->stage, row, sum + multiply_row(input, offset, weights, depth));
        weights += depth;
    }
}

arm_cmsis_nn_status arm_fully_connected_s8(const cmsis_nn_context* ctx, const cmsis_nn_fc_params* fc_params,
                                           const cmsis_nn_per_tensor_quant_params* quant_params,
                                           const cmsis_nn_dims* input_dims, const int8_t* input_data,
                                           const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
                                           const cmsis_nn_dims* bias_dims, const int32_t* bias_data,
                                           const cmsis_nn_dims* output_dims, int8_t* output_data) {
    (void)ctx;
    (void)bias_dims;
    (void)output_dims;
    const layer l = {fc_params,
                     filter_data,
                     bias_data,
                     filter_dims->n,
                     filter_dims->c,
                     make_output_stage(&quant_params->multiplier, &quant_params->shift, 0, filter_dims->c,
                                       fc_params->output_offset, bias_data, 2 * filter_dims->n,
                                       fc_params->activation.min, fc_params->activation.max)};
    for (int32_t n = 0; n < input_dims->n; n++) {
        multiply_matrix(&l, input_data + n * l.depth, output_data + n * l.rows);
    }
    clamp_output(&l.stage, output_data, input_dims->n * l.rows);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_fully_connected_per_channel_s8(
    const cmsis_nn_context* ctx, const cmsis_nn_fc_params* fc_params,
    const cmsis_nn_per_channel_quant_params* quant_params, const cmsis_nn_dims* input_dims,
    const int8_t* input_data, const cmsis_nn_dims* filter_dims, const int8_t* filter_data,
    const cmsis_nn_dims* bias_dims, const int32_t* bias_data, const cmsis_nn_dims* output_dims,
    int8_t* output_data) {
    (void)ctx;
    (void)bias_dims;
    (void)output_dims;
    const layer l = {fc_params,
                     filter_data,
                     bias_data,
                     filter_dims->n,
                     filter_dims->c,
                     make_output_stage(quant_params->multiplier, quant_params->shift, 1, filter_dims->c,
                                       fc_params->output_offset, bias_data, 2 * filter_dims->n,
                                       fc_params->activation.min, fc_params->activation.max)};
    for (int32_t n = 0; n < input_dims->n; n++) {
        multiply_matrix(&l, input_data + n * l.depth, output_data + n * l.rows);
    }
    clamp_output(&l.stage, output_data, input_dims->n * l.rows);
    return ARM_CMSIS_NN_SUCCESS;
}

int32_t arm_fully_connected_s8_get_buffer_size(const cmsis_nn_dims* filter_dims) {
    (void)filter_dims;
    return 0;
}

int32_t arm_fully_connected_s8_get_buffer_size_dsp(const cmsis_nn_dims* filter_dims) {
    return arm_fully_connected_s8_get_buffer_size(filter_dims);
}

int32_t arm_fully_connected_s8_get_buffer_size_mve(const cmsis_nn_dims* filter_dims) {
    return arm_fully_connected_s8_get_buffer_size(filter_dims);
}

// A batch of one of the operands: its index where it has more than one, else 0.
static int32_t broadcast(int32_t index, int32_t size) {
    return size == 1 ? 0 : index;
}

arm_cmsis_nn_status arm_batch_matmul_s8(const cmsis_nn_context* ctx, const cmsis_nn_bmm_params* bmm_params,
                                        const cmsis_nn_per_tensor_quant_params* quant_params,
                                        const cmsis_nn_dims* input_lhs_dims, const int8_t* input_lhs,
                                        const cmsis_nn_dims* input_rhs_dims, const int8_t* input_rhs,
                                        const cmsis_nn_dims* output_dims, int8_t* output) {
    (void)ctx;
    const cmsis_nn_fc_params* params = &bmm_params->fc_params;
    const int32_t depth = input_lhs_dims->c;
    const int32_t rows = input_lhs_dims->w;
    const int32_t columns = input_rhs_dims->w;
    if (input_rhs_dims->c != depth) {
        return ARM_CMSIS_NN_ARG_ERROR;
    }
    layer l = {
        params,
        input_rhs,
        NULL,
        depth,
        columns,
        make_output_stage(&quant_params->multiplier, &quant_params->shift, 0, columns, params->output_offset,
                          NULL, 2 * depth, params->activation.min, params->activation.max)};
    for (int32_t n = 0; n < output_dims->n; n++) {
        for (int32_t h = 0; h < output_dims->h; h++) {
            const int32_t left =
                broadcast(n, input_lhs_dims->n) * input_lhs_dims->h + broadcast(h, input_lhs_dims->h);
            const int32_t right =
                broadcast(n, input_rhs_dims->n) * input_rhs_dims->h + broadcast(h, input_rhs_dims->h);
            l.weights = input_rhs + right * columns * depth;
            for (int32_t row = 0; row < rows; row++) {
                multiply_matrix(&l, input_lhs + (left * rows + row) * depth, output);
                output += columns;
            }
        }
    }
    const int32_t count = output_dims->n * output_dims->h * rows * columns;
    clamp_output(&l.stage, output - count, count);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_vector_sum_s8(int32_t* vector_sum_buf, const int32_t vector_cols,
                                      const int32_t vector_rows, const int8_t* vector_data,
                                      const int32_t lhs_offset, const int32_t rhs_offset,
                                      const int32_t* bias_data) {
    for (int32_t row = 0; row < vector_rows; row++) {
        const int32_t sum = sum_row(vector_data + row * vector_cols, rhs_offset, vector_cols);
        vector_sum_buf[row] = (bias_data != NULL ? bias_data[row] : 0) + lhs_offset * sum;
    }
    return ARM_CMSIS_NN_SUCCESS;
}
