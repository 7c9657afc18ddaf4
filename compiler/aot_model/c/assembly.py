"""A function in assembly beside its twin in C, which other compilers get and tests run under sanitizers."""

from __future__ import annotations

from collections.abc import Iterable


def assembly_function(guard: str, name: str, comment: str, parameters: Iterable[str], lines: Iterable[str],
                      twin: str, result: str = "void ") -> str:
    """guard: opens the part of the text that uses the assembly, which finds its arguments where the procedure
    call standard says. twin: the statements of the same function.
    """
    unused = ", ".join(f"__attribute__((unused)) {p}" for p in parameters)
    code = "\n".join(f'"{line}\\n"' for line in lines)
    return f"""/* {comment} */
{guard}
__attribute__((naked, noinline, used)) static {result}{name}(
    {unused})
{{
    __asm__ volatile(
{code}
    );
}}
#else
AOT_MODEL_OPAQUE static {result}{name}(
    {', '.join(parameters)})
{{
{twin}
}}
#endif
"""
