// Raspberry Pi Pico SDK: serial line on USB CDC and UART 0 at once, cycle counter as timer.
#include "port.h"

#include "hardware/clocks.h"
#include "hardware/structs/m33.h"
#include "pico/stdio.h"
#include "pico/stdio/driver.h"
#include "pico/stdio_uart.h"
#include "pico/stdio_usb.h"
#include "pico/stdlib.h"

#include "runner.h"
#include "stack.h"

// From the SDK's linker script: the stack of core 0.
extern "C" uint8_t __StackBottom[];
extern "C" uint8_t __StackTop[];

namespace port {

namespace {

// Both lines are read; answers go to the one that a request came by, or a fast USB would wait for a slow
// UART.
stdio_driver_t* const lines[] = {&stdio_usb, &stdio_uart};
stdio_driver_t* active;

char buffer[64];
int next_byte;
int end_of_bytes;

void send(stdio_driver_t* line, const uint8_t* data, size_t size) {
    line->out_chars(reinterpret_cast<const char*>(data), static_cast<int>(size));
}

}  // namespace

void init() {
    stdio_init_all();
    m33_hw->demcr = m33_hw->demcr | M33_DEMCR_TRCENA_BITS;
    m33_hw->dwt_ctrl = m33_hw->dwt_ctrl | M33_DWT_CTRL_CYCCNTENA_BITS;
}

int read() {
    if (next_byte == end_of_bytes) {
        next_byte = 0;
        end_of_bytes = 0;
        for (stdio_driver_t* line : lines) {
            const int count = line->in_chars(buffer, sizeof buffer);
            if (count > 0) {
                active = line;
                end_of_bytes = count;
                break;
            }
        }
        if (end_of_bytes == 0) {
            return -1;
        }
    }
    return static_cast<uint8_t>(buffer[next_byte++]);
}

void write(const uint8_t* data, size_t size) {
    if (active != nullptr) {
        send(active, data, size);
        return;
    }
    for (stdio_driver_t* line : lines) {
        send(line, data, size);
    }
}

uint32_t ticks() {
    return m33_hw->dwt_cyccnt;
}

uint32_t ticks_per_second() {
    return clock_get_hz(clk_sys);
}

Stack stack() {
    return {__StackBottom, __StackTop};
}

}  // namespace port

int main() {
    uint8_t* top;
    __asm volatile("mov %0, sp" : "=r"(top));
    stack::paint(__StackBottom, top - 64);  // the call itself needs some of it
    runner_main();
}
