/* What happens between reset and main(): no vendor files, no newlib start-up. */
#include <stdint.h>
#include <string.h>

#include "semihosting.h"

extern uint8_t data_values[], data_start[], data_end[], bss_start[], bss_end[], stack_top[]; /* firmware.ld */

int main(void);
void reset(void);

static void fault(void)
{
    semihosting_write("fault\n");
    semihosting_exit(125);
}

/* Initial stack pointer, then the handlers of the core's own exceptions; this firmware enables no interrupt. */
const struct {
    uint8_t *stack;
    void (*handlers[15])(void);
} vectors __attribute__((section(".vectors"), used)) = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, fault, 0, 0, 0, fault, fault, 0, fault, fault},
};

void reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    volatile uint32_t *cpacr = (volatile uint32_t *)0xE000ED88u;
    *cpacr |= 0xFu << 20; /* coprocessors 10 and 11: FPU and MVE are off after reset */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
    memcpy(data_start, data_values, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    semihosting_exit(main());
}
