"""What a target is: typed attributes, kernels with inheritance, compiler flags, checks of flags, hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aot_model.c.turns import TURNS
from aot_model.errors import fail
from aot_model.ir.graph import Graph, Node
from aot_model.ir.program import Program
from aot_model.kernels.tail import Chain


@dataclass(frozen=True)
class Kernel:
    """A way to compute one operator. `reject` says why it does not fit a node with its chain, None when it
    does.
    """

    name: str
    operator: str
    emit: Callable[[Any], None]
    """Adds the calls of the kernel at a Site (site.py)."""
    reject: Callable[[Node, Chain, Target], str | None] = lambda node, chain, target: None


@dataclass(frozen=True)
class Attribute:
    """A typed option of a target: `--option name=value` or `target,name=value`."""

    default: str | int | bool
    help: str
    choices: tuple[str, ...] = ()

    def parse(self, name: str, text: str) -> str | int | bool:
        """The value of a text. CompileError E501 when it is not one."""
        if isinstance(self.default, bool):
            if text.lower() in ("1", "true", "on", "yes"):
                return True
            if text.lower() in ("0", "false", "off", "no"):
                return False
            raise fail("E501", f"option '{name}' takes true or false, not '{text}'")
        if isinstance(self.default, int):
            try:
                return int(text, 0)
            except ValueError:
                raise fail("E501", f"option '{name}' takes a whole number, not '{text}'") from None
        if self.choices and text not in self.choices:
            raise fail("E501", f"option '{name}' takes one of {', '.join(self.choices)}, not '{text}'")
        return text


LITTLE_ENDIAN = ("!defined(__ARM_BIG_ENDIAN)", "compile for little-endian, or pass --target c")
"""A check of targets whose kernels take that order of bytes for granted."""

GraphPass = Callable[[Graph], bool]
ProgramPass = Callable[[Program], None]
GRAPH_PHASES = ("before-partition", "after-partition")
"""When a target's graph passes run: after those of passes/manager.py, on the whole graph; and after the
partition, on what the target lowers: for a target that takes over parts of the model each of its regions, for
the processor the rest."""
PROGRAM_PHASES = ("after-lowering", "after-planning")
"""When a target's program passes run: before buffers have addresses, and after."""


@dataclass(frozen=True)
class Target:
    """A target. What it does not say, its parent says."""

    name: str
    description: str
    parent: Target | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    kernels: tuple[Kernel, ...] = ()
    vector: str | None = None
    """Name of the float vector dialect of kernels/float32."""
    unrolls: bool | None = None
    """Whether several turns of short loops over elements are written one behind the other (c/turns.py)."""
    c_flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    """Linker flags of the libraries that its functions call, for `aot-model run` and `verify`."""
    c_checks: tuple[tuple[str, str], ...] = ()
    """(preprocessor condition that must hold, what to do when it does not)."""
    c_advice: tuple[tuple[str, str, str], ...] = ()
    """(preprocessor condition, what the compiler's flags allow then, the target that uses it): the first that
    holds is told to who compiles the C. Not inherited: who derives a target knows better."""
    graph_passes: Mapping[str, tuple[GraphPass, ...]] = field(default_factory=dict)
    """By phase, of GRAPH_PHASES."""
    program_passes: Mapping[str, tuple[ProgramPass, ...]] = field(default_factory=dict)
    """By phase, of PROGRAM_PHASES."""
    offload: Any = None
    """An Offload of partition/offload.py: how it takes over parts of a model, when it is named before a
    processor: `--target npu,cortex-m55`.
    """
    before: tuple[Target, ...] = ()
    """The targets that are asked first, in order of preference."""

    @property
    def label(self) -> str:
        """The names as on the command line."""
        return ",".join(t.name for t in (*self.before, self))

    @property
    def all_c_flags(self) -> tuple[str, ...]:
        """Compiler flags of the processor and of the targets before it."""
        return tuple(f for t in (self, *self.before) for f in t.c_flags)

    @property
    def all_libraries(self) -> tuple[str, ...]:
        """Linker flags of the targets before the processor, and its own."""
        return tuple(f for t in (*self.before, self) for f in t.libraries)

    @property
    def specification(self) -> str:
        """The label with the options that were given to the targets before the processor."""
        return ",".join(
            [
                *(
                    ",".join([t.name, *(f"{k}={v}" for k, v in sorted(t.values.items()))])
                    for t in self.before
                ),
                self.name,
            ]
        )

    @property
    def offloads(self) -> Any:
        """`offload` of the target or its nearest ancestor that has one."""
        return next((t.offload for t in self.lineage() if t.offload is not None), None)

    @property
    def is_processor(self) -> bool:
        """Whether it computes what nobody else takes over."""
        return any(t.kernels for t in self.lineage())

    def asked(self) -> tuple[Target, ...]:
        """All targets that may take over parts of a model, in order of preference."""
        return tuple(t for t in (*self.before, self) if t.offloads is not None)

    def lineage(self) -> list[Target]:
        """This target and its ancestors, nearest first."""
        return [self, *(self.parent.lineage() if self.parent else [])]

    def option(self, name: str) -> Any:
        """The value of an attribute: given, or the default of the nearest ancestor that declares it."""
        if name in self.values:
            return self.values[name]
        for target in self.lineage():
            if name in target.attributes:
                return target.attributes[name].default
        raise KeyError(name)

    def has_option(self, name: str) -> bool:
        """Whether the target or an ancestor declares an attribute."""
        return any(name in t.attributes for t in self.lineage())

    @property
    def wish(self) -> str:
        """What is preferred where speed and size differ: "speed", "size" or "balanced"."""
        return str(self.option("optimize")) if self.has_option("optimize") else "balanced"

    def preferring(self, wish: str) -> dict[str, str]:
        """The options that make `wish` what is preferred; none where it is so, or there is no choice."""
        return {"optimize": wish} if self.has_option("optimize") and self.wish != wish else {}

    def dialect(self) -> str:
        """The float vector dialect: the option `vector`, or that of the nearest ancestor that names one."""
        chosen = next((self.option("vector") for t in self.lineage() if "vector" in t.attributes), "auto")
        return (
            str(chosen)
            if chosen != "auto"
            else next((t.vector for t in self.lineage() if t.vector), "scalar")
        )

    def turns(self) -> int:
        """Turns of a short loop over elements that are written one behind the other."""
        unrolls = next((t.unrolls for t in self.lineage() if t.unrolls is not None), False)
        return TURNS if unrolls and self.wish != "size" else 1

    def kernel_for(self, node: Node, chain: Chain) -> Kernel | None:
        """The first kernel of the target or its ancestors that takes the node."""
        for target in self.lineage():
            for kernel in target.kernels:
                if kernel.operator == node.kind and kernel.reject(node, chain, self) is None:
                    return kernel
        return None

    def with_options(self, options: Mapping[str, str]) -> Target:
        """The target with attributes set. CompileError E501 for an unknown or ill-typed one."""
        known = {n: a for t in reversed(self.lineage()) for n, a in t.attributes.items()}
        values = dict(self.values)
        for name, text in options.items():
            if name not in known:
                raise fail(
                    "E501",
                    f"target '{self.name}' has no option '{name}'",
                    hint=f"it has: {', '.join(sorted(known))}",
                )
            values[name] = known[name].parse(name, text)
        return replace(self, values=values)
