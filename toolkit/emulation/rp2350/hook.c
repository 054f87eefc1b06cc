/*
 * The part of the virtual Pico 2 that runs at every basic block and at every access to a device.
 *
 * Python owns every decision; this file repeats the cheap ones, so that they cost nanoseconds: it counts the
 * instructions of a block that Python has decoded before, checks the addresses that Python found worth
 * checking, stops the CPU at a deadline, and answers reads of registers whose value Python keeps up to date.
 * hook.py holds the same in Python and describes the structures.
 */
#include <stdint.h>
#include <string.h>

enum { RUNNING, DEADLINE, UNMASKED, UNKNOWN, MISALIGNED, DEVICE, FAULT, RECURRED };
enum { ASK, VALUE, TIME_LOW, TIME_HIGH, COUNT, POLL };
enum { ALWAYS = 14, NO_BASE = 255 };
enum {
    CORE_REGISTERS = 15,
    PRIMASK = 15,
    BASEPRI = 16,
    FAULTMASK = 17,
    NZCV = 18,
    REGISTERS = 19,
    DOUBLES = 16
};

typedef struct {
    uint32_t weights; /* two bits for each of r0..r14: how often it counts in the address, modulo 4 */
    uint32_t offset;
    uint8_t mask;      /* low address bits that must be zero */
    uint8_t device;    /* matters only where base + offset is device memory */
    uint8_t base;      /* register that gives the address but for `offset`; NO_BASE where none does */
    uint8_t condition; /* of the IT block, ALWAYS outside */
} check_t;

typedef struct {
    uint32_t address, size, count, flags;
    uint32_t first_check, checks;
    uint32_t copy; /* offset of the code's copy, for code in RAM; 0 for code that cannot change */
    uint32_t spare;
} record_t;

typedef struct {
    uint64_t count, deadline, skipped, last_poll;
    uint32_t stop, watch, priority, block, size, record, culprit, pardon, pardon_site, cycles_per_us;
    uint32_t wake; /* set by another thread: look at the desk */
    uint32_t probe, probes, spare;
    const uint8_t* sram;
    uint32_t *rom_index, *flash_index, *sram_index;
    const record_t* records;
    const check_t* checks;
    const uint8_t* copies;
    int (*uc_stop)(void*);
    int (*uc_read)(void*, int, void*);
    uint32_t (*decode)(uint32_t, uint32_t); /* gives the record's number, 0 to stop */
    int32_t ids[REGISTERS], double_ids[DOUBLES];
    uint32_t seen[REGISTERS]; /* the registers when the probe was set */
    uint64_t seen_doubles[DOUBLES];
} state_t;

typedef struct {
    state_t* state;
    uint32_t* values;
    const uint8_t* how;      /* per word: who answers a read */
    const uint8_t* storable; /* per word: a write is only a store, aliases and side effects aside */
    uint32_t (*read)(uint32_t, uint32_t);
    void (*write)(uint32_t, uint32_t, uint32_t);
    uint64_t polls;
} region_t;

#define ROM_BYTES 0x8000u
#define FLASH_BYTES 0x400000u
#define SRAM_BASE 0x20000000u
#define SRAM_BYTES 0x82000u
#define FLAG_DEVICE 1u
#define NO_BLOCK 1u /* no block begins at an odd address */
#define MAX_PROBES 64u
#define POLL_WINDOW 100u

static uint32_t get(void* uc, const state_t* state, int which) {
    uint32_t value = 0;
    state->uc_read(uc, state->ids[which], &value);
    return value;
}

static void stop(void* uc, state_t* state, uint32_t why) {
    state->stop = why;
    state->uc_stop(uc);
}

static uint32_t* slot(const state_t* state, uint32_t address) {
    uint32_t offset = address & 0x3fffffffu;
    if (address - SRAM_BASE < SRAM_BYTES) return &state->sram_index[(address - SRAM_BASE) >> 1];
    if (address >> 28 == 1 && (offset & 0x03ffffffu) < FLASH_BYTES)
        return &state->flash_index[(offset & (FLASH_BYTES - 1)) >> 1];
    if (address < ROM_BYTES) return &state->rom_index[address >> 1];
    return 0;
}

/* Whether a record is of this very block, the bytes of code in RAM included. */
static int valid(const state_t* state, const record_t* record, uint32_t address, uint32_t size) {
    if (record->size != size) return 0;
    if (!record->copy) return 1;
    return memcmp(state->copies + record->copy, state->sram + (address - SRAM_BASE), size) == 0;
}

static int holds(uint32_t condition, uint32_t flags) {
    uint32_t n = flags >> 31, z = flags >> 30 & 1, c = flags >> 29 & 1, v = flags >> 28 & 1, truth;
    switch (condition >> 1) {
        case 0:
            truth = z;
            break;
        case 1:
            truth = c;
            break;
        case 2:
            truth = n;
            break;
        case 3:
            truth = v;
            break;
        case 4:
            truth = c & !z;
            break;
        case 5:
            truth = n == v;
            break;
        case 6:
            truth = !z & (n == v);
            break;
        default:
            return 1;
    }
    return (int)(truth ^ (condition & 1));
}

