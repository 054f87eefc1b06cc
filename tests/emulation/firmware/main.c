/* Probe firmware: answers one line per command on both serial ports, so that tests can ask the virtual board.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/clocks.h"
#include "hardware/flash.h"
#include "hardware/gpio.h"
#include "hardware/sync.h"
#include "hardware/watchdog.h"
#include "pico/bootrom.h"
#include "pico/stdio_uart.h"
#include "pico/stdlib.h"
#include "pico/unique_id.h"
#include "probe.h"

#define SCRATCH_OFFSET (3u * 1024u * 1024u) /* a flash sector far from the program */

static volatile uint32_t ticks;

static bool on_tick(repeating_timer_t* timer) {
    (void)timer;
    ++ticks;
    return true;
}

static void timer_command(uint32_t wanted) {
    repeating_timer_t timer;
    ticks = 0;
    uint64_t start = time_us_64();
    add_repeating_timer_ms(-1, on_tick, NULL, &timer);
    while (ticks < wanted) __wfe();
    uint64_t end = time_us_64();
    cancel_repeating_timer(&timer);
    printf("timer %lu %lu\n", (unsigned long)ticks, (unsigned long)(end - start));
}

static void sleep_command(uint32_t ms) {
    uint64_t start = time_us_64();
    sleep_ms(ms);
    printf("slept %lu\n", (unsigned long)(time_us_64() - start));
}

/* Reads `count` bytes as they come and says their number and a checksum. */
static void take_command(uint32_t count) {
    uint32_t sum = 0, taken = 0;
    while (taken < count) {
        int c = getchar_timeout_us(2000000);
        if (c < 0) break;
        sum = sum * 31u + (uint32_t)c;
        ++taken;
    }
    printf("took %lu %08lx\n", (unsigned long)taken, (unsigned long)sum);
}

static void give_command(uint32_t count) {
    printf("giving %lu\n", (unsigned long)count);
    for (uint32_t i = 0; i < count; ++i) putchar_raw((int)((i * 7u + 13u) & 0xffu));
    stdio_flush();
}

static void flash_command(void) {
    static uint8_t page[FLASH_PAGE_SIZE];
    for (uint32_t i = 0; i < sizeof page; ++i) page[i] = (uint8_t)(i ^ 0x5a);
    uint32_t saved = save_and_disable_interrupts();
    flash_range_erase(SCRATCH_OFFSET, FLASH_SECTOR_SIZE);
    flash_range_program(SCRATCH_OFFSET, page, sizeof page);
    restore_interrupts(saved);
    const uint8_t* stored = (const uint8_t*)(XIP_BASE + SCRATCH_OFFSET);
    printf("flash %d %d\n", memcmp(stored, page, sizeof page) == 0, stored[sizeof page] == 0xff);
}

static void gpio_command(void) {
    gpio_init(25);
    gpio_set_dir(25, GPIO_OUT);
    gpio_put(25, true);
    int high = gpio_get(25);
    gpio_put(25, false);
    printf("gpio %d %d\n", high, gpio_get(25));
}

static void identity_command(void) {
    char id[2 * PICO_UNIQUE_BOARD_ID_SIZE_BYTES + 1];
    pico_get_unique_board_id_string(id, sizeof id);
    printf("identity %s %lu %d\n", id, (unsigned long)clock_get_hz(clk_sys), watchdog_caused_reboot());
}

static uint64_t bits(const char* text) {
    return strtoull(text, NULL, 16);
}

static void answer(char* line) {
    char* words[5] = {"", "0", "0", "0", "0"};
    size_t n = 0;
    for (char* word = strtok(line, " "); word && n < 5; word = strtok(NULL, " ")) words[n++] = word;
    const char* name = words[0];
    uint32_t value = (uint32_t)strtoul(words[1], NULL, 10);
    if (!strcmp(name, "echo"))
        printf("%s\n", words[1]);
    else if (!strcmp(name, "count"))
        printf("count %lu\n", (unsigned long)instructions(value));
    else if (!strcmp(name, "compute"))
        printf("compute %08lx\n", (unsigned long)compute(value));
    else if (!strcmp(name, "ram"))
        printf("ram %08lx\n", (unsigned long)compute_from_ram(value));
    else if (!strcmp(name, "timer"))
        timer_command(value);
    else if (!strcmp(name, "sleep"))
        sleep_command(value);
    else if (!strcmp(name, "take"))
        take_command(value);
    else if (!strcmp(name, "give"))
        give_command(value);
    else if (!strcmp(name, "flash"))
        flash_command();
    else if (!strcmp(name, "gpio"))
        gpio_command();
    else if (!strcmp(name, "identity"))
        identity_command();
    else if (!strcmp(name, "print"))
        printf("print %.6f %g %e\n", 3.14159265358979, 1e100, -2.5e-7);
    else if (!strcmp(name, "dsp"))
        dsp((uint32_t)bits(words[1]), (uint32_t)bits(words[2]), (uint32_t)bits(words[3]));
    else if (!strcmp(name, "usb-only") || !strcmp(name, "both-ports")) {
        stdio_set_driver_enabled(&stdio_uart, !strcmp(name, "both-ports"));
        printf("%s\n", name);
    } else if (!strcmp(name, "fault"))
        misbehave(words[1]);
    else if (!strcmp(name, "bootsel"))
        reset_usb_boot(0, 0);
    else if (!strcmp(name, "reboot"))
        watchdog_reboot(0, 0, 10);
    else if (!strcmp(name, "watchdog"))
        watchdog_enable(value, false);
    else if (!strncmp(name, "d:", 2))
        double_operation(name + 2, bits(words[1]), bits(words[2]), bits(words[3]));
    else if (!exception_command(name))
        printf("unknown %s\n", name);
}

int main(void) {
    stdio_init_all();
    printf("probe is up\n");
    char line[160];
    for (;;) {
        size_t n = 0;
        for (;;) {
            int c = getchar();
            if (c == '\n') break;
            if (c != '\r' && n < sizeof line - 1) line[n++] = (char)c;
        }
        line[n] = 0;
        answer(line);
        stdio_flush();
    }
}
