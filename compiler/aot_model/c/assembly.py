"""A function in assembly beside its twin in C, which other compilers get and tests run under sanitizers."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ONLY_WIDE = re.compile(r"^(\w+)\.w (?=.*(?:#-|\], #|\]!))")
"""Instructions with a negative number, or that move a pointer: they have no form of 16 bits, and LLVM's
assembler does not take them with `.w`.
"""
_LONGEST = 4095
"""Characters that every compiler of C99 takes in a string."""


def naked_function(name: str, parameters: str, lines: Iterable[str], result: str = "void ") -> str:
    """A function that is these lines of assembly; parameters: C, "float *sums, int32_t count". It is one
    statement however long it is, for neither what .rept repeats nor an IT block may be parted; compilers that
    know assembly only warn of long strings.
    """
    unused = ", ".join(f"__attribute__((unused)) {p}" for p in parameters.split(", "))
    lines = [_ONLY_WIDE.sub(r"\1 ", line) for line in lines]
    code = "\n".join(f'        "{line}\\n"' for line in lines)
    text = f"""\
AOT_MODEL_NAKED static {result}{name}(
    {unused})
{{
    __asm__ volatile(
{code}
    );
}}
"""
    if sum(len(line) + 1 for line in lines) <= _LONGEST:
        return text
    return f"""\
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings" /* instructions: no string of the program */
{text}#pragma GCC diagnostic pop
"""


def assembly_function(
    guard: str,
    name: str,
    comment: str,
    parameters: str,
    lines: Iterable[str],
    twin: str,
    result: str = "void ",
) -> str:
    """guard: opens the part of the text that uses the assembly, which finds its arguments where the procedure
    call standard says. twin: the statements of the same function.
    """
    return f"""/* {comment} */
{guard}
{naked_function(name, parameters, lines, result)}#else
AOT_MODEL_OPAQUE static {result}{name}(
    {parameters})
{{
{twin}
}}
#endif
"""


def constant(register: str, value: int) -> list[str]:
    """A core register gets a number of 32 bits."""
    low, high = value & 0xFFFF, value >> 16 & 0xFFFF
    return [f"movw {register}, #{low}", *([f"movt {register}, #{high}"] if high else [])]


def advance(register: str, by: int, free: str) -> list[str]:
    """A core register moves by a number, which `free` may hold."""
    name, distance = "sub" if by < 0 else "add", abs(by)
    if distance <= 4095:
        return [f"{name}w {register}, {register}, #{distance}"] if distance else []
    return [*constant(free, distance), f"{name} {register}, {register}, {free}"]


def forward(register: str, by: int) -> list[str]:
    """The same for a number that is not negative, and no other register."""
    steps = [4095] * (by // 4095) + ([by % 4095] if by % 4095 else [])
    return [f"addw {register}, {register}, #{step}" for step in steps]


def based(register: str, base: str, by: int) -> list[str]:
    """A core register becomes another one and a number, below 2^20 where they are the same."""
    if by <= 4095:
        return [f"addw {register}, {base}, #{by}"]
    if register == base:
        return [f"add {register}, {register}, #{by & ~0xFFF}", f"addw {register}, {register}, #{by & 0xFFF}"]
    return [*constant(register, by), f"add {register}, {base}, {register}"]
