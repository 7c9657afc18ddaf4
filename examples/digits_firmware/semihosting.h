/* Semihosting: a debugger or emulator does what a breakpoint with a number in r0 asks for. */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

void semihosting_write(const char *text);
void semihosting_exit(int status) __attribute__((noreturn));

#endif
