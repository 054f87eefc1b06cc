// Text output, as sketches know it.
#pragma once

#include <stddef.h>
#include <stdint.h>

class Print {
  public:
    virtual size_t write(uint8_t value) = 0;
    size_t write(const uint8_t* data, size_t size);
    size_t write(const char* text);
    size_t write(const char* data, size_t size) {
        return write(reinterpret_cast<const uint8_t*>(data), size);
    }

    size_t print(const char* text) { return write(text); }
    size_t print(char value) { return write(static_cast<uint8_t>(value)); }
    size_t print(unsigned char value, int base = 10) { return print_unsigned(value, base); }
    size_t print(int value, int base = 10) { return print_signed(value, base); }
    size_t print(unsigned int value, int base = 10) { return print_unsigned(value, base); }
    size_t print(long value, int base = 10) { return print_signed(value, base); }
    size_t print(unsigned long value, int base = 10) { return print_unsigned(value, base); }
    size_t print(double value, int digits = 2);

    size_t println() { return write("\r\n"); }
    template <typename T>
    size_t println(T value) {
        const size_t count = print(value);
        return count + println();
    }
    template <typename T>
    size_t println(T value, int format) {
        const size_t count = print(value, format);
        return count + println();
    }

  private:
    size_t print_signed(long value, int base);
    size_t print_unsigned(unsigned long value, int base);
};
