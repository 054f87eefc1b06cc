// The two functions softmax is made of, in fixed point.

#ifndef DEPLOY_EXPONENTIAL_H
#define DEPLOY_EXPONENTIAL_H

#include <stdint.h>

// exp(z) in Q0.31 for z <= 0 in Q5.26.
int32_t exp_of_negative(int32_t z);

// 1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31.
int32_t one_over_one_plus(int32_t a);

#endif
