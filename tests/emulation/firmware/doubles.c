/* Double-precision operations, as the SDK does them with the double coprocessor. Operands and results are
 * bits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hardware/sync.h"
#include "pico/stdlib.h"
#include "probe.h"

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void print_bits(uint64_t bits) {
    printf("d %016llx\n", (unsigned long long)bits);
}

static uint32_t single_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Volatile operands keep the compiler from doing the arithmetic itself. */
static uint64_t result_bits(const char* name, volatile double a, volatile double b, volatile double c,
                            uint64_t raw) {
    if (!strcmp(name, "add")) return to_bits(a + b);
    if (!strcmp(name, "sub")) return to_bits(a - b);
    if (!strcmp(name, "mul")) return to_bits(a * b);
    if (!strcmp(name, "div")) return to_bits(a / b);
    if (!strcmp(name, "sqrt")) return to_bits(sqrt(a));
    if (!strcmp(name, "fma")) return to_bits(fma(a, b, c));
    if (!strcmp(name, "lt")) return a < b;
    if (!strcmp(name, "le")) return a <= b;
    if (!strcmp(name, "eq")) return a == b;
    if (!strcmp(name, "to_int")) return (uint32_t)(int32_t)a;
    if (!strcmp(name, "to_uint")) return (uint32_t)a;
    if (!strcmp(name, "to_int64")) return (uint64_t)(int64_t)a;
    if (!strcmp(name, "to_float")) return single_bits((float)a);
    if (!strcmp(name, "from_int")) return to_bits((double)(int32_t)raw);
    if (!strcmp(name, "from_uint")) return to_bits((double)(uint32_t)raw);
    if (!strcmp(name, "from_int64")) return to_bits((double)(int64_t)raw);
    return UINT64_C(0xdeadbeefdeadbeef);
}

/* A timer interrupt that does doubles too, so that the coprocessor's state is saved and restored in the
 * middle. */
static volatile double disturbance = 1.5;

static bool disturb(repeating_timer_t* timer) {
    (void)timer;
    disturbance = sqrt(disturbance * 3.7 + 1.0 / disturbance);
    return true;
}

static void interrupted(void) {
    repeating_timer_t timer;
    add_repeating_timer_us(-20, disturb, NULL, &timer);
    volatile double sum = 0.0, term = 1.0;
    for (int i = 1; i < 700; ++i) {
        term = sqrt(term * 1.0000001) + 1.0 / (double)i;
        sum = sum + term * 0.5;
    }
    cancel_repeating_timer(&timer);
    print_bits(to_bits(sum));
}

void double_operation(const char* name, uint64_t a, uint64_t b, uint64_t c) {
    if (!strcmp(name, "interrupted")) {
        interrupted();
        return;
    }
    print_bits(result_bits(name, from_bits(a), from_bits(b), from_bits(c), a));
}
