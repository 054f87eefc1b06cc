// Packed arithmetic on the lanes of a 32-bit word: two int16 (low half first) or four int8.
//
// On cores with the DSP extension each function is the one instruction it is named after, written as inline
// assembly because GCC before version 10 has no intrinsics for them. Elsewhere the same result is computed in
// portable C, so that one algorithm serves every core and the host's sanitizers see it.

#ifndef DEPLOY_SIMD_H
#define DEPLOY_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#define DEPLOY_DSP 1
#else
#define DEPLOY_DSP 0
#endif

// Loads and stores of unaligned words; memcpy of a fixed size is one instruction where the core allows it.
static inline uint32_t load4(const int8_t* source) {
    uint32_t word;
    memcpy(&word, source, sizeof word);
    return word;
}

static inline void store4(int8_t* destination, uint32_t word) {
    memcpy(destination, &word, sizeof word);
}

static inline void store2(int8_t* destination, uint32_t word) {
    const uint16_t half = (uint16_t)word;
    memcpy(destination, &half, sizeof half);
}

// The first `count` (0 to 3) bytes of a word; the rest is 0. Reads no byte beyond them.
static inline uint32_t load_tail(const int8_t* source, int32_t count) {
    uint32_t word = 0;
    for (int32_t i = 0; i < count; i++) {
        word |= (uint32_t)(uint8_t)source[i] << (8 * i);
    }
    return word;
}

// Both lanes hold the same int16.
static inline uint32_t twice16(int32_t value) {
    return ((uint32_t)value & 0xFFFFu) * 0x10001u;
}

// All four lanes hold the same int8.
static inline uint32_t four_times8(int32_t value) {
    return ((uint32_t)value & 0xFFu) * 0x01010101u;
}

#if DEPLOY_DSP

#define DEPLOY_BINARY(name, text)                         \
    static inline uint32_t name(uint32_t a, uint32_t b) { \
        uint32_t result;                                  \
        __asm__(text : "=r"(result) : "r"(a), "r"(b));    \
        return result;                                    \
    }

#define DEPLOY_ACCUMULATE(name, text)                                 \
    static inline int32_t name(uint32_t a, uint32_t b, int32_t sum) { \
        int32_t result;                                               \
        __asm__(text : "=r"(result) : "r"(a), "r"(b), "r"(sum));      \
        return result;                                                \
    }

// a + sign-extended bytes 0 and 2, or 1 and 3, of b, per int16 lane.
DEPLOY_BINARY(sxtab16, "sxtab16 %0, %1, %2")
DEPLOY_BINARY(sxtab16_ror8, "sxtab16 %0, %1, %2, ror #8")
// Low half of a below the low half of b.
DEPLOY_BINARY(pkhbt, "pkhbt %0, %1, %2, lsl #16")
// Sums of int16 products: both lanes; low lanes (bb), high (tt), high of a times low of b (tb).
DEPLOY_ACCUMULATE(smlad, "smlad %0, %1, %2, %3")
DEPLOY_ACCUMULATE(smlabb, "smlabb %0, %1, %2, %3")
DEPLOY_ACCUMULATE(smlatb, "smlatb %0, %1, %2, %3")
DEPLOY_ACCUMULATE(smlatt, "smlatt %0, %1, %2, %3")

// Larger and smaller of each int8 lane. One statement each, because the flags between the instructions are
// hidden.
static inline uint32_t max8(uint32_t a, uint32_t b) {
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}

static inline uint32_t min8(uint32_t a, uint32_t b) {
    uint32_t result;
    __asm__("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b));
    return result;
}

static inline uint32_t sxtb16(uint32_t a) {
    uint32_t result;
    __asm__("sxtb16 %0, %1" : "=r"(result) : "r"(a));
    return result;
}

static inline uint32_t sxtb16_ror8(uint32_t a) {
    uint32_t result;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(a));
    return result;
}

