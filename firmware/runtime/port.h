// What the runtime needs of a board. One folder of ports/ implements it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace port {

// Bytes of memory set aside for the stack: from `low` (where it would overflow) up to `high` (where it
// starts).
struct Stack {
    uint8_t* low;
    uint8_t* high;
};

// Serial line and timer are ready afterwards.
void init();

// The next byte that arrived on the serial line, or -1 when there is none.
int read();

// Writes all bytes to the serial line; may wait.
void write(const uint8_t* data, size_t size);

// A free-running counter that counts up and wraps at 2^32, and how fast it counts.
uint32_t ticks();
uint32_t ticks_per_second();

Stack stack();

}  // namespace port
