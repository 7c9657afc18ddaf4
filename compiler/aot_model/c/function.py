"""A function of the generated C, with what its pointers share."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aot_model.ir.program import Access, Call, Device, Function, Param


@dataclass(frozen=True)
class Aliasing:
    """same: (input, output) parameters at one address; shared: parameters that overlap otherwise; retyped:
    those of them that write what is read as another type.
    """

    same: tuple[tuple[int, int], ...] = ()
    shared: frozenset[int] = frozenset()
    retyped: frozenset[int] = frozenset()


def alike(one: str, other: str) -> bool:
    """Whether C compilers think that what is written as one element type may be read as the other: types that
    differ in their sign; bytes, and strings, which are made of them.
    """
    types = {t.removeprefix("u") for t in (one, other)}
    return len(types) == 1 or bool(types - _NUMBERS)


_NUMBERS = frozenset({"bool", "int16_t", "int32_t", "int64_t", "float", "double"})
"""Element types that stand for nothing but themselves, without the letter of their sign. Bytes, and what is
made of them, may be anything's.
"""


@dataclass(eq=False)
class CFunction:
    """A function of the output, and the layers that call it."""

    name: str
    function: Function
    aliasing: Aliasing
    layers: list[Call]

    @property
    def kept(self) -> list[int]:
        """Parameters that exist in C."""
        gone = {i for i, _ in self.aliasing.same}
        return [k for k in range(len(self.function.params)) if k not in gone]

    @property
    def context(self) -> Device | None:
        """The device whose context is the last parameter."""
        device = self.function.device
        return device if device is not None and device.context is not None else None

    def signature(self) -> str:
        params = [self._declare(k, self.function.params[k]) for k in self.kept]
        if self.context is not None:
            params.append(f"{self.context.context} *{self.context.name}")
        # opaque: attributes.h says why; inlined and with constants for arguments they are slower, too
        return (
            f"AOT_MODEL_OPAQUE static {'int32_t' if self.function.fails else 'void'} "
            f"{self.name}({', '.join(params)})"
        )

    def _declare(self, k: int, param: Param) -> str:
        const = "const " if param.access is Access.READ else ""
        alone = k not in self.aliasing.shared
        return f"{const}{self.element(k)} *{'restrict ' if alone else ''}{param.name}"

    def element(self, k: int) -> str:
        """What parameter k points to, in C."""
        element = self.function.params[k].element
        return f"aot_model_any_{element}" if k in self.aliasing.retyped else element

    def aliases(self) -> list[str]:
        """Locals for inputs that are the output's memory; parameters that the body does not need, where there
        are no elements.
        """
        params, gone = self.function.params, {i for i, _ in self.aliasing.same}
        aliases = [
            f"const {params[i].element} *const {params[i].name} = {_view(params[i], params[o])};"
            for i, o in self.aliasing.same
        ]
        return aliases + [
            f"(void){p.name};"
            for k, p in enumerate(params)
            if k not in gone and not re.search(rf"\b{p.name}\b", self.function.body + "".join(aliases))
        ]


def _view(source: Param, target: Param) -> str:
    return (
        target.name
        if source.element == target.element
        else (f"(const {source.element} *)(const void *){target.name}")
    )