static inline int32_t saturate8(int32_t value) {
    int32_t result;
    __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(value));
    return result;
}

// sum + round(a * b / 2^32), ties towards plus infinity.
static inline int32_t smmlar(int32_t a, int32_t b, int32_t sum) {
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

static inline int32_t smmulr(int32_t a, int32_t b) {
    int32_t result;
    __asm__("smmulr %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

// Bytes 0 to 3 of the result are the low bytes of a, b, c, d.
static inline uint32_t pack8(int32_t a, int32_t b, int32_t c, int32_t d) {
    uint32_t word = (uint32_t)a;
    __asm__("bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8"
            : "+&r"(word)
            : "r"(b), "r"(c), "r"(d));
    return word;
}

#undef DEPLOY_BINARY
#undef DEPLOY_ACCUMULATE

#else

static inline int32_t low16(uint32_t word) {
    return (int16_t)(uint16_t)word;
}

static inline int32_t high16(uint32_t word) {
    return (int16_t)(uint16_t)(word >> 16);
}

static inline uint32_t pack16(int32_t low, int32_t high) {
    return ((uint32_t)low & 0xFFFFu) | (uint32_t)high << 16;
}

static inline int32_t byte8(uint32_t word, int32_t index) {
    return (int8_t)(uint8_t)(word >> (8 * index));
}

static inline uint32_t sxtb16(uint32_t a) {
    return pack16(byte8(a, 0), byte8(a, 2));
}

static inline uint32_t sxtb16_ror8(uint32_t a) {
    return pack16(byte8(a, 1), byte8(a, 3));
}

static inline uint32_t sxtab16(uint32_t a, uint32_t b) {
    return pack16(low16(a) + byte8(b, 0), high16(a) + byte8(b, 2));
}

static inline uint32_t sxtab16_ror8(uint32_t a, uint32_t b) {
    return pack16(low16(a) + byte8(b, 1), high16(a) + byte8(b, 3));
}

static inline uint32_t pkhbt(uint32_t a, uint32_t b) {
    return (a & 0xFFFFu) | b << 16;
}

static inline uint32_t max8(uint32_t a, uint32_t b) {
    uint32_t word = 0;
    for (int32_t i = 0; i < 4; i++) {
        word |= ((byte8(a, i) >= byte8(b, i) ? a : b) & (0xFFu << (8 * i)));
    }
    return word;
}

static inline uint32_t min8(uint32_t a, uint32_t b) {
    uint32_t word = 0;
    for (int32_t i = 0; i < 4; i++) {
        word |= ((byte8(a, i) >= byte8(b, i) ? b : a) & (0xFFu << (8 * i)));
    }
    return word;
}

static inline int32_t smlabb(uint32_t a, uint32_t b, int32_t sum) {
    return sum + low16(a) * low16(b);
}

static inline int32_t smlatb(uint32_t a, uint32_t b, int32_t sum) {
    return sum + high16(a) * low16(b);
}

static inline int32_t smlatt(uint32_t a, uint32_t b, int32_t sum) {
    return sum + high16(a) * high16(b);
}

static inline int32_t smlad(uint32_t a, uint32_t b, int32_t sum) {
    return smlatt(a, b, smlabb(a, b, sum));
}

static inline int32_t saturate8(int32_t value) {
    return value < -128 ? -128 : value > 127 ? 127 : value;
}

static inline int32_t smmulr(int32_t a, int32_t b) {
    return (int32_t)(((int64_t)a * b + ((int64_t)1 << 31)) >> 32);
}

static inline int32_t smmlar(int32_t a, int32_t b, int32_t sum) {
    return sum + smmulr(a, b);
}

static inline uint32_t pack8(int32_t a, int32_t b, int32_t c, int32_t d) {
    return ((uint32_t)a & 0xFFu) | ((uint32_t)b & 0xFFu) << 8 | ((uint32_t)c & 0xFFu) << 16 |
           (uint32_t)d << 24;
}

#endif

#endif
