#include <Arduino.h>

#include "arduino_port.h"
#include "port.h"
#include "stack.h"

// Where frames come and go. From release 0.55 of its core on, the `Serial` of an Uno Q is the monitor of the
// Linux side, which carries text; the pins D0 and D1, which carry bytes, are `Serial1` there, and were
// `Serial` before.
#if defined(ARDUINO_ROUTER_SERIAL)
#define FRAME_LINE Serial1
#else
#define FRAME_LINE Serial
#endif

// Where the linker scripts of some cores end the heap, or begin the stack; 0 where they have no such name.
extern "C" {
extern uint8_t __HeapLimit[] __attribute__((weak));
extern uint8_t __StackBottom[] __attribute__((weak));
}

namespace {

port::Stack watched;

// The higher of two addresses, unless the second is not below the stack pointer.
uint8_t* raised(uint8_t* low, uint8_t* limit, uint8_t* top) {
    return limit > low && limit < top ? limit : low;
}

}  // namespace

namespace arduino_port {

void watch_stack(uint32_t bytes) {
    uint8_t* top;
    __asm volatile("mov %0, sp" : "=r"(top));
    uint8_t* low = top - bytes;
    low = raised(low, __HeapLimit, top);
    low = raised(low, __StackBottom, top);
    watched.low = low;
    watched.high = top;
    if (top - low > 64) {
        stack::paint(low, top - 64);  // the call itself needs some of it
    }
}

uint32_t now_ms() {
    return static_cast<uint32_t>(millis());
}

}  // namespace arduino_port

namespace port {

void init() {
#if defined(ARDUINO_ROUTER_SERIAL)
    FRAME_LINE.begin(115200);  // a sketch begins only the other one
#endif
}

int read() {
    return FRAME_LINE.available() > 0 ? FRAME_LINE.read() : -1;
}

void write(const uint8_t* data, size_t size) {
    const uint32_t patience_ms = 1000;  // nobody may be listening on the other side of the USB
    uint32_t since = arduino_port::now_ms();
    while (size > 0) {
        const size_t count = FRAME_LINE.write(data, size);
        if (count > 0) {
            data += count;
            size -= count;
            since = arduino_port::now_ms();
        } else if (arduino_port::now_ms() - since > patience_ms) {
            return;
        }
    }
}

uint32_t ticks() {
    return static_cast<uint32_t>(micros());
}

uint32_t ticks_per_second() {
    return 1000000;
}

Stack stack() {
    return watched;
}

}  // namespace port
