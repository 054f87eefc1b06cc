// The folder's headers stand beside Arm's arm_nnfunctions.h; ours of that name must not be found before it.
#include "../include/deploy_kernels.h"
