// This library's functions where it stands beside Arm's CMSIS-NN: the same types, with deploy_ before the
// name. They compute the layers for which that library is not right.

#ifndef DEPLOY_ARM_NNFUNCTIONS_H
#define DEPLOY_ARM_NNFUNCTIONS_H

#include "arm_nnfunctions.h"

#ifdef __cplusplus
extern "C" {
#endif

extern __typeof__(arm_avgpool_s8) deploy_arm_avgpool_s8;
extern __typeof__(arm_batch_matmul_s8) deploy_arm_batch_matmul_s8;
extern __typeof__(arm_convolve_wrapper_s8) deploy_arm_convolve_wrapper_s8;
extern __typeof__(arm_depthwise_conv_wrapper_s8) deploy_arm_depthwise_conv_wrapper_s8;
extern __typeof__(arm_elementwise_add_s8) deploy_arm_elementwise_add_s8;
extern __typeof__(arm_elementwise_mul_s8) deploy_arm_elementwise_mul_s8;
extern __typeof__(arm_fully_connected_per_channel_s8) deploy_arm_fully_connected_per_channel_s8;
extern __typeof__(arm_fully_connected_s8) deploy_arm_fully_connected_s8;
extern __typeof__(arm_max_pool_s8) deploy_arm_max_pool_s8;
extern __typeof__(arm_maximum_s8) deploy_arm_maximum_s8;
extern __typeof__(arm_minimum_s8) deploy_arm_minimum_s8;
extern __typeof__(arm_pad_s8) deploy_arm_pad_s8;
extern __typeof__(arm_softmax_s8) deploy_arm_softmax_s8;
extern __typeof__(arm_transpose_conv_wrapper_s8) deploy_arm_transpose_conv_wrapper_s8;
extern __typeof__(arm_transpose_s8) deploy_arm_transpose_s8;

#ifdef __cplusplus
}
#endif

#endif
