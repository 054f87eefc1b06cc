#include "columns_dsp.h"

#if DEPLOY_DSP

#include <stddef.h>

// Everything the loop below needs besides its 14 registers, which are all in use.
typedef struct {
    const int8_t* row;          // 0: the next pair of filter rows
    int32_t depth;              // 4
    const uint32_t* columns;    // 8
    const uint32_t* end;        // 12: of the whole groups
    int32_t entry;              // 16: where the first round enters the loop, see run
    int32_t tail;               // 20: samples in the last, incomplete group
    int32_t tail_shift;         // 24: bits its weights are shifted right
    const int32_t* bias;        // 28: or NULL
    const int32_t* multiplier;  // 32
    const int32_t* shift;       // 36
    int32_t rounding;           // 40: 2 * output offset + 1
    int8_t* first;              // 44
    int8_t* second;             // 48
    const int8_t* last;         // 52: where `first` stops
} state;

_Static_assert(offsetof(state, last) == 52 && sizeof(void*) == 4, "the offsets are in the assembly");

// One group of four weights of two rows times two columns: 16 products. r1, r2 rows; r3 columns; r4 to r7
// sums (row 0 with columns 0 and 1, row 1 with columns 0 and 1). PRODUCTS takes the weights in r8 and r9.
#define PRODUCTS                  \
    "ldrd r10, r11, [r3], #8\n\t" \
    "sxtb16 lr, r8\n\t"           \
    "smlad r4, lr, r10, r4\n\t"   \
    "smlad r5, lr, r11, r5\n\t"   \
    "sxtb16 lr, r9\n\t"           \
    "smlad r6, lr, r10, r6\n\t"   \
    "smlad r7, lr, r11, r7\n\t"   \
    "ldrd r10, r11, [r3], #8\n\t" \
    "sxtb16 r8, r8, ror #8\n\t"   \
    "sxtb16 r9, r9, ror #8\n\t"   \
    "smlad r4, r8, r10, r4\n\t"   \
    "smlad r5, r8, r11, r5\n\t"   \
    "smlad r6, r9, r10, r6\n\t"   \
    "smlad r7, r9, r11, r7\n\t"

#define GROUP              \
    "ldr r8, [r1], #4\n\t" \
    "ldr r9, [r2], #4\n\t" PRODUCTS

// finish_fast for one sum. multiplier, rounding and right shift in registers; lr is used.
#define FINISH(sum, multiplier, rounding, right) \
    "lsl lr, " sum                               \
    ", #1\n\t"                                   \
    "smmlar lr, lr, " multiplier ", " rounding   \
    "\n\t"                                       \
    "add lr, lr, " sum                           \
    ", asr #31\n\t"                              \
    "asr lr, lr, " right                         \
    "\n\t"                                       \
    "ssat " sum ", #8, lr\n\t"

// By hand, because compilers run out of registers here and spill in the innermost loop.
__attribute__((naked, noinline)) static void run(__attribute__((unused)) state* s) {
    __asm__(
        "push {r4-r11, lr}\n\t"
        // An address in the loop is its start plus 64 bytes for every group left out: all 16 instructions of GROUP take 4
        // bytes. Bit 0 says Thumb.
        "ldr r8, [r0, #16]\n\t"
        "adr.w r9, 3f\n\t"
        "add r8, r8, r9\n\t"
        "orr r8, r8, #1\n\t"
        "str r8, [r0, #16]\n\t"
        "ldr r1, [r0, #0]\n"
        "1:\n\t"  // a pair of rows
        "ldr r2, [r0, #4]\n\t"
        "ldr r7, [r0, #28]\n\t"
        "add r2, r2, r1\n\t"
        "mov r4, #0\n\t"
        "mov r6, #0\n\t"
        "cbz r7, 2f\n\t"
        "ldrd r4, r6, [r7], #8\n\t"
        "str r7, [r0, #28]\n"
        "2:\n\t"
        "mov r5, r4\n\t"
        "mov r7, r6\n\t"
        "ldrd r3, r12, [r0, #8]\n\t"
        "ldr r8, [r0, #16]\n\t"
        "bx r8\n\t"
        ".balign 4\n"  // adr counts from a multiple of 4
        "3:\n\t"  // four groups a round; the first round may start further down
        GROUP GROUP GROUP GROUP
        "cmp r3, r12\n\t"
        "bne.w 3b\n\t"
        "ldr r8, [r0, #20]\n\t"
        "cmp r8, #0\n\t"
        "beq 5f\n\t"  // the incomplete group: the rows' last four weights, without those done already
        "add r1, r1, r8\n\t"
        "add r2, r2, r8\n\t"
        "ldr lr, [r0, #24]\n\t"
        "ldr r8, [r1, #-4]\n\t"
        "ldr r9, [r2, #-4]\n\t"
        "lsr r8, r8, lr\n\t"
        "lsr r9, r9, lr\n\t"
        PRODUCTS
        "5:\n\t"
        "ldrd r3, r12, [r0, #32]\n\t"
        "ldrd r8, r9, [r3], #8\n\t"     // multipliers
        "ldrd r10, r11, [r12], #8\n\t"  // shifts
        "ldr lr, [r0, #40]\n\t"
        "strd r3, r12, [r0, #32]\n\t"
        "mvn r3, r10\n\t"
        "mvn r12, r11\n\t"
        "lsl r3, lr, r3\n\t"  // roundings
        "lsl r12, lr, r12\n\t"
        "rsb r10, r10, #0\n\t"  // right shifts
        "rsb r11, r11, #0\n\t"
        FINISH("r4", "r8", "r3", "r10")
        FINISH("r5", "r8", "r3", "r10")
        FINISH("r6", "r9", "r12", "r11")
        FINISH("r7", "r9", "r12", "r11")
        "ldrd r8, r9, [r0, #44]\n\t"
        "bfi r4, r6, #8, #8\n\t"
        "bfi r5, r7, #8, #8\n\t"
        "ldr r10, [r0, #52]\n\t"
        "strh r5, [r9], #2\n\t"
        "strh r4, [r8], #2\n\t"
        "strd r8, r9, [r0, #44]\n\t"
        "mov r1, r2\n\t"  // rows follow each other
        "cmp r8, r10\n\t"
        "bne 1b\n\t"
        "pop {r4-r11, pc}");
}

void multiply_row_pairs_dsp(const multiplication* m, const uint32_t* columns, int32_t first_channel,
                            int32_t pairs, int8_t* first, int8_t* second) {
    const int32_t groups = m->depth >> 2;
    const int32_t tail = m->depth & 3;
    state s = {m->filter + first_channel * m->depth,
               m->depth,
               columns,
               columns + 4 * groups,
               64 * (-groups & 3),
               tail,
               32 - 8 * tail,
               m->bias != NULL ? m->bias + first_channel : NULL,
               m->stage->multipliers + first_channel,
               m->stage->shifts + first_channel,
               2 * m->stage->offset + 1,
               first,
               second,
               first + 2 * pairs};
    run(&s);
}

#endif
