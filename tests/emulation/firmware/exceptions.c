/* Exceptions of every kind, and what they must leave untouched. */
#include <stdio.h>
#include <string.h>

#include "hardware/exception.h"
#include "hardware/irq.h"
#include "hardware/structs/systick.h"
#include "hardware/sync.h"
#include "pico/stdlib.h"
#include "probe.h"

static volatile uint32_t service, pended, ticked, order, exception_return;
static uint64_t process_stack[64];

/* The stacked program counter leads to the SVC instruction, and that to its number. */
__attribute__((naked)) static void on_service(void) {
    __asm__ volatile(
        "mrs r0, psp\n\tldr r0, [r0, #24]\n\tldrb r0, [r0, #-2]\n\tldr r1, =%c0\n\tstr r0, [r1]\n\t"
        "ldr r1, =%c1\n\tstr lr, [r1]\n\tbx lr\n\t.ltorg"
        :
        : "i"(&service), "i"(&exception_return));
}

static void on_pended(void) {
    pended = ++order;
}

static void on_tick(void) {
    ++ticked;
}

static void on_spare(void) {
    pended = ++order;
}

/* An SVC from a stack of its own: PSP is used, r4 to r11 and the flags survive. */
static void service_command(void) {
    uint32_t survived;
    exception_handler_t before = exception_set_exclusive_handler(SVCALL_EXCEPTION, on_service);
    __asm__ volatile(
        "msr psp, %1\n\tmovs r0, #2\n\tmsr control, r0\n\tisb\n\t"
        "movs r0, #40\n\tmovs r1, #2\n\tmovs r4, #4\n\tsubs r2, r1, r1\n\tsvc #37\n\t"
        "ite eq\n\taddeq r0, r0, r1\n\tmovne r0, #0\n\tadds %0, r0, r4\n\t"
        "movs r0, #0\n\tmsr control, r0\n\tisb"
        : "=&r"(survived)
        : "r"(&process_stack[64])
        : "r0", "r1", "r2", "r4", "cc", "memory");
    exception_restore_handler(SVCALL_EXCEPTION, before);
    printf("svc %lu %lu %08lx\n", (unsigned long)service, (unsigned long)survived,
           (unsigned long)exception_return);
}

/* A pended interrupt waits while PRIMASK or BASEPRI forbid it, and comes at once when they do not. */
static void mask_command(void) {
    uint spare = user_irq_claim_unused(true);
    irq_set_exclusive_handler(spare, on_spare);
    irq_set_priority(spare, 0x80);
    irq_set_enabled(spare, true);
    uint32_t seen[4];
    order = pended = 0;
    uint32_t saved = save_and_disable_interrupts();
    irq_set_pending(spare);
    seen[0] = pended;
    restore_interrupts(saved);
    seen[1] = pended;
    pended = 0;
    __asm__ volatile("msr basepri, %0\n\tisb" : : "r"(0x80));
    irq_set_pending(spare);
    seen[2] = pended;
    __asm__ volatile("msr basepri, %0\n\tisb" : : "r"(0));
    seen[3] = pended;
    irq_set_enabled(spare, false);
    irq_remove_handler(spare, on_spare);
    user_irq_unclaim(spare);
    printf("mask %lu %lu %lu %lu\n", (unsigned long)seen[0], (unsigned long)seen[1], (unsigned long)seen[2],
           (unsigned long)seen[3]);
}

static void pendsv_command(void) {
    exception_handler_t before = exception_set_exclusive_handler(PENDSV_EXCEPTION, on_pended);
    order = pended = 0;
    *(volatile uint32_t*)(PPB_BASE + M33_ICSR_OFFSET) = M33_ICSR_PENDSVSET_BITS;
    __asm__ volatile("isb");
    exception_restore_handler(PENDSV_EXCEPTION, before);
    printf("pendsv %lu\n", (unsigned long)pended);
}

/* SysTick every 15000 cycles, for a while. */
static void systick_command(void) {
    exception_handler_t before = exception_set_exclusive_handler(SYSTICK_EXCEPTION, on_tick);
    ticked = 0;
    systick_hw->rvr = 15000 - 1;
    systick_hw->cvr = 0;
    systick_hw->csr = 7;
    busy_wait_us(1050);
    systick_hw->csr = 0;
    exception_restore_handler(SYSTICK_EXCEPTION, before);
    printf("systick %lu\n", (unsigned long)ticked);
}

/* Single-precision numbers in registers, while an interrupt computes with the same registers. */
static volatile float disturbance = 1.5f;

static bool disturb(repeating_timer_t* timer) {
    (void)timer;
    disturbance = disturbance * 0.75f + 3.0f / disturbance;
    return true;
}

static void floats_command(void) {
    repeating_timer_t timer;
    add_repeating_timer_us(-20, disturb, NULL, &timer);
    float sum = 0.0f, term = 1.0f;
    for (int i = 1; i < 40000; ++i) {
        term = term * 0.5f;
        __asm__ volatile("" : "+t"(term)); /* no fused multiply-add */
        term = term + 1.25f;
        sum = sum + term / (float)i;
    }
    cancel_repeating_timer(&timer);
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    printf("floats %08lx\n", (unsigned long)bits);
}

bool exception_command(const char* name) {
    if (!strcmp(name, "svc"))
        service_command();
    else if (!strcmp(name, "mask"))
        mask_command();
    else if (!strcmp(name, "pendsv"))
        pendsv_command();
    else if (!strcmp(name, "systick"))
        systick_command();
    else if (!strcmp(name, "floats"))
        floats_command();
    else
        return false;
    return true;
}
