// void deploy_multiply_row_pairs(row_pairs* work)
//
// In assembly because all 14 registers are in use and compilers spill in the innermost loop.
//
//   r0        work
//   r1, r2    the two filter rows
//   r3        columns
//   r4 - r7   sums: first row with columns 0 and 1, second row with columns 0 and 1
//   r8 - r11  weights and samples
//   r12       end of the columns' whole groups
//   lr        anything

#if defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP

    .syntax unified
    .thumb

    // Fields of row_pairs.
    .equ ROW, 0
    .equ DEPTH, 4
    .equ COLUMNS, 8  // and the end after it
    .equ LEFT_OUT, 16
    .equ TAIL, 20
    .equ TAIL_SHIFT, 24
    .equ BIAS, 28
    .equ MULTIPLIER, 32  // and the shift after it
    .equ ROUNDING, 40
    .equ FIRST, 44  // and the second after it
    .equ LAST, 52

// Four weights of each row, in r8 and r9, times four samples of each column.
.macro products
    ldrd r10, r11, [r3], #8
    sxtb16 lr, r8
    smlad r4, lr, r10, r4
    smlad r5, lr, r11, r5
    sxtb16 lr, r9
    smlad r6, lr, r10, r6
    smlad r7, lr, r11, r7
    ldrd r10, r11, [r3], #8
    sxtb16 r8, r8, ror #8
    sxtb16 r9, r9, ror #8
    smlad r4, r8, r10, r4
    smlad r5, r8, r11, r5
    smlad r6, r9, r10, r6
    smlad r7, r9, r11, r7
.endm

// 16 instructions of 4 bytes each for 16 products.
.macro group
    ldr r8, [r1], #4
    ldr r9, [r2], #4
    products
.endm
    .equ GROUP_SIZE_LOG2, 6

// finish_fast for one sum.
.macro finish sum, multiplier, rounding, right
    lsl lr, \sum, #1
    smmlar lr, lr, \multiplier, \rounding
    add lr, lr, \sum, asr #31
    asr lr, lr, \right
    ssat \sum, #8, lr
.endm

    .text
    .balign 4
    .global deploy_multiply_row_pairs
    .type deploy_multiply_row_pairs, %function
    .thumb_func
deploy_multiply_row_pairs:
    push {r4-r11, lr}
    // Where the first round starts, in place of the number of groups it leaves out. Bit 0 says Thumb.
    ldr r8, [r0, #LEFT_OUT]
    adr.w r9, .Lround
    add r8, r9, r8, lsl #GROUP_SIZE_LOG2
    orr r8, r8, #1
    str r8, [r0, #LEFT_OUT]
    ldr r1, [r0, #ROW]

.Lpair:
    ldr r2, [r0, #DEPTH]
    ldr r7, [r0, #BIAS]
    add r2, r2, r1
    mov r4, #0
    mov r6, #0
    cbz r7, .Lno_bias
    ldrd r4, r6, [r7], #8
    str r7, [r0, #BIAS]
.Lno_bias:
    mov r5, r4
    mov r7, r6
    ldrd r3, r12, [r0, #COLUMNS]
    ldr r8, [r0, #LEFT_OUT]
    bx r8

    .balign 4  // adr counts from a multiple of 4
.Lround:
    group
    group
    group
    group
    cmp r3, r12
    bne.w .Lround

    // The incomplete group: the last four weights of the rows, without those that are done.
    ldr r8, [r0, #TAIL]
    cmp r8, #0
    beq .Lno_tail
    add r1, r1, r8
    add r2, r2, r8
    ldr lr, [r0, #TAIL_SHIFT]
    ldr r8, [r1, #-4]
    ldr r9, [r2, #-4]
    lsr r8, r8, lr
    lsr r9, r9, lr
    products
.Lno_tail:

    ldrd r3, r12, [r0, #MULTIPLIER]
    ldrd r8, r9, [r3], #8     // multipliers
    ldrd r10, r11, [r12], #8  // shifts
    ldr lr, [r0, #ROUNDING]
    strd r3, r12, [r0, #MULTIPLIER]
    mvn r3, r10
    mvn r12, r11
    lsl r3, lr, r3  // roundings
    lsl r12, lr, r12
    rsb r10, r10, #0  // right shifts
    rsb r11, r11, #0
    finish r4, r8, r3, r10
    finish r5, r8, r3, r10
    finish r6, r9, r12, r11
    finish r7, r9, r12, r11

    ldrd r8, r9, [r0, #FIRST]
    bfi r4, r6, #8, #8
    bfi r5, r7, #8, #8
    ldr r10, [r0, #LAST]
    strh r5, [r9], #2  // second before first: they may be the same place
    strh r4, [r8], #2
    strd r8, r9, [r0, #FIRST]
    mov r1, r2  // rows follow each other
    cmp r8, r10
    bne .Lpair
    pop {r4-r11, pc}
    .size deploy_multiply_row_pairs, . - deploy_multiply_row_pairs

#endif

#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
