#include "rows.h"

static inline int32_t add_products(uint32_t even, uint32_t odd, uint32_t weights, int32_t sum) {
    return smlad(odd, sxtb16_ror8(weights), smlad(even, sxtb16(weights), sum));
}

#if DEPLOY_DSP

// Four weights of one row times the four samples in r8 (even) and r9 (odd). They are in `weights`; the next
// row's are loaded into `next` by `load` as soon as that register is free, so that they are there when
// needed.
#define ROW(sum, weights, next, load)   \
    "sxtb16 " next ", " weights         \
    "\n\t"                              \
    "smlad " sum ", r8, " next ", " sum \
    "\n\t"                              \
    "sxtb16 " weights ", " weights ", ror #8\n\t" load "smlad " sum ", r9, " weights ", " sum "\n\t"

// One group of four samples times four rows: 23 instructions for 16 products.
#define GROUP                                                                                              \
    "ldr r9, [r0], #4\n\t"                                                                                 \
    "ldr r10, [r2, r3]\n\t"                                                                                \
    "sxtab16 r8, r1, r9\n\t"                                                                               \
    "sxtab16 r9, r1, r9, ror #8\n\t" ROW("r5", "r10", "r11", "ldr r11, [r2, r3, lsl #1]\n\t")              \
        ROW("r6", "r11", "r10", "ldr r10, [r12], #4\n\t") ROW("r7", "r10", "r11", "ldr r11, [r2], #4\n\t") \
            ROW("r4", "r11", "r10", "")

// sum[i] += samples + offset times row i, for whole groups up to `end`; at least one. offset in both halves.
//
// By hand, because compilers run out of registers here: r0 samples, r1 offset, r2 row 0, r3 distance of rows,
// r4 to r7 sums, r12 row 3, lr end.
__attribute__((naked, noinline)) static void add_groups(__attribute__((unused)) const int8_t* samples,
                                                        __attribute__((unused)) uint32_t offset,
                                                        __attribute__((unused)) const int8_t* weights,
                                                        __attribute__((unused)) int32_t stride,
                                                        __attribute__((unused)) const int8_t* end,
                                                        __attribute__((unused)) int32_t* sum) {
    __asm__(
        "push {r4-r11, lr}\n\t"
        "ldr r8, [sp, #40]\n\t"
        "ldr lr, [sp, #36]\n\t"
        "ldm r8, {r4-r7}\n\t"
        "add r12, r3, r3, lsl #1\n\t"
        "add r12, r12, r2\n\t"
        "sub r8, lr, r0\n\t"
        "tst r8, #4\n\t"
        "bne 2f\n"
        "1:\n\t"  // two groups; an odd number of them starts with the second
        GROUP "2:\n\t" GROUP
        "cmp r0, lr\n\t"
        "bne 1b\n\t"
        "ldr r8, [sp, #40]\n\t"
        "stm r8, {r4-r7}\n\t"
        "pop {r4-r11, pc}");
}

#undef GROUP
#undef ROW

#else

static void add_groups(const int8_t* samples, uint32_t offset, const int8_t* weights, int32_t stride,
                       const int8_t* end, int32_t* sum) {
    for (; samples != end; samples += 4, weights += 4) {
        const uint32_t word = load4(samples);
        const uint32_t even = sxtab16(offset, word);
        const uint32_t odd = sxtab16_ror8(offset, word);
        for (int32_t i = 0; i < 4; i++) {
            sum[i] = add_products(even, odd, load4(weights + i * stride), sum[i]);
        }
    }
}

#endif

void multiply_four_rows(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t stride,
                        int32_t depth, int32_t sum[4]) {
    if (depth >= 4) {
        add_groups(samples, twice16(offset), weights, stride, samples + (depth & ~3), sum);
    }
    for (int32_t k = depth & ~3; k < depth; k++) {
        const int32_t sample = samples[k] + offset;
        for (int32_t i = 0; i < 4; i++) {
            sum[i] += sample * weights[i * stride + k];
        }
    }
}

int32_t multiply_row(const int8_t* samples, int32_t offset, const int8_t* weights, int32_t depth) {
    const uint32_t both = twice16(offset);
    int32_t sum = 0;
    for (; depth >= 4; depth -= 4, samples += 4, weights += 4) {
        const uint32_t word = load4(samples);
        sum = add_products(sxtab16(both, word), sxtab16_ror8(both, word), load4(weights), sum);
    }
    for (int32_t k = 0; k < depth; k++) {
        sum += (samples[k] + offset) * weights[k];
    }
    return sum;
}

int32_t sum_row(const int8_t* samples, int32_t offset, int32_t depth) {
    int32_t sum = depth * offset;
    const uint32_t ones = twice16(1);
    for (; depth >= 4; depth -= 4, samples += 4) {
        const uint32_t word = load4(samples);
        sum = smlad(sxtb16_ror8(word), ones, smlad(sxtb16(word), ones, sum));
    }
    for (int32_t k = 0; k < depth; k++) {
        sum += samples[k];
    }
    return sum;
}
