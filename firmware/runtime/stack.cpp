#include "stack.h"

namespace stack {

namespace {
const uint8_t kPaint = 0xC5;
}

#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address))
#endif
void paint(uint8_t* low, uint8_t* end) {
    for (volatile uint8_t* byte = low; byte < end; ++byte) {
        *byte = kPaint;
    }
}

#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address))
#endif
uint32_t high_water(const port::Stack& stack) {
    const volatile uint8_t* byte = stack.low;
    while (byte < stack.high && *byte == kPaint) {
        ++byte;
    }
    return static_cast<uint32_t>(stack.high - byte);
}

}  // namespace stack
