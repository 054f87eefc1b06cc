// Vector table and reset of a bare Cortex-M: memory is filled, the FPU switched on, constructors run.
#include <stdint.h>

extern "C" {

// From the linker script.
extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[];
extern uint8_t stack_high[];
typedef void (*Function)();
extern const Function init_start[], init_end[];

int main();

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
    for (const Function* function = init_start; function < init_end; ++function) {
        (*function)();
    }
    main();
    fault();
}

struct VectorTable {
    const void* stack;
    Function handlers[15];
};

__attribute__((section(".vectors"), used)) extern const VectorTable vectors = {
    stack_high,
    {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault},
};

}  // extern "C"
