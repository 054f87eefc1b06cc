// The inner loop of multiply_columns for cores with the DSP extension; columns_dsp.S.

#ifndef DEPLOY_COLUMNS_DSP_H
#define DEPLOY_COLUMNS_DSP_H

#include "columns.h"

#if DEPLOY_DSP

// The loop's work and its progress. It changes the fields as it goes.
typedef struct {
    const int8_t* row;        // the first of the next two filter rows
    int32_t depth;            // at least 4
    const uint32_t* columns;  // the pair of columns
    const uint32_t* end;      // of their whole groups
    int32_t left_out;     // groups left out of the first round of four: so many that the rest is whole rounds
    int32_t tail;         // samples in the last, incomplete group
    int32_t tail_shift;   // bits the last weights are shifted right, 32 - 8 * tail
    const int32_t* bias;  // of the next row, or NULL
    const int32_t* multiplier;  // of the next row
    const int32_t* shift;
    int32_t rounding;  // 2 * output offset + 1
    int8_t* first;     // where the next two results go
    int8_t* second;
    const int8_t* last;  // where `first` stops
} row_pairs;

// At least one pair of rows. The stage is fast.
void deploy_multiply_row_pairs(row_pairs* work);

#endif

#endif
