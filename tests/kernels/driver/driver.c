// Calls kernels with arguments from a file and writes what they return to another.
//
// All words are little-endian int32. The file of cases starts with their number. A case is: function, options
// (1: withhold the scratch memory, 2: write the output over the first array), number of scalars, scalars,
// number of arrays, then per array its length in bytes and its bytes (padded to a word; length 0 is a NULL
// pointer), then the length of the output in bytes. Scalars that belong to one structure lie in its order. A
// result is: status, ticks, bytes of scratch, output (padded to a word), blocks written out of bounds.

#include <stdbool.h>
#include <stddef.h>

#include "arm_nnfunctions.h"
#include "deploy_kernels.h"
#include "exponential.h"
#include "port.h"
#include "requantize.h"

#define MAX_SCALARS 48
#define MAX_ARRAYS 5

typedef struct {
    int32_t scalars[MAX_SCALARS];
    void* arrays[MAX_ARRAYS];
    void* output;
    int32_t output_size;
    cmsis_nn_context scratch;
    bool without_scratch;
    uint32_t ticks;
} call;

static const cmsis_nn_dims* dims_at(const call* c, int32_t index) {
    return (const void*)&c->scalars[index];
}

static void make_scratch(call* c, int32_t size) {
    if (c->without_scratch) {
        return;
    }
    c->scratch.size = size;
    c->scratch.buf = port_allocate(size);
}

// Runs `expression` between two readings of the timer.
#define TIMED(c, status, expression)         \
    do {                                     \
        const uint32_t start = port_ticks(); \
        status = (expression);               \
        (c)->ticks = port_ticks() - start;   \
    } while (0)

// Scalars: input, filter, output dims, parameters. Arrays: input, filter, bias, multipliers, shifts.
static int32_t convolve(call* c) {
    const cmsis_nn_dims* input = dims_at(c, 0);
    const cmsis_nn_dims* filter = dims_at(c, 4);
    const cmsis_nn_dims* output = dims_at(c, 8);
    const cmsis_nn_conv_params* params = (const void*)&c->scalars[12];
    const cmsis_nn_per_channel_quant_params quant = {c->arrays[3], c->arrays[4]};
    make_scratch(c, arm_convolve_wrapper_s8_get_buffer_size(params, input, filter, output));
    int32_t status;
    TIMED(c, status,
          arm_convolve_wrapper_s8(&c->scratch, params, &quant, input, c->arrays[0], filter, c->arrays[1],
                                  NULL, c->arrays[2], output, c->output));
    return status;
}

static int32_t depthwise(call* c) {
    const cmsis_nn_dims* input = dims_at(c, 0);
    const cmsis_nn_dims* filter = dims_at(c, 4);
    const cmsis_nn_dims* output = dims_at(c, 8);
    const cmsis_nn_dw_conv_params* params = (const void*)&c->scalars[12];
    const cmsis_nn_per_channel_quant_params quant = {c->arrays[3], c->arrays[4]};
    make_scratch(c, arm_depthwise_conv_wrapper_s8_get_buffer_size(params, input, filter, output));
    int32_t status;
    TIMED(c, status,
          arm_depthwise_conv_wrapper_s8(&c->scratch, params, &quant, input, c->arrays[0], filter,
                                        c->arrays[1], NULL, c->arrays[2], output, c->output));
    return status;
}

static int32_t transpose_convolve(call* c) {
    const cmsis_nn_dims* input = dims_at(c, 0);
    const cmsis_nn_dims* filter = dims_at(c, 4);
    const cmsis_nn_dims* output = dims_at(c, 8);
    const cmsis_nn_transpose_conv_params* params = (const void*)&c->scalars[12];
    const cmsis_nn_per_channel_quant_params quant = {c->arrays[3], c->arrays[4]};
    make_scratch(c, arm_transpose_conv_s8_get_buffer_size(params, input, filter, output));
    const int32_t reverse_size = arm_transpose_conv_s8_get_reverse_conv_buffer_size(params, input, filter);
    const cmsis_nn_context reverse = {port_allocate(reverse_size), reverse_size};
    int32_t status;
    TIMED(c, status,
          arm_transpose_conv_wrapper_s8(&c->scratch, &reverse, params, &quant, input, c->arrays[0], filter,
                                        c->arrays[1], NULL, c->arrays[2], output, c->output));
    return status;
}

