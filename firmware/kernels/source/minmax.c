#include "arm_nnfunctions.h"

#include <stdbool.h>

#include "simd.h"

// Distances in elements between neighbours of one operand along n, h, w, c; 0 along axes that broadcast.
typedef struct {
    int32_t n;
    int32_t h;
    int32_t w;
    int32_t c;
} strides;

static strides broadcast_strides(const cmsis_nn_dims* dims) {
    const strides result = {dims->n == 1 ? 0 : dims->h * dims->w * dims->c,
                            dims->h == 1 ? 0 : dims->w * dims->c, dims->w == 1 ? 0 : dims->c,
                            dims->c == 1 ? 0 : 1};
    return result;
}

static bool same_shape(const cmsis_nn_dims* a, const cmsis_nn_dims* b) {
    return a->n == b->n && a->h == b->h && a->w == b->w && a->c == b->c;
}

static int8_t pick(bool larger, int8_t a, int8_t b) {
    return (a > b) == larger ? a : b;
}

// One line along c. A step is 1, or 0 for an operand that broadcasts.
static void pick_line(bool larger, const int8_t* a, int32_t step_a, const int8_t* b, int32_t step_b,
                      int8_t* output, int32_t count) {
    int32_t i = 0;
    if (step_a == 1 && step_b == 1) {
        for (; i + 4 <= count; i += 4) {
            const uint32_t x = load4(a + i);
            const uint32_t y = load4(b + i);
            store4(output + i, larger ? max8(x, y) : min8(x, y));
        }
    }
    for (; i < count; i++) {
        output[i] = pick(larger, a[i * step_a], b[i * step_b]);
    }
}

static void pick_all(bool larger, const int8_t* a, const cmsis_nn_dims* a_dims, const int8_t* b,
                     const cmsis_nn_dims* b_dims, int8_t* output, const cmsis_nn_dims* dims) {
    if (same_shape(a_dims, dims) && same_shape(b_dims, dims)) {
        pick_line(larger, a, 1, b, 1, output, dims->n * dims->h * dims->w * dims->c);
        return;
    }
    const strides sa = broadcast_strides(a_dims);
    const strides sb = broadcast_strides(b_dims);
    for (int32_t n = 0; n < dims->n; n++) {
        for (int32_t h = 0; h < dims->h; h++) {
            for (int32_t w = 0; w < dims->w; w++) {
                pick_line(larger, a + n * sa.n + h * sa.h + w * sa.w, sa.c,
                          b + n * sb.n + h * sb.h + w * sb.w, sb.c, output, dims->c);
                output += dims->c;
            }
        }
    }
}

arm_cmsis_nn_status arm_maximum_s8(const cmsis_nn_context* ctx, const int8_t* input_1_data,
                                   const cmsis_nn_dims* input_1_dims, const int8_t* input_2_data,
                                   const cmsis_nn_dims* input_2_dims, int8_t* output_data,
                                   const cmsis_nn_dims* output_dims) {
    (void)ctx;
    pick_all(true, input_1_data, input_1_dims, input_2_data, input_2_dims, output_data, output_dims);
    return ARM_CMSIS_NN_SUCCESS;
}

arm_cmsis_nn_status arm_minimum_s8(const cmsis_nn_context* ctx, const int8_t* input_1_data,
                                   const cmsis_nn_dims* input_1_dims, const int8_t* input_2_data,
                                   const cmsis_nn_dims* input_2_dims, int8_t* output_data,
                                   const cmsis_nn_dims* output_dims) {
    (void)ctx;
    pick_all(false, input_1_data, input_1_dims, input_2_data, input_2_dims, output_data, output_dims);
    return ARM_CMSIS_NN_SUCCESS;
}
