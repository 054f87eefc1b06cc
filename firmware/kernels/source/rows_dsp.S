// void deploy_add_row_groups(const int8_t* samples, uint32_t offset, const int8_t* weights, int32_t stride,
//                            const int8_t* end, int32_t sum[4])
//
// In assembly because all 14 registers are in use and compilers spill in the innermost loop.
//
//   r0        samples
//   r1        offset
//   r2        row 0
//   r3        bytes from one row to the next
//   r4 - r7   sums
//   r8, r9    samples 0 and 2, 1 and 3
//   r10, r11  weights
//   r12       row 3
//   lr        end of the samples

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP

    .syntax unified
    .thumb

// Four weights of one row times the four samples. They are in \weights; the load that follows fills \next with those of
// the next row as soon as that register is free, so that they are there when needed.
.macro row sum, weights, next, load:vararg
    sxtb16 \next, \weights
    smlad \sum, r8, \next, \sum
    sxtb16 \weights, \weights, ror #8
    \load
    smlad \sum, r9, \weights, \sum
.endm

// 23 instructions for 16 products.
.macro group
    ldr r9, [r0], #4
    ldr r10, [r2, r3]
    sxtab16 r8, r1, r9
    sxtab16 r9, r1, r9, ror #8
    row r5, r10, r11, ldr r11, [r2, r3, lsl #1]
    row r6, r11, r10, ldr r10, [r12], #4
    row r7, r10, r11, ldr r11, [r2], #4
    row r4, r11, r10
.endm

    .text
    .balign 4
    .global deploy_add_row_groups
    .type deploy_add_row_groups, %function
    .thumb_func
deploy_add_row_groups:
    push {r4-r11, lr}
    ldrd lr, r8, [sp, #36]
    ldm r8, {r4-r7}
    add r12, r3, r3, lsl #1
    add r12, r12, r2
    sub r8, lr, r0
    tst r8, #4
    bne .Lodd
.Lround:  // two groups; an odd number of them starts with the second
    group
.Lodd:
    group
    cmp r0, lr
    bne .Lround
    ldr r8, [sp, #40]
    stm r8, {r4-r7}
    pop {r4-r11, pc}
    .size deploy_add_row_groups, . - deploy_add_row_groups

#endif

#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
