"""The cycles of a model's layers on a Cortex-M, estimated from a run of its firmware in QEMU.

with tempfile.TemporaryDirectory() as folder:
    times = timing.of_model(compiled.view, compiled.texts, Path(folder), memory="l4-art")
for layer in times.layers:
    print(layer.layer, layer.op, layer.cycles, layer.binding)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.cycles import trace as tracing
from aot_model.cycles.disassembly import Code
from aot_model.cycles.estimate import Cycles, Estimate, estimate
from aot_model.cycles.rules import CORES, Memory, core_of, memory_of, trust_of
from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.host.compiler import HostCompiler
from aot_model.host.firmware import QEMU, Board, FirmwareProgram, build, find_compiler

Row = tuple[str, str, int]
"""Of a call: its layer, operator, and multiply-accumulates."""


@dataclass(frozen=True)
class LayerTime:
    """A call of the model: what it executes, and what its cycles go to."""

    layer: str
    op: str
    macs: int
    instructions: int
    cycles: int
    by_reason: Mapping[str, int]
    """By the words of cycles.pipeline.REASONS; without those of no cycle."""
    binding: str
    """The greatest shares in words: `issue 70 %, loads 26 %`."""


@dataclass(frozen=True)
class Timing:
    """One inference, estimated. `layers` are in the order of the calls, as in <name>.json."""

    core: str
    memory: str
    layers: tuple[LayerTime, ...]
    instructions: int
    """With those of <name>_run() between its layers."""
    cycles: int
    error: str
    """How far the core's rules were compared with silicon: `±10 %`, `not validated`."""
    validation: str
    """With what they were compared."""
    unknown: tuple[str, ...] = ()
    """Mnemonics that no rule knows; each counted as one cycle."""

    def facts(self, clock: float | None) -> dict[str, Any]:
        """For JSON; microseconds at a clock in hertz."""

        def times(cycles: int) -> dict[str, Any]:
            return {"cycles": cycles} | ({"microseconds": round(cycles / clock * 1e6, 2)} if clock else {})

        layers = [{
            "layer": one.layer,
            "op": one.op,
            "macs": one.macs,
            "instructions": one.instructions,
            **times(one.cycles), "by_reason": dict(one.by_reason)
        } for one in self.layers]  # fmt: skip
        return {
            "core": self.core,
            "memory": self.memory,
            "error": self.error,
            "validation": self.validation,
            "not_modelled": list(self.unknown),
            "instructions": self.instructions,
            **times(self.cycles), "layers": layers,
        }  # fmt: skip


def of_model(
    view: ModelView,
    texts: Mapping[str, str],
    folder: Path,
    memory: str = "0ws",
    compiler: HostCompiler | None = None,
    vectors: Sequence[Sequence[np.ndarray]] = (),
) -> Timing:
    """Builds a compiled model for its target and estimates its cycles; inputs are zeros without vectors.

    CompileError E501, E601, E602, E604.
    """
    compiler = compiler or find_compiler(None, None)
    program = build(view, texts, folder, Board.of(view.target, QEMU), compiler)
    return of_firmware(program, compiler, vectors, [memory])[0]


def of_firmware(
    program: FirmwareProgram,
    compiler: HostCompiler,
    vectors: Sequence[Sequence[np.ndarray]],
    memories: Sequence[str],
) -> list[Timing]:
    """For each memory: the mean of the vectors' inferences, after one that is not counted."""
    view, board = program.view, program.board
    assert board is not None
    zeros = [np.zeros(p.buffer.type.shape, p.buffer.type.dtype.numpy) for p in view.inputs]
    given = [list(vector) for vector in vectors] or [zeros]
    program.link([given[0], *given])
    rows = [(call.layer, call.op, call.macs) for call in view.program.calls()]
    source = program.executable.parent / f"{view.name}.c"
    run = Run(program.executable, view.name, source, rows, compiler.command, board.runner, len(given))
    return run.timings(core_for(board.core.name, compiler.cflags or ()), [memory_of(m) for m in memories])


