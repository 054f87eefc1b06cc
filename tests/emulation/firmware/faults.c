/* Mistakes on command: each is what a real board answers with a fault, or with silence. */
#include <stdio.h>
#include <string.h>

#include "hardware/regs/addressmap.h"
#include "hardware/sync.h"
#include "pico/platform.h"
#include "pico/stdlib.h"
#include "probe.h"

static uint64_t words[4] __attribute__((aligned(8)));

__attribute__((noinline)) static void store_to(uintptr_t address) {
    *(volatile uint32_t*)address = 1;
}

__attribute__((noinline)) static uint32_t load_from(uintptr_t address) {
    return *(volatile uint32_t*)address;
}

#define ODD ((char*)words + 2)

__attribute__((noinline)) static void unaligned_pair(void* at) {
    uint32_t a, b;
    __asm__ volatile("ldrd %0, %1, [%2]" : "=r"(a), "=r"(b) : "r"(at) : "memory");
}

__attribute__((noinline)) static void unaligned_pair_store(void* at) {
    __asm__ volatile("strd %0, %0, [%1, #8]" : : "r"(0), "r"(at) : "memory");
}

__attribute__((noinline)) static void unaligned_multiple(void* at) {
    __asm__ volatile("ldmia %0, {r1, r2, r3}" : : "r"(at) : "r1", "r2", "r3", "memory");
}

__attribute__((noinline)) static void unaligned_multiple_store(void* at) {
    __asm__ volatile("stmia %0, {r1, r2, r3}" : : "r"(at) : "memory");
}

__attribute__((noinline)) static void unaligned_float(void* at) {
    __asm__ volatile("vldr s0, [%0, #4]" : : "r"(at) : "s0", "memory");
}

__attribute__((noinline)) static void unaligned_floats(void* at) {
    __asm__ volatile("vldmia %0, {s0-s3}" : : "r"(at) : "s0", "s1", "s2", "s3", "memory");
}

__attribute__((noinline)) static void unaligned_exclusive(void* at) {
    uint32_t a;
    __asm__ volatile("ldrex %0, [%1]" : "=r"(a) : "r"(at) : "memory");
}

/* The address is computed in the same basic block, from a register that memory gives. */
__attribute__((noinline)) static void unaligned_computed(void** at, int index) {
    uint32_t a, b;
    __asm__ volatile("ldr r3, [%2]\n\tadd r3, r3, %3, lsl #2\n\tldrd %0, %1, [r3, #4]!"
                     : "=&r"(a), "=&r"(b)
                     : "r"(at), "r"(index)
                     : "r3", "memory");
}

/* Not executed: the condition of the IT block is false. Nothing may be reported. */
__attribute__((noinline)) static void skipped_pair(void* at) {
    uint32_t a = 0, b = 0;
    __asm__ volatile("cmp %2, %2\n\tit ne\n\tldrdne %0, %1, [%2]"
                     : "+r"(a), "+r"(b)
                     : "r"(at)
                     : "cc", "memory");
    printf("skipped\n");
}

void misbehave(const char* name) {
    void* odd = ODD;
    if (!strcmp(name, "load"))
        load_from(0x30000000u);
    else if (!strcmp(name, "store"))
        store_to(0x30000000u);
    else if (!strcmp(name, "flash-store"))
        store_to(XIP_BASE + 0x1000u);
    else if (!strcmp(name, "block"))
        load_from(ADC_BASE);
    else if (!strcmp(name, "execute"))
        ((void (*)(void))0x30000001u)();
    else if (!strcmp(name, "device"))
        load_from(TIMER0_BASE + 0x26u);
    else if (!strcmp(name, "ldrd"))
        unaligned_pair(odd);
    else if (!strcmp(name, "strd"))
        unaligned_pair_store(odd);
    else if (!strcmp(name, "ldm"))
        unaligned_multiple(odd);
    else if (!strcmp(name, "stm"))
        unaligned_multiple_store(odd);
    else if (!strcmp(name, "vldr"))
        unaligned_float(odd);
    else if (!strcmp(name, "vldm"))
        unaligned_floats(odd);
    else if (!strcmp(name, "ldrex"))
        unaligned_exclusive(odd);
    else if (!strcmp(name, "computed"))
        unaligned_computed(&odd, 3);
    else if (!strcmp(name, "skipped"))
        skipped_pair(odd);
    else if (!strcmp(name, "undefined"))
        __asm__ volatile("udf #7");
    else if (!strcmp(name, "panic"))
        panic("on command");
    else if (!strcmp(name, "core1"))
        store_to(SIO_BASE + 0x54u);
    else if (!strcmp(name, "loop"))
        for (;;) tight_loop_contents();
    else if (!strcmp(name, "masked-loop")) {
        save_and_disable_interrupts();
        for (;;) tight_loop_contents();
    }
}
