#include "Print.h"

#include <string.h>

size_t Print::write(const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        write(data[i]);
    }
    return size;
}

size_t Print::write(const char* text) {
    return write(text, strlen(text));
}

size_t Print::print_signed(long value, int base) {
    if (value >= 0) {
        return print_unsigned(static_cast<unsigned long>(value), base);
    }
    return write("-") + print_unsigned(0UL - static_cast<unsigned long>(value), base);
}

size_t Print::print_unsigned(unsigned long value, int base) {
    const unsigned long radix = base < 2 || base > 16 ? 10 : static_cast<unsigned long>(base);
    char text[33];
    size_t first = sizeof text;
    do {
        text[--first] = "0123456789ABCDEF"[value % radix];
        value /= radix;
    } while (value != 0);
    return write(text + first, sizeof text - first);
}

size_t Print::print(double value, int digits) {
    if (value != value) {
        return write("nan");
    }
    size_t count = 0;
    if (value < 0) {
        count += write("-");
        value = -value;
    }
    double half = 0.5;
    for (int i = 0; i < digits; ++i) {
        half /= 10;
    }
    value += half;
    if (value > 4294967040.0) {
        return count + write("ovf");
    }
    const unsigned long whole = static_cast<unsigned long>(value);
    count += print_unsigned(whole, 10);
    if (digits > 0) {
        count += write(".");
    }
    double rest = value - static_cast<double>(whole);
    for (int i = 0; i < digits; ++i) {
        rest *= 10;
        const int digit = static_cast<int>(rest);
        count += print_unsigned(static_cast<unsigned long>(digit), 10);
        rest -= digit;
    }
    return count;
}
