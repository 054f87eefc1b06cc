// A small Arduino core for virtual boards: what sketches are compiled against that run under QEMU.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Names that the cores of real boards have as macros: code that does not survive them shall not survive here.
#include "macros.h"

#include "Print.h"

typedef uint8_t byte;
typedef uint16_t word;
typedef bool boolean;

void setup();
void loop();

unsigned long millis();
unsigned long micros();
void delay(unsigned long ms);
void delayMicroseconds(unsigned int us);

// Pins keep what was written to them.
void pinMode(int pin, int mode);
void digitalWrite(int pin, int value);
int digitalRead(int pin);
int analogRead(int pin);
void analogWrite(int pin, int value);

class HardwareSerial : public Print {
  public:
    void begin(unsigned long baud);
    int available();
    int read();
    int peek();
    void flush() {}
    size_t write(uint8_t value) override;
    using Print::write;
    explicit operator bool() const { return true; }
};

extern HardwareSerial Serial;
