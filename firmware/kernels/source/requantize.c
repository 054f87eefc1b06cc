#include "requantize.h"

output_stage make_output_stage(const int32_t* multipliers, const int32_t* shifts, int32_t stride,
                               int32_t channels, int32_t offset, const int32_t* bias, int32_t terms,
                               int32_t min, int32_t max) {
    bool fast = terms < (1 << 14) && min >= -128 && max <= 127;
    for (int32_t i = 0; i < (stride == 0 ? 1 : channels); i++) {
        fast &= shifts[i] <= -1 && shifts[i] >= -22 && multipliers[i] >= 0;
    }
    // Half of the 2^30 is left to the products, half to the bias: its top three bits are alike.
    int32_t bits = 0;
    for (int32_t i = 0; bias != NULL && i < channels; i++) {
        bits |= bias[i] ^ (bias[i] >> 31);
    }
    fast &= bits < (1 << 29);
    const output_stage stage = {multipliers, shifts, stride, offset, min, max, fast};
    return stage;
}

int32_t finish_exact(const output_stage* stage, int32_t channel, int32_t accumulator) {
    const int32_t index = channel * stage->stride;
    int32_t value = requantize(accumulator, stage->multipliers[index], stage->shifts[index]);
    value = (int32_t)((uint32_t)value + (uint32_t)stage->offset);
    value = value < stage->min ? stage->min : value;
    return value > stage->max ? stage->max : value;
}

void clamp_output(const output_stage* stage, int8_t* output, int32_t count) {
    if (!stage->fast || (stage->min == -128 && stage->max == 127)) {
        return;
    }
    const uint32_t min = four_times8(stage->min);
    const uint32_t max = four_times8(stage->max);
    for (; count >= 4; count -= 4, output += 4) {
        store4(output, min8(max8(load4(output), min), max));
    }
    for (; count > 0; count--, output++) {
        const int32_t value = *output < stage->min ? stage->min : *output;
        *output = (int8_t)(value > stage->max ? stage->max : value);
    }
}
