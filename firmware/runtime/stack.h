// How much stack a program has used: the stack is painted before it starts, and what is still painted was
// never used.
#pragma once

#include <stdint.h>

#include "port.h"

namespace stack {

// Paints from `low` up to `end`.
void paint(uint8_t* low, uint8_t* end);

// Bytes between the deepest byte that was ever written and the stack's start.
uint32_t high_water(const port::Stack& stack);

}  // namespace stack
