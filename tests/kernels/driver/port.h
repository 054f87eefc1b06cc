// What the driver needs from the machine it runs on.

#ifndef PORT_H
#define PORT_H

#include <stdint.h>

// The next `size` bytes of the file of cases; exits when it is shorter.
void port_read(void* destination, int32_t size);
// Appends to the file of results.
void port_write(const void* source, int32_t size);

// A block of exactly `size` bytes whose surroundings are watched; NULL for size 0. Filled with 0xA5.
void* port_allocate(int32_t size);
// Frees every block; returns how many were written outside their bounds (the host aborts at the first
// instead).
int32_t port_release_all(void);

// Free-running counter, in ticks of the machine's timer; 0 where there is none.
uint32_t port_ticks(void);

#endif
