// The inner loop of multiply_columns for cores with the DSP extension.

#ifndef DEPLOY_COLUMNS_DSP_H
#define DEPLOY_COLUMNS_DSP_H

#include "columns.h"

#if DEPLOY_DSP

// `pairs` pairs of filter rows from first_channel on, at least one. The stage is fast and depth at least 4.
void multiply_row_pairs_dsp(const multiplication* m, const uint32_t* columns, int32_t first_channel,
                            int32_t pairs, int8_t* first, int8_t* second);

#endif

#endif