// Scalars: batches, depth, rows, parameters. Arrays as above; quantisation for the tensor or per row.
static int32_t fully_connected(call* c, bool per_channel) {
    const cmsis_nn_dims input = {c->scalars[0], 1, 1, c->scalars[1]};
    const cmsis_nn_dims filter = {c->scalars[1], 1, 1, c->scalars[2]};
    const cmsis_nn_dims output = {c->scalars[0], 1, 1, c->scalars[2]};
    const cmsis_nn_fc_params* params = (const void*)&c->scalars[3];
    const cmsis_nn_per_channel_quant_params rows = {c->arrays[3], c->arrays[4]};
    const cmsis_nn_per_tensor_quant_params tensor = {*rows.multiplier, *rows.shift};
    make_scratch(c, arm_fully_connected_s8_get_buffer_size(&filter));
    int32_t status;
    if (per_channel) {
        TIMED(c, status,
              arm_fully_connected_per_channel_s8(&c->scratch, params, &rows, &input, c->arrays[0], &filter,
                                                 c->arrays[1], NULL, c->arrays[2], &output, c->output));
    } else {
        TIMED(c, status,
              arm_fully_connected_s8(&c->scratch, params, &tensor, &input, c->arrays[0], &filter,
                                     c->arrays[1], NULL, c->arrays[2], &output, c->output));
    }
    return status;
}

static int32_t fully_connected_per_tensor(call* c) {
    return fully_connected(c, false);
}

static int32_t fully_connected_per_channel(call* c) {
    return fully_connected(c, true);
}

// Scalars: lhs, rhs, output dims, parameters, multiplier, shift. Arrays: lhs, rhs.
static int32_t batch_matmul(call* c) {
    const cmsis_nn_bmm_params params = {false, false,
                                        *(const cmsis_nn_fc_params*)(const void*)&c->scalars[12]};
    const cmsis_nn_per_tensor_quant_params* quant = (const void*)&c->scalars[17];
    int32_t status;
    TIMED(c, status,
          arm_batch_matmul_s8(&c->scratch, &params, quant, dims_at(c, 0), c->arrays[0], dims_at(c, 4),
                              c->arrays[1], dims_at(c, 8), c->output));
    return status;
}

// Scalars: columns, rows, lhs offset, rhs offset. Arrays: matrix, bias.
static int32_t vector_sum(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status, arm_vector_sum_s8(c->output, s[0], s[1], c->arrays[0], s[2], s[3], c->arrays[1]));
    return status;
}

// Scalars in the order of the arguments.
static int32_t add(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status,
          arm_elementwise_add_s8(c->arrays[0], c->arrays[1], s[0], s[1], s[2], s[3], s[4], s[5], s[6],
                                 c->output, s[7], s[8], s[9], s[10], s[11], s[12]));
    return status;
}

static int32_t multiply(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status,
          arm_elementwise_mul_s8(c->arrays[0], c->arrays[1], s[0], s[1], c->output, s[2], s[3], s[4], s[5],
                                 s[6], s[7]));
    return status;
}

// Scalars: dims of both inputs and the output.
static int32_t maximum(call* c) {
    int32_t status;
    TIMED(c, status,
          arm_maximum_s8(&c->scratch, c->arrays[0], dims_at(c, 0), c->arrays[1], dims_at(c, 4), c->output,
                         dims_at(c, 8)));
    return status;
}

static int32_t minimum(call* c) {
    int32_t status;
    TIMED(c, status,
          arm_minimum_s8(&c->scratch, c->arrays[0], dims_at(c, 0), c->arrays[1], dims_at(c, 4), c->output,
                         dims_at(c, 8)));
    return status;
}

// Scalars: input, filter, output dims, parameters.
static int32_t average_pool(call* c) {
    make_scratch(c, arm_avgpool_s8_get_buffer_size(dims_at(c, 8)->w, dims_at(c, 0)->c));
    int32_t status;
    TIMED(c, status,
          arm_avgpool_s8(&c->scratch, (const void*)&c->scalars[12], dims_at(c, 0), c->arrays[0],
                         dims_at(c, 4), dims_at(c, 8), c->output));
    return status;
}

static int32_t max_pool(call* c) {
    int32_t status;
    TIMED(c, status,
          arm_max_pool_s8(&c->scratch, (const void*)&c->scalars[12], dims_at(c, 0), c->arrays[0],
                          dims_at(c, 4), dims_at(c, 8), c->output));
    return status;
}

// Scalars in the order of the arguments.
static int32_t softmax(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status, (arm_softmax_s8(c->arrays[0], s[0], s[1], s[2], s[3], s[4], c->output), 0));
    return status;
}

// Scalars: input, output dims, number of axes, permutation.
static int32_t transpose(call* c) {
    const cmsis_nn_transpose_params params = {c->scalars[8], (const void*)&c->scalars[9]};
    int32_t status;
    TIMED(c, status, arm_transpose_s8(c->arrays[0], c->output, dims_at(c, 0), dims_at(c, 4), &params));
    return status;
}

// Scalars: value, input, padding before, padding after.
static int32_t pad(call* c) {
    int32_t status;
    TIMED(c, status,
          arm_pad_s8(c->arrays[0], c->output, (int8_t)c->scalars[0], dims_at(c, 1), dims_at(c, 5),
                     dims_at(c, 9)));
    return status;
}

