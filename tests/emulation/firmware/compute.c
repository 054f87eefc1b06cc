/* Computations whose instruction count and result are the same in every run. */
#include <stdio.h>

#include "hardware/structs/m33.h"
#include "hardware/sync.h"
#include "pico.h"
#include "probe.h"

static inline __attribute__((always_inline)) uint32_t mix(uint32_t rounds) {
    uint32_t state = 0x12345678u;
    for (uint32_t i = 0; i < rounds; ++i) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        if (state & 1u) state += i;
    }
    return state;
}

__attribute__((noinline)) uint32_t compute(uint32_t rounds) {
    return mix(rounds);
}

__attribute__((noinline)) uint32_t __not_in_flash_func(compute_from_ram)(uint32_t rounds) {
    return mix(rounds);
}

/* Nine instructions per round, skipped ones included, whatever the compiler makes of C. */
static __attribute__((noinline)) uint32_t nine_per_round(uint32_t rounds) {
    uint32_t state = 0x12345678u, sign, i = 0;
    __asm__ volatile(
        ".syntax unified\n"
        "1: eor %0, %0, %0, lsl #13\n"
        "eor %0, %0, %0, lsr #17\n"
        "eor %0, %0, %0, lsl #5\n"
        "lsls %1, %0, #31\n"
        "it mi\n"
        "addmi %0, %0, %2\n"
        "adds %2, %2, #1\n"
        "cmp %2, %3\n"
        "bne 1b"
        : "+l"(state), "=&l"(sign), "+l"(i)
        : "l"(rounds)
        : "cc");
    return state;
}

uint32_t instructions(uint32_t rounds) {
    m33_hw->demcr |= M33_DEMCR_TRCENA_BITS;
    m33_hw->dwt_ctrl |= M33_DWT_CTRL_CYCCNTENA_BITS;
    uint32_t saved = save_and_disable_interrupts();
    uint32_t before = m33_hw->dwt_cyccnt;
    __asm__ volatile("" : "+r"(rounds) : "r"(before) : "memory"); /* not before the first reading … */
    uint32_t result = nine_per_round(rounds);
    __asm__ volatile("" : : "r"(result) : "memory"); /* … and not after the second */
    uint32_t after = m33_hw->dwt_cyccnt;
    restore_interrupts(saved);
    return after - before;
}

/* Results of DSP-extension and saturating instructions on three operands, printed in this order. */
void dsp(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r[8], lo = c, hi = a;
    __asm__("smlad %0, %1, %2, %3" : "=r"(r[0]) : "r"(a), "r"(b), "r"(c));
    __asm__("smuadx %0, %1, %2" : "=r"(r[1]) : "r"(a), "r"(b));
    __asm__("qadd16 %0, %1, %2" : "=r"(r[2]) : "r"(a), "r"(b));
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(r[3]) : "r"(a), "r"(b));
    __asm__("ssat %0, #8, %1, asr #5" : "=r"(r[4]) : "r"(a));
    __asm__("smmulr %0, %1, %2" : "=r"(r[5]) : "r"(a), "r"(b));
    __asm__("uadd8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(r[6]) : "r"(a), "r"(b));
    __asm__("usad8 %0, %1, %2" : "=r"(r[7]) : "r"(a), "r"(b));
    __asm__("smlald %0, %1, %2, %3" : "+r"(lo), "+r"(hi) : "r"(a), "r"(b));
    printf("dsp");
    for (int i = 0; i < 8; ++i) printf(" %08lx", (unsigned long)r[i]);
    printf(" %08lx%08lx\n", (unsigned long)hi, (unsigned long)lo);
}
