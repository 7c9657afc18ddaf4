/* Start-up of test programs on QEMU's Cortex-M boards; newlib's rdimon library does input and output by semihosting.
 * Not its crt0 too: that takes stack and heap from SYS_HEAPINFO, for which QEMU may choose memory apart from the linker
 * script's. A fault ends the program with an error instead of locking up. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint8_t __bss_start__[], __bss_end__[], __stack_top[];
extern void initialise_monitor_handles(void);
extern void __libc_init_array(void);
int main(void);

void reset(void);
void _init(void);
void _fini(void);

#define CPACR (*(volatile uint32_t *)0xE000ED88u)

static void fault(void)
{
    static const uint32_t exit_with_error[2] = {0x20026u, 125u}; /* ADP_Stopped_ApplicationExit, status */
    register uint32_t operation __asm__("r0") = 0x20u;           /* SYS_EXIT_EXTENDED */
    register const uint32_t *block __asm__("r1") = exit_with_error;
    __asm__ volatile("bkpt 0xab" : "+r"(operation) : "r"(block) : "memory");
    for (;;) {
    }
}

const struct {
    uint8_t *stack;
    void (*handlers[15])(void);
} vectors __attribute__((section(".vectors"), used)) = {
    __stack_top,
    {reset, fault, fault, fault, fault, fault, fault, 0, 0, 0, fault, fault, 0, fault, fault},
};

/* __libc_init_array() and exit() call these, which link-time optimisation does not see; crti.o would have them. */
__attribute__((used)) void _init(void) {}
__attribute__((used)) void _fini(void) {}

void reset(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    CPACR |= 0xFu << 20; /* FPU and MVE are off after reset */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
#endif
    memset(__bss_start__, 0, (size_t)(__bss_end__ - __bss_start__));
    initialise_monitor_handles();
    __libc_init_array();
    exit(main());
}
