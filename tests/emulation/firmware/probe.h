/* What the parts of the probe firmware offer to its command loop. */
#ifndef PROBE_H
#define PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* compute.c */
uint32_t compute(uint32_t rounds);          /* integer loop of known result */
uint32_t instructions(uint32_t rounds);     /* DWT cycle counter around compute(), interrupts off */
uint32_t compute_from_ram(uint32_t rounds); /* the same loop, placed in SRAM */
void dsp(uint32_t a, uint32_t b, uint32_t c);

/* doubles.c: one operation on bit patterns; prints the result's bits */
void double_operation(const char* name, uint64_t a, uint64_t b, uint64_t c);

/* exceptions.c: whether there is such a command */
bool exception_command(const char* name);

/* faults.c */
void misbehave(const char* name);

#endif
