/* Vector table and reset handler for tests on QEMU's Cortex-M boards: newlib's semihosting start-up (rdimon) does the
 * rest. A fault ends the program with an error instead of locking up. */
#include <stdint.h>

extern uint8_t __stack_top[];
extern void _start(void);

#define CPACR (*(volatile uint32_t *)0xE000ED88u)
#define VTOR (*(volatile uint32_t *)0xE000ED08u)

static void fault(void)
{
    static const uint32_t exit_with_error[2] = {0x20026u, 125u}; /* ADP_Stopped_ApplicationExit, status */
    register uint32_t operation __asm__("r0") = 0x20u;           /* SYS_EXIT_EXTENDED */
    register const uint32_t *block __asm__("r1") = exit_with_error;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(block) : "memory");
    for (;;) {
    }
}

void reset(void);

const struct {
    uint8_t *stack;
    void (*handlers[15])(void);
} vectors __attribute__((section(".vectors"), used)) = {
    __stack_top, {reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, fault}};

void reset(void)
{
    VTOR = (uint32_t)(uintptr_t)&vectors;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    CPACR |= 0xFu << 20; /* FPU and MVE are off after reset */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
    _start();
}
