// Vector table and reset of a bare Cortex-M: memory is filled, the FPU switched on, the stack painted. A
// runner has no constructors to run; libraries linked to it may.
#include <stdint.h>

#include "runner.h"
#include "stack.h"

extern "C" {

extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];  // from the linker script
extern uint8_t stack_low[], stack_high[];
extern void (*const constructors_start[])();
extern void (*const constructors_end[])();

[[noreturn]] void fault() {
    for (;;) {
    }
}

[[noreturn]] void reset() {
    volatile uint32_t* const cpacr = reinterpret_cast<uint32_t*>(0xE000ED88);
    *cpacr = *cpacr | (0xFu << 20);  // full access to the FPU
    __asm volatile("dsb\n isb" ::: "memory");
    const uint32_t* from = data_load;
    for (uint32_t* to = data_start; to < data_end; ++to) {
        *to = *from++;
    }
    for (uint32_t* to = bss_start; to < bss_end; ++to) {
        *to = 0;
    }
    uint8_t* top;
    __asm volatile("mov %0, sp" : "=r"(top));
    stack::paint(stack_low, top - 64);  // the call itself needs some of it
    for (auto constructor = constructors_start; constructor < constructors_end; ++constructor) {
        (*constructor)();
    }
    runner_main();
    fault();
}

typedef void (*Vector)();

struct VectorTable {
    const void* stack;
    Vector handlers[15];
};

__attribute__((section(".vectors"), used)) const VectorTable vectors = {
    stack_high,
    {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault},
};

}  // extern "C"
