/* Where the example writes its lines: the terminal of this machine, or the debugger of a board. */
#ifndef CONSOLE_H
#define CONSOLE_H

#ifdef __arm__
#include "semihosting.h"
#define console_write(text) semihosting_write(text)
#else
#include <stdio.h>
#define console_write(text) ((void)fputs(text, stdout))
#endif

#endif
