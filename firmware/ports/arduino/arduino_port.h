// Serial line, time and stack of an Arduino board, as the runtime needs them, and what a sketch needs
// besides.
#pragma once

#include <stdint.h>

namespace arduino_port {

// Begins to watch how deep the stack gets below this call, down to `bytes`.
void watch_stack(uint32_t bytes);

// Milliseconds since the board started.
uint32_t now_ms();

}  // namespace arduino_port
