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
const uint32_t kReceiveInterrupt = 32;
#else
Uart* const uart = reinterpret_cast<Uart*>(0x40004000);
Timer* const timer = reinterpret_cast<Timer*>(0x40000000);
const uint32_t kTicksPerUs = 25;
const uint32_t kReceiveInterrupt = 0;
#endif

const uint32_t kTransmitFull = 1;
const uint32_t kReceiveFull = 2;  // in the state, and among the interrupts

// Registers of every Cortex-M.
volatile uint32_t* const tick_control = reinterpret_cast<uint32_t*>(0xE000E010);
volatile uint32_t* const tick_reload = reinterpret_cast<uint32_t*>(0xE000E014);
volatile uint32_t* const enable = reinterpret_cast<uint32_t*>(0xE000E100) + kReceiveInterrupt / 32;
volatile uint32_t* const unpend = reinterpret_cast<uint32_t*>(0xE000E280) + kReceiveInterrupt / 32;
volatile uint32_t* const tick_unpend = reinterpret_cast<uint32_t*>(0xE000ED04);
const uint32_t kReceiveBit = 1u << kReceiveInterrupt % 32;
const uint32_t kTickBit = 1u << 25;

const int kLooks = 100;  // for the next byte, before the core sleeps
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

bool received() {
    return uart->state & kReceiveFull;
}

// Prepares `rest`: interrupts wake the core, and are never taken.
void prepare_to_rest() {
    __asm volatile("cpsid i");
    *enable = kReceiveBit;
    *tick_reload = 1000 * kTicksPerUs - 1;
    *tick_control = 7;  // every millisecond of the core's clock
}

// Sleeps until a byte has come or a millisecond has gone by. A sketch that has nothing to do would otherwise
// execute many seconds' worth of instructions in one second of the computer's time, and lose patience with
// it.
void rest() {
    if (!received()) {
        __asm volatile("wfi" ::: "memory");
    }
    uart->interrupt = kReceiveFull;
    *unpend = kReceiveBit;
    *tick_unpend = kTickBit;
}

}  // namespace

HardwareSerial Serial;

void HardwareSerial::begin(unsigned long) {
    uart->divider = 16;
    uart->control = 3 | 8;  // transmit and receive, and an interrupt for what is received
    // QEMU looks for input again when the data register is read, and not when the receiver is switched on.
    static_cast<void>(uart->data);
}

int HardwareSerial::available() {
    for (int looks = 0; looks < kLooks && peeked < 0 && !received(); ++looks) {
    }
    if (peeked < 0 && !received()) {
        rest();
    }
    return (peeked >= 0 || received()) ? 1 : 0;
}

int HardwareSerial::read() {
    const int value = peek();
    peeked = -1;
    return value;
}

int HardwareSerial::peek() {
    if (peeked < 0 && received()) {
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
        rest();
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
    prepare_to_rest();
    setup();
    for (;;) {
        loop();
    }
}
