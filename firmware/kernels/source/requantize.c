#include "requantize.h"

output_stage make_output_stage(const int32_t* multipliers, const int32_t* shifts, int32_t stride,
                               int32_t channels, int32_t offset, const int32_t* bias, int32_t terms,
                               int32_t min, int32_t max) {
    const output_stage stage = {multipliers, shifts,           stride,           offset, min,
                                max,         four_times8(min), four_times8(max), false};
    // Half of the 2^30 is left to the products, half to the bias.
    bool fast = terms < (1 << 14);
    for (int32_t channel = 0; channel < channels; channel++) {
        const int32_t shift = shifts[channel * stride];
        fast &= shift <= -1 && shift >= -22 && multipliers[channel * stride] >= 0;
        if (bias != NULL) {
            fast &= bias[channel] < (1 << 29) && bias[channel] > -(1 << 29);
        }
    }
    output_stage result = stage;
    result.fast = fast;
    return result;
}

int32_t finish_exact(const output_stage* stage, int32_t channel, int32_t accumulator) {
    const int32_t index = channel * stage->stride;
    int32_t value = requantize(accumulator, stage->multipliers[index], stage->shifts[index]);
    value = (int32_t)((uint32_t)value + (uint32_t)stage->offset);
    value = value < stage->min ? stage->min : value;
    return value > stage->max ? stage->max : value;
}
