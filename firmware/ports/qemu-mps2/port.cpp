// Arm MPS2+ with the AN505 image: UART 0 and timer 0 of the CMSDK, through their secure addresses.
#include "port.h"

namespace port {

namespace {

struct Uart {
    volatile uint32_t data;
    volatile uint32_t state;
    volatile uint32_t control;
    volatile uint32_t interrupt;
    volatile uint32_t divider;
};

struct Timer {
    volatile uint32_t control;
    volatile uint32_t value;
    volatile uint32_t reload;
};

Uart* const uart = reinterpret_cast<Uart*>(0x50200000);
Timer* const timer = reinterpret_cast<Timer*>(0x50000000);

const uint32_t kTransmitFull = 1;
const uint32_t kReceiveFull = 2;   // in the state, and among the interrupts
const uint32_t kClock = 20000000;  // Hz, of the peripherals
const int kLooks = 100;            // for the next byte, before the core sleeps

// The receiver's interrupt, number 32: it wakes the core, and is never taken.
volatile uint32_t* const enable = reinterpret_cast<uint32_t*>(0xE000E104);
volatile uint32_t* const unpend = reinterpret_cast<uint32_t*>(0xE000E284);

bool received() {
    return uart->state & kReceiveFull;
}

}  // namespace

extern "C" {
extern uint8_t stack_low[];  // from the linker script
extern uint8_t stack_high[];
}

void init() {
    uart->divider = 16;
    uart->control = 3 | 8;  // transmit and receive, and an interrupt for what is received
    __asm volatile("cpsid i");
    *enable = 1;
    // QEMU looks for input again when the data register is read, and not when the receiver is switched on.
    static_cast<void>(uart->data);
    timer->reload = 0xFFFFFFFF;
    timer->value = 0xFFFFFFFF;
    timer->control = 1;
}

int read() {
    for (int looks = 0; looks < kLooks && !received(); ++looks) {
    }
    if (!received()) {
        __asm volatile("wfi" ::: "memory");  // the computer has better things to do than to execute this loop
        uart->interrupt = kReceiveFull;
        *unpend = 1;
    }
    return received() ? static_cast<int>(uart->data & 0xFF) : -1;
}

void write(const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        while (uart->state & kTransmitFull) {
        }
        uart->data = data[i];
    }
}

uint32_t ticks() {
    return ~timer->value;  // it counts down
}

uint32_t ticks_per_second() {
    return kClock;
}

Stack stack() {
    return {stack_low, stack_high};
}

}  // namespace port