@dataclass(frozen=True)
class Run:
    """A program for QEMU that calls <name>_run() once, and then `count` times, which are counted."""

    elf: Path
    name: str
    source: Path
    """The generated C."""
    rows: Sequence[Row]
    compiler: Sequence[str]
    runner: Sequence[str]
    count: int

    def timings(self, core: str, memories: Sequence[Memory]) -> list[Timing]:
        """For each memory. CompileError E602, E604."""
        tracing.plugin()  # says what is missing before anything else fails
        code = Code.of(self.elf, self.compiler)
        layers = self._layer_of_address(code)
        traces: dict[tuple[object, ...], tracing.Trace] = {}
        found = []
        for memory in memories:
            caches = (memory.code, memory.data, memory.flash_only)
            if caches not in traces and (memory.code is not None or not traces):
                traces[caches] = self._trace(code, memory, layers)
            trace = traces[caches] if caches in traces else _without_caches(next(iter(traces.values())))
            found.append(self._timing(core, memory, estimate(trace, code.instructions, core, memory)))
        return found

    def _layer_of_address(self, code: Code) -> dict[int, int]:
        """By address in <name>_run(), and of what was inlined there: the number of the call."""
        if not self.rows:
            return {}
        text = self.source.read_text(encoding="utf-8").splitlines()
        function = next(
            f for f in (f"{self.name}_layers", f"{self.name}_run") if begin_of(text, f) is not None
        )
        if function not in code.functions:
            raise fail(
                "E602",
                f"the program has no function {function}()",
                where=str(self.elf),
                hint="compile the library without -flto",
            )
        numbers = calls_by_line(text, function)
        if len(set(numbers.values())) != len(self.rows):
            raise fail(
                "E102",
                f"{function}() has {len(set(numbers.values()))} calls, not {len(self.rows)}",
                where=str(self.source),
                hint="give the .c and the .json that were made together",
            )
        at = code.lines_in(function)
        if not any(line in numbers for line in at.values()):
            raise fail(
                "E602",
                f"the program has no debug information of {function}()",
                where=str(self.elf),
                hint="compile the library with -g, which changes no instruction",
            )
        return {address: numbers[line] for address, line in at.items() if line in numbers}

    def _trace(self, code: Code, memory: Memory, layers: Mapping[int, int]) -> tracing.Trace:
        folder = self.elf.parent
        more = tracing.arguments(code, f"{self.name}_run", memory, folder, layers, self.count, 1)
        command = [word.replace("{elf}", str(self.elf)) for word in self.runner]
        tracing.run([*command, *more], folder, 600)
        return tracing.read(folder / tracing.OUTPUT, self.count)

    def _timing(self, core: str, memory: Memory, found: Estimate) -> Timing:
        layers = []
        for number, row in enumerate(self.rows):
            one = found.layers.get(number, Cycles())
            reasons = {reason: round(n) for reason, n in one.by_reason.items() if round(n)}
            layers.append(LayerTime(*row, round(one.instructions), round(one.total), reasons, one.binding))
        trust = trust_of(core, memory)
        return Timing(core, memory.name, tuple(layers),
                      round(sum(one.instructions for one in found.layers.values())),
                      round(sum(one.total for one in found.layers.values())), trust.error, trust.meaning,
                      found.unknown,
                      )  # fmt: skip


def core_for(name: str, flags: Sequence[str]) -> str:
    """The core of the table that -mcpu of the flags means, else `name`. CompileError E501."""
    named = [flag.removeprefix("-mcpu=") for flag in flags if flag.startswith("-mcpu=")]
    for mcpu in [*reversed(named), name][:1]:
        if core := core_of(mcpu):
            return core
        name = mcpu
    there = ", ".join(called for called, _ in CORES.values())
    raise fail("E501", f"there are no rules for the cycles of '{name}'", hint=f"there are: {there}")


def _without_caches(trace: tracing.Trace) -> tracing.Trace:
    """The same run where nothing misses."""
    return replace(trace,
                   edges=[replace(edge, misses=0) for edge in trace.edges],
                   accesses=[replace(access, loads=0, stores=0) for access in trace.accesses],
                   )  # fmt: skip


def begin_of(source: Sequence[str], function: str) -> int | None:
    """The line (from 0) on which a function of generated C begins."""
    head = re.compile(rf"AOT_MODEL_OPAQUE (static )?int32_t {function}\(")
    return next((k for k, line in enumerate(source) if head.match(line)), None)


def calls_by_line(source: Sequence[str], function: str) -> dict[int, int]:
    """By line (from 1) of a function of generated C: the number of the call.

    Each begins with a comment that names its layer.
    """
    numbers: dict[int, int] = {}
    call = -1
    for k in range(begin_of(source, function) or 0, len(source)):
        if source[k] == "}":
            break
        if re.fullmatch(r"\s+/\* .* \*/", source[k]):
            call += 1
        elif call >= 0:
            numbers[k + 1] = call
    return numbers