static float as_float(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Scalars: size, inverse scale (its bits), zero point, smallest, largest.
static int32_t quantize(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status,
          (deploy_quantize_f32_s8(c->arrays[0], c->output, s[0], as_float(s[1]), s[2], s[3], s[4]), 0));
    return status;
}

// Scalars: size, scale, zero point.
static int32_t dequantize(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status, (deploy_dequantize_s8_f32(c->arrays[0], c->output, s[0], as_float(s[1]), s[2]), 0));
    return status;
}

// Scalars: size. Arrays: input, table.
static int32_t lookup(call* c) {
    int32_t status;
    TIMED(c, status, (deploy_lookup_s8(c->arrays[0], c->arrays[1], c->output, c->scalars[0]), 0));
    return status;
}

// Scalars: both zero points, scale, zero point of the output, size.
static int32_t divide(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status,
          (deploy_div_s8(c->arrays[0], c->arrays[1], s[0], s[1], as_float(s[2]), c->output, s[3], s[4]), 0));
    return status;
}

// Scalars: step of the input, step of the output, elements of a block, number of blocks.
static int32_t copy(call* c) {
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status, (deploy_copy_s8(c->arrays[0], s[0], c->output, s[1], s[2], s[3]), 0));
    return status;
}

// Scalars: rows, number of parts, elements in a block of each. Arrays: the parts.
static int32_t concatenate(call* c) {
    const int8_t* parts[MAX_ARRAYS];
    for (int32_t i = 0; i < MAX_ARRAYS; i++) {
        parts[i] = c->arrays[i];
    }
    const int32_t* s = c->scalars;
    int32_t status;
    TIMED(c, status, (deploy_concatenate_s8(parts, &s[2], s[1], c->output, s[0]), 0));
    return status;
}

// The fixed-point primitives, element by element. Scalars: which, number of elements.
static int32_t primitive(call* c) {
    const int32_t* a = c->arrays[0];
    const int32_t* b = c->arrays[1];
    const int32_t* shifts = c->arrays[2];
    int32_t* output = c->output;
    for (int32_t i = 0; i < c->scalars[1]; i++) {
        switch (c->scalars[0]) {
            case 0:
                output[i] = requantize(a[i], b[i], shifts[i]);
                break;
            case 1:
                output[i] = high_multiply_saturating(a[i], b[i]);
                break;
            case 2:
                output[i] = high_multiply(a[i], b[i]);
                break;
            case 3:
                output[i] = rounding_divide(a[i], shifts[i]);
                break;
            case 4:
                output[i] = exp_of_negative(a[i]);
                break;
            case 5:
                output[i] = one_over_one_plus(a[i]);
                break;
            default:
                return -1;
        }
    }
    return 0;
}

static int32_t (*const functions[])(call*) = {
    convolve,
    depthwise,
    transpose_convolve,
    fully_connected_per_tensor,
    fully_connected_per_channel,
    batch_matmul,
    vector_sum,
    add,
    multiply,
    maximum,
    minimum,
    average_pool,
    max_pool,
    softmax,
    transpose,
    pad,
    quantize,
    dequantize,
    lookup,
    divide,
    copy,
    concatenate,
    primitive,
};

static int32_t read_word(void) {
    int32_t word;
    port_read(&word, 4);
    return word;
}

static void read_padded(void* destination, int32_t size) {
    uint8_t padding[4];
    if (size > 0) {
        port_read(destination, size);
    }
    if ((size & 3) != 0) {
        port_read(padding, 4 - (size & 3));
    }
}

static void run_case(void) {
    static const uint8_t padding[4] = {0, 0, 0, 0};
    call c = {0};
    const int32_t function = read_word();
    const int32_t options = read_word();
    c.without_scratch = (options & 1) != 0;
    const int32_t scalars = read_word();
    port_read(c.scalars, 4 * scalars);
    const int32_t arrays = read_word();
    for (int32_t i = 0; i < arrays; i++) {
        const int32_t size = read_word();
        c.arrays[i] = port_allocate(size);
        read_padded(c.arrays[i], size);
    }
    c.output_size = read_word();
    c.output = port_allocate(c.output_size);
    void* const result = c.output;
    if ((options & 2) != 0) {
        c.output = c.arrays[0];
    }
    const int32_t status = functions[function](&c);
    memmove(result, c.output, (size_t)c.output_size);
    port_write(&status, 4);
    port_write(&c.ticks, 4);
    port_write(&c.scratch.size, 4);
    // The output goes out before the blocks are released, the count of broken ones after it.
    port_write(result, c.output_size);
    port_write(padding, (4 - (c.output_size & 3)) & 3);
    const int32_t broken = port_release_all();
    port_write(&broken, 4);
}

int main(void) {
    const int32_t cases = read_word();
    for (int32_t i = 0; i < cases; i++) {
        run_case();
    }
    return 0;
}