static int misaligned(void* uc, const state_t* state, const check_t* check) {
    uint32_t sum = check->offset, base = 0;
    for (int r = 0; r < CORE_REGISTERS; ++r) {
        uint32_t weight = check->weights >> (2 * r) & 3;
        if (!weight && check->base != r) continue;
        uint32_t value = get(uc, state, r);
        if (check->base == r) base = value;
        sum += weight * value;
    }
    if (!(sum & check->mask)) return 0;
    if (check->device) {
        uint32_t top = (base + check->offset) >> 28;
        if (top != 4 && top != 5 && top < 0xd) return 0;
    }
    return check->condition == ALWAYS || holds(check->condition, get(uc, state, NZCV));
}

static int unmasked(void* uc, const state_t* state) {
    if (get(uc, state, PRIMASK) & 1 || get(uc, state, FAULTMASK) & 1) return 0;
    uint32_t base = get(uc, state, BASEPRI) & 0xff;
    return !base || state->priority < base;
}

static int recurs(void* uc, const state_t* state) {
    for (int r = 0; r < REGISTERS; ++r)
        if (get(uc, state, r) != state->seen[r]) return 0;
    for (int r = 0; r < DOUBLES; ++r) {
        uint64_t value = 0;
        state->uc_read(uc, state->double_ids[r], &value);
        if (value != state->seen_doubles[r]) return 0;
    }
    return 1;
}

/* A block is about to run: count it and give RUNNING, or say why it must not. */
static uint32_t begin(void* uc, state_t* state, uint32_t address, uint32_t size) {
    if (state->count >= state->deadline || state->wake) return DEADLINE;
    if (state->probe == address) {
        /* The first time is the block at which the probe was set. */
        if (state->probes++ && recurs(uc, state)) return RECURRED;
        if (state->probes > MAX_PROBES) state->probe = NO_BLOCK;
    }
    if (state->watch && unmasked(uc, state)) return UNMASKED;
    uint32_t* place = slot(state, address);
    uint32_t number = place ? *place : 0;
    if (!number || !valid(state, &state->records[number], address, size)) {
        number = state->decode(address, size);
        if (!number) return state->stop ? state->stop : UNKNOWN;
    }
    const record_t* record = &state->records[number];
    for (uint32_t i = 0; i < record->checks && state->pardon != address; ++i) {
        if (misaligned(uc, state, &state->checks[record->first_check + i])) {
            state->culprit = record->first_check + i;
            return MISALIGNED;
        }
    }
    state->pardon = NO_BLOCK;
    state->record = number;
    state->block = address;
    state->size = size;
    state->count += record->count;
    return RUNNING;
}

/* UC_HOOK_BLOCK. The block runs after this returns, unless it was stopped here. */
void hook_block(void* uc, uint64_t address, uint32_t size, void* user) {
    uint32_t why = begin(uc, user, (uint32_t)address, size);
    if (why) stop(uc, user, why);
}

typedef struct {
    state_t* state;
    uint32_t number;
} site_t;

/* UC_HOOK_CODE, on single instructions whose address is not known when their block begins. */
void hook_site(void* uc, uint64_t address, uint32_t size, void* user) {
    const site_t* site = user;
    state_t* state = site->state;
    (void)size;
    if (state->stop) return;
    if (state->pardon_site == (uint32_t)address) {
        state->pardon_site = NO_BLOCK;
        return;
    }
    if (!misaligned(uc, state, &state->checks[site->number])) return;
    state->culprit = site->number;
    stop(uc, state, MISALIGNED);
}

static uint32_t lanes(uint32_t value, uint32_t offset, uint32_t size) {
    value >>= 8 * (offset & 3);
    return size >= 4 ? value : value & ((1u << (8 * size)) - 1);
}

/* Who asks for the time again and again is waiting: a microsecond passes with every question. */
static void pass_microsecond(state_t* state) {
    state->skipped += state->cycles_per_us;
    state->deadline -= state->deadline < state->cycles_per_us ? state->deadline : state->cycles_per_us;
}

uint64_t hook_read(void* uc, uint64_t offset64, unsigned size, void* user) {
    region_t* region = user;
    state_t* state = region->state;
    uint32_t offset = (uint32_t)offset64, word = (offset & 0xfff) >> 2;
    if (state->stop) return 0;
    if (!(state->records[state->record].flags & FLAG_DEVICE)) {
        stop(uc, state, DEVICE);
        return 0;
    }
    switch (region->how[word]) {
        case POLL:
            ++region->polls; /* fall through */
        case VALUE:
            return lanes(region->values[word], offset, size);
        case TIME_LOW:
            ++region->polls;
            if (state->count - state->last_poll < POLL_WINDOW) pass_microsecond(state);
            state->last_poll = state->count;
            return (uint32_t)((state->count + state->skipped) / state->cycles_per_us);
        case TIME_HIGH:
            ++region->polls;
            return ((state->count + state->skipped) / state->cycles_per_us) >> 32;
        case COUNT:
            return (uint32_t)(state->count - region->values[word]);
        default:
            break;
    }
    uint32_t value = region->read(offset, size);
    if (state->stop) state->uc_stop(uc);
    return value;
}

void hook_write(void* uc, uint64_t offset64, unsigned size, uint64_t value, void* user) {
    region_t* region = user;
    state_t* state = region->state;
    uint32_t offset = (uint32_t)offset64;
    if (state->stop) return;
    if (!(state->records[state->record].flags & FLAG_DEVICE)) {
        stop(uc, state, DEVICE);
        return;
    }
    if (region->storable[(offset & 0xfff) >> 2] && offset < 0x1000) {
        memcpy((uint8_t*)region->values + offset, &value, size);
        return;
    }
    region->write(offset, size, (uint32_t)value);
    if (state->stop) state->uc_stop(uc);
}
