#include <Arduino.h>

#include "arduino_port.h"
#include "port.h"
#include "stack.h"

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

void init() {}

int read() {
    return Serial.available() > 0 ? Serial.read() : -1;
}

void write(const uint8_t* data, size_t size) {
    const uint32_t patience_ms = 1000;  // nobody may be listening on the other side of the USB
    uint32_t since = arduino_port::now_ms();
    while (size > 0) {
        const size_t count = Serial.write(data, size);
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
