#include "deploy_kernels.h"

#include "simd.h"

// VCVTR to int32 exists from ARMv7E-M's single-precision FPU on.
#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define DEPLOY_FPU 1
#else
#define DEPLOY_FPU 0
#endif

// Nearest int32, ties to even; saturates, NaN gives 0.
static inline int32_t round_to_int32(float value) {
#if DEPLOY_FPU
    float bits;
    int32_t result;
    __asm__("vcvtr.s32.f32 %0, %1" : "=t"(bits) : "t"(value));
    memcpy(&result, &bits, sizeof result);
    return result;
#else
    if (!(value > -2147483648.0f)) {
        return value != value ? 0 : INT32_MIN;
    }
    if (value >= 2147483648.0f) {
        return INT32_MAX;
    }
    const int32_t whole = (int32_t)value;
    // Exact: the operands are within a factor of two of each other, or whole is 0.
    const float rest = value - (float)whole;
    if (rest > 0.5f || (rest == 0.5f && (whole & 1) != 0)) {
        return whole + 1;
    }
    if (rest < -0.5f || (rest == -0.5f && (whole & 1) != 0)) {
        return whole - 1;
    }
    return whole;
#endif
}

// clamp(value + zero_point, min, max) without overflow; min and max are int8.
static inline int32_t offset_and_clamp(int32_t value, int32_t zero_point, int32_t min, int32_t max) {
    const int32_t low = min - zero_point;
    const int32_t high = max - zero_point;
    value = value < low ? low : value;
    value = value > high ? high : value;
    return value + zero_point;
}

#if DEPLOY_FPU && DEPLOY_DSP

// Four elements: scaled, rounded, zero point added and saturated to int8.
static inline uint32_t quantize_four(const float* input, float inverse_scale, int32_t zero_point) {
    int32_t a;
    int32_t b;
    int32_t c;
    int32_t d;
    __asm__(
        "vldm %[input], {s8-s11}\n\t"
        "vmul.f32 s8, s8, %[scale]\n\t"
        "vmul.f32 s9, s9, %[scale]\n\t"
        "vmul.f32 s10, s10, %[scale]\n\t"
        "vmul.f32 s11, s11, %[scale]\n\t"
        "vcvtr.s32.f32 s8, s8\n\t"
        "vcvtr.s32.f32 s9, s9\n\t"
        "vcvtr.s32.f32 s10, s10\n\t"
        "vcvtr.s32.f32 s11, s11\n\t"
        "vmov %[a], %[b], s8, s9\n\t"
        "vmov %[c], %[d], s10, s11\n\t"
        "qadd %[a], %[a], %[zero]\n\t"
        "qadd %[b], %[b], %[zero]\n\t"
        "qadd %[c], %[c], %[zero]\n\t"
        "qadd %[d], %[d], %[zero]"
        : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
        : [input] "r"(input), [scale] "t"(inverse_scale), [zero] "r"(zero_point)
        : "s8", "s9", "s10", "s11", "memory");
    return pack8(saturate8(a), saturate8(b), saturate8(c), saturate8(d));
}

#else

static inline uint32_t quantize_four(const float* input, float inverse_scale, int32_t zero_point) {
    int32_t value[4];
    for (int32_t i = 0; i < 4; i++) {
        value[i] = offset_and_clamp(round_to_int32(input[i] * inverse_scale), zero_point, -128, 127);
    }
    return pack8(value[0], value[1], value[2], value[3]);
}

#endif

void deploy_quantize_f32_s8(const float* input, int8_t* output, int32_t size, float inverse_scale,
                            int32_t zero_point, int32_t quant_min, int32_t quant_max) {
    const uint32_t min = four_times8(quant_min);
    const uint32_t max = four_times8(quant_max);
    for (; size >= 4; size -= 4, input += 4, output += 4) {
        store4(output, min8(max8(quantize_four(input, inverse_scale, zero_point), min), max));
    }
    for (; size > 0; size--) {
        *output++ = (int8_t)offset_and_clamp(round_to_int32(*input++ * inverse_scale), zero_point, quant_min,
                                             quant_max);
    }
}

void deploy_dequantize_s8_f32(const int8_t* input, float* output, int32_t size, float scale,
                              int32_t zero_point) {
    for (int32_t i = 0; i < size; i++) {
        output[i] = (float)(input[i] - zero_point) * scale;
    }
}

void deploy_lookup_s8(const int8_t* input, const int8_t* lut, int8_t* output, int32_t size) {
    for (int32_t i = 0; i < size; i++) {
        output[i] = lut[input[i] + 128];
    }
}

void deploy_div_s8(const int8_t* input_1, const int8_t* input_2, int32_t zero_point_1, int32_t zero_point_2,
                   float scale, int8_t* output, int32_t output_zero_point, int32_t size) {
    for (int32_t i = 0; i < size; i++) {
        const int32_t divisor = input_2[i] - zero_point_2;
        const float quotient = divisor != 0 ? (float)(input_1[i] - zero_point_1) / (float)divisor : 0.0f;
        output[i] = (int8_t)offset_and_clamp(round_to_int32(quotient * scale), output_zero_point, -128, 127);
    }
}
