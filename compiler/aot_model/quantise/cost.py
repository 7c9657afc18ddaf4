"""What a quantised model needs on its target: bytes as the compiler plans them, code as it is compiled,
cycles estimated in QEMU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot_model.cycles.rules import memory_of
from aot_model.errors import CompileError
from aot_model.host import firmware, timing
from aot_model.kernels.target import Target
from aot_model.library.elf_object import ElfObject
from aot_model.pipeline import Request, compile_model
from aot_model.quantise.data import Samples
from aot_model.targets.cores import CORES
from aot_model.targets.registry import parse_target


@dataclass(frozen=True)
class Budget:
    """The most that may be needed; None: whatever."""

    ram: int | None = None
    flash: int | None = None
    """Of the constants."""
    cycles: int | None = None
    times: Mapping[str, float] | None = None
    """... so many times what 8 bits need: of cycles, ram, flash with its code."""

    def allows(self, cost: Cost, int8: Cost) -> bool:
        pairs = [(self.ram, cost.ram), (self.flash, cost.constants), (self.cycles, cost.cycles)]
        if self.times is not None:
            for name, factor in self.times.items():
                least = getattr(int8, name)
                pairs.append((None if least is None else int(least * factor), getattr(cost, name)))
        return all(most is None or (need is not None and need <= most) for most, need in pairs)

    def factors(self) -> str:
        """`times` in words."""
        several = self.times or {}
        words = dict.fromkeys(f"{f:g}" for f in several.values())
        if len(words) == 1 and len(several) == 3:
            return f"{next(iter(words))} times"
        return ", ".join(f"{f:g} times the {name}" for name, f in several.items()) + " of"


@dataclass(frozen=True)
class Cost:
    """RAM: the workspace; cycles: of one run, None where nobody asked; code: None where it is not compiled
    for the target."""

    ram: int
    constants: int
    cycles: int | None
    macs: int
    code: int | None = None

    @property
    def flash(self) -> int:
        """Constants, and code where it is known: kernels that layers share are in it once."""
        return self.constants + (self.code or 0)


@dataclass(frozen=True)
class Platform:
    """What costs are of: a target as `--target` has it, its options, Python files that define others."""

    target: str = "c"
    options: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[Path, ...] = ()

    @property
    def processor(self) -> Target:
        """CompileError E501, E502."""
        return parse_target(self.target, self.options, self.plugins)

    @property
    def has_cycles(self) -> bool:
        """Whether cycles can be estimated: of a Cortex-M."""
        cores = {core.name for core in CORES}
        return any(t.name in cores for t in self.processor.lineage())


def cost_of(
    model: Path, folder: Path, platform: Platform, bounds: Mapping[str, int], cycles_of: Samples | None
) -> Cost:
    """cycles_of: samples, the first of which is run in QEMU. CompileError E501, E601, E602, E604."""
    compiled = compile_model(
        Request(model, "costed", platform.target, platform.options, plugins=platform.plugins, bounds=bounds)
    )
    cycles = code = None
    if cycles_of is not None:
        board = firmware.Board.of(platform.processor, firmware.QEMU)
        compiler = firmware.find_compiler(None, None)
        program = firmware.build(compiled.view, compiled.texts, folder / "firmware", board, compiler)
        code = ElfObject.read(folder / "firmware" / "model.o").stored(is_code=True)
        vector = [np.asarray(array[0]) for array in cycles_of.inputs.values()]
        try:
            [found] = timing.of_firmware(program, compiler, [vector], [memory_of("0ws").name])
            cycles = found.cycles
        except CompileError as error:
            if error.problems[0].code != "E604":
                raise
            program.run([vector])  # QEMU cannot be asked for more than instructions
            cycles = board.amount(program.ticks[0])
    view = compiled.view
    return Cost(view.workspace_size, view.constant_bytes, cycles, view.macs, code)
