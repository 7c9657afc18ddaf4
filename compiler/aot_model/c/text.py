"""C text with the indentation of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

IN_ORDER = "AOT_MODEL_IN_ORDER;"
"""First in the body of a loop that adds several floats to one sum from high addresses to low: GCC 12 gets its
vectors wrong (docs/compilers.md).
"""


class CText:
    """Lines of C, written in order. Braces and indentation come from `block`."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """One statement, or several lines of text that keep their relative indentation."""
        self._lines += [
            ("    " * self._depth + part) if part else "" for part in text.rstrip("\n").split("\n")
        ]

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """`head { ... }`; a block without head is a scope."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def loop(self, var: str, count: str, step: int = 1, needed: bool = True) -> Iterator[None]:
        """for var in 0 .. count; where not `needed` the body stands alone and `var` does not exist."""
        if not needed:
            yield
            return
        advance = f"{var}++" if step == 1 else f"{var} += {step}"
        with self.block(f"for (int32_t {var} = 0; {var} < {count}; {advance})"):
            yield

    @contextmanager
    def turns(self, var: str, count: str, step: int = 1) -> Iterator[str]:
        """The same, and what stands for var in the body: 0 where a loop would have one turn; there is none
        then.
        """
        several = not count.isdigit() or int(count) > step
        with self.loop(var, count, step, several):
            yield var if several else "0"

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"


def loop_of(var: str, count: object, *body: str, step: int | None = None, more: str = "") -> list[str]:
    """Lines of a loop over 0 .. count; more: what moves on with `var`."""
    moved = f"{var}++" if step is None else f"{var} += {step}"
    return [f"for (int32_t {var} = 0; {var} < {count}; {moved}{more and f', {more}'}) {{", *body, "}"]


def block(text: CText) -> str:
    """The body of a function, one level deep."""
    return "\n".join(f"    {line}" if line else "" for line in str(text).rstrip("\n").split("\n"))


def product(factor: str, constant: int) -> str:
    """factor * constant, without what is neutral."""
    if constant == 0 or factor == "0":
        return "0"
    if factor.lstrip("-").isdigit():
        return str(int(factor) * constant)
    return factor if constant == 1 else f"{factor} * {constant}"


def total(*terms: str) -> str:
    """Sum of C expressions, without the zeros and with the literals folded into one."""
    literal = sum(int(t) for t in terms if t.isdigit())
    rest = [t for t in terms if not t.isdigit()]
    return " + ".join(rest + ([str(literal)] if literal or not rest else []))
