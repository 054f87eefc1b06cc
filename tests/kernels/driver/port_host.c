// The host: files in the working directory, blocks from malloc so that the address sanitizer watches their
// ends.

#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKS 16

static FILE* cases;
static FILE* results;
static void* blocks[MAX_BLOCKS];
static int32_t used;

void port_read(void* destination, int32_t size) {
    if (cases == NULL) {
        cases = fopen("cases.bin", "rb");
    }
    if (cases == NULL || fread(destination, 1, (size_t)size, cases) != (size_t)size) {
        exit(2);
    }
}

void port_write(const void* source, int32_t size) {
    if (results == NULL) {
        results = fopen("results.bin", "wb");
    }
    if (results == NULL || fwrite(source, 1, (size_t)size, results) != (size_t)size) {
        exit(3);
    }
}

void* port_allocate(int32_t size) {
    if (size == 0) {
        return NULL;
    }
    void* block = malloc((size_t)size);
    if (block == NULL || used == MAX_BLOCKS) {
        exit(4);
    }
    blocks[used++] = memset(block, 0xA5, (size_t)size);
    return block;
}

int32_t port_release_all(void) {
    while (used > 0) {
        free(blocks[--used]);
    }
    return 0;
}

uint32_t port_ticks(void) {
    return 0;
}
