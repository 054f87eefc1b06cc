// Serial line, time and pins of Arm's MPS2 and MPS2+ boards, as an Arduino core offers them.
#include "Arduino.h"

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

// The image AN505 (Cortex-M33) has its peripherals elsewhere than AN386 and AN500, and slower.
#if defined(__ARM_ARCH_8M_MAIN__)
Uart* const uart = reinterpret_cast<Uart*>(0x50200000);
Timer* const timer = reinterpret_cast<Timer*>(0x50000000);
const uint32_t kTicksPerUs = 20;
#else
Uart* const uart = reinterpret_cast<Uart*>(0x40004000);
Timer* const timer = reinterpret_cast<Timer*>(0x40000000);
const uint32_t kTicksPerUs = 25;
#endif

const uint32_t kTransmitFull = 1;
const uint32_t kReceiveFull = 2;

const int kPins = 64;
int pins[kPins];
int peeked = -1;

bool is_pin(int pin) {
    return pin >= 0 && pin < kPins;
}

// Microseconds since the start. Exact as long as it is called once per turn of the timer (3 minutes).
uint64_t elapsed_us() {
    static uint32_t last;
    static uint64_t ticks;
    const uint32_t now = ~timer->value;  // it counts down
    ticks += static_cast<uint32_t>(now - last);
    last = now;
    return ticks / kTicksPerUs;
}

}  // namespace

HardwareSerial Serial;

void HardwareSerial::begin(unsigned long) {
    uart->divider = 16;
    uart->control = 3;  // transmit and receive
    // QEMU looks for input again when the data register is read, and not when the receiver is switched on.
    static_cast<void>(uart->data);
}

int HardwareSerial::available() {
    return (peeked >= 0 || (uart->state & kReceiveFull)) ? 1 : 0;
}

int HardwareSerial::read() {
    const int value = peek();
    peeked = -1;
    return value;
}

int HardwareSerial::peek() {
    if (peeked < 0 && (uart->state & kReceiveFull)) {
        peeked = static_cast<int>(uart->data & 0xFF);
    }
    return peeked;
}

size_t HardwareSerial::write(uint8_t value) {
    while (uart->state & kTransmitFull) {
    }
    uart->data = value;
    return 1;
}

unsigned long millis() {
    return static_cast<unsigned long>(elapsed_us() / 1000);
}

unsigned long micros() {
    return static_cast<unsigned long>(elapsed_us());
}

void delay(unsigned long ms) {
    const unsigned long start = millis();
    while (millis() - start < ms) {
    }
}

void delayMicroseconds(unsigned int us) {
    const unsigned long start = micros();
    while (micros() - start < us) {
    }
}

void pinMode(int, int) {}

void digitalWrite(int pin, int value) {
    if (is_pin(pin)) {
        pins[pin] = value != LOW ? HIGH : LOW;
    }
}

int digitalRead(int pin) {
    return is_pin(pin) ? pins[pin] : LOW;
}

int analogRead(int pin) {
    return is_pin(pin) ? pins[pin] : 0;
}

void analogWrite(int pin, int value) {
    if (is_pin(pin)) {
        pins[pin] = value;
    }
}

int main() {
    timer->reload = 0xFFFFFFFF;
    timer->value = 0xFFFFFFFF;
    timer->control = 1;
    setup();
    for (;;) {
        loop();
    }
}
