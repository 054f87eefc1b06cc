// QEMU's mps2-an505 (Cortex-M33) and mps2-an385 (Cortex-M3): start-up, semihosting files, guarded blocks,
// timer.

#include "port.h"

#include <stddef.h>
#include <string.h>

#define GUARD 16  // bytes on each side of a block
#define MAX_BLOCKS 16
#define CPACR (*(volatile uint32_t*)0xE000ED88u)

#define TIMER ((volatile uint32_t*)MPS2_TIMER)  // CMSDK timer 0

extern uint32_t stack_top[], bss_start[], bss_end[], heap_start[], heap_end[];
int main(void);

static int32_t semihost(int32_t operation, void* argument) {
    register int32_t r0 __asm__("r0") = operation;
    register void* r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void leave(uint32_t code) {
    uint32_t exit_extended[2] = {0x20026, code};
    semihost(0x20, exit_extended);
    for (;;) {
    }
}

static int32_t open_file(const char* name, uint32_t length, uint32_t mode) {
    uint32_t block[3] = {(uint32_t)name, mode, length};
    const int32_t file = semihost(0x01, block);
    if (file < 0) {
        leave(2);
    }
    return file;
}

static void transfer(int32_t operation, int32_t file, void* data, int32_t size) {
    uint32_t block[3] = {(uint32_t)file, (uint32_t)data, (uint32_t)size};
    if (size > 0 && semihost(operation, block) != 0) {
        leave(3);
    }
}

void port_read(void* destination, int32_t size) {
    static int32_t file = -1;
    if (file < 0) {
        file = open_file("cases.bin", 9, 1);
    }
    transfer(0x06, file, destination, size);
}

void port_write(const void* source, int32_t size) {
    static int32_t file = -1;
    if (file < 0) {
        file = open_file("results.bin", 11, 5);
    }
    transfer(0x05, file, (void*)source, size);
}

static struct {
    uint8_t* start;
    int32_t size;
} blocks[MAX_BLOCKS];
static int32_t used;
static uint8_t* next_free;

void* port_allocate(int32_t size) {
    if (size == 0) {
        return NULL;
    }
    uint8_t* start = (used == 0 ? (uint8_t*)heap_start : next_free) + GUARD;
    next_free = start + ((size + 3) & ~3) + GUARD;
    if (used == MAX_BLOCKS || next_free > (uint8_t*)heap_end) {
        leave(4);
    }
    memset(start - GUARD, 0xA5, (size_t)(next_free - start + GUARD));
    blocks[used].start = start;
    blocks[used].size = size;
    used++;
    return start;
}

int32_t port_release_all(void) {
    int32_t broken = 0;
    for (; used > 0; used--) {
        const uint8_t* start = blocks[used - 1].start;
        const int32_t size = blocks[used - 1].size;
        int32_t wrong = 0;
        for (int32_t i = 1; i <= GUARD; i++) {
            wrong |= start[-i] != 0xA5 || start[size + i - 1] != 0xA5;
        }
        broken += wrong;
    }
    return broken;
}

uint32_t port_ticks(void) {
    return ~TIMER[1];
}

static void fault(void) {
    leave(99);
}

void reset(void);

void reset(void) {
#ifdef __ARM_FP
    CPACR |= 0xFu << 20;
    __asm__ volatile("dsb\n\tisb");
#endif
    memset(bss_start, 0, (size_t)((uint8_t*)bss_end - (uint8_t*)bss_start));
    TIMER[2] = 0xFFFFFFFFu;
    TIMER[0] = 1;
    leave((uint32_t)main());
}

typedef struct {
    uint32_t* stack;
    void (*handlers[15])(void);
} vector_table;

__attribute__((section(".vectors"), used)) static const vector_table vectors = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault,
     fault}};
