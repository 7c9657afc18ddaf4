"""Instructions and memory of every layer of the kernels' table against recorded ones: a slower or larger
choice of a kernel, a tile or a schedule gives the same numbers, and only counts notice it.

A layer that takes more than 1 % more instructions or flash than recorded fails, one that takes a byte of
constants more, and one that takes other RAM. After an improvement, or for new layers: python -m pytest
tests/kernels/test_instructions.py --update-golden. With another version of the C compiler instructions and
flash are different ones, and only memory is compared.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from counted_firmware import Costs, costs
from layer import Layer
from network_layers import float_layers, int8_layers, network_case
from table import GROUPS, case_of

from aot_model.kernels.base import KernelCode
from aot_model.kernels.site import Site
from batch import Case
from qemu import COMPILER, available
from turns import in_turn

FILE = Path(__file__).with_name("instructions.json")
MEMORY = Path(__file__).with_name("memory.json")
"""By target and layer: bytes of RAM, of constants, of flash."""
BOARDS = {"cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
PREFERENCES: tuple[dict[str, str], ...] = ({}, {"optimize": "speed"}, {"optimize": "size"})
WORSE, SLACK = 1.01, 8
"""More than this times what was recorded, and this many instructions or bytes of flash, is worse: the clock
counts 5 at a time.
"""


def layers(target: str) -> list[tuple[Layer, Case]]:
    """Every layer of the table, and those of networks: on boards with every preference, on Cortex-M4 as well
    in a memory that makes it wait.
    """
    words = PREFERENCES if target in BOARDS else PREFERENCES[:1]
    words += ({"memory": "l4-art"},) if target == "cortex-m4" else ()
    found = [
        (layer, case_of(group, layer, {}), f"{group}: {layer.name}")
        for group, layers in GROUPS.items()
        if target != "cortex-m0" or group.startswith("int8")
        for layer in layers()
    ]
    found += [
        (layer, network_case(layer, said), f"{' '.join(said.values())} {layer.name}".strip())
        for said in words
        for layer in (*int8_layers(), *(float_layers() if _has_floats(target, said) else ()))
    ]
    return [(layer, replace(case, name=name)) for layer, case, name in found]


def _has_floats(target: str, said: dict[str, str]) -> bool:
    return target != "cortex-m0" and "optimize" not in said


@cache
def compiler_version() -> str:
    return subprocess.run(
        [COMPILER, "-dumpversion"], check=True, capture_output=True, text=True
    ).stdout.strip()


def recorded(target: str, layer: str) -> tuple[list[int] | None, int | None]:
    """(ram, constants, flash), and the instructions of a layer; None: of a new one, or not of this target."""
    return tuple(_read(file)["targets"].get(target, {}).get(layer) for file in (MEMORY, FILE))  # type: ignore


@cache
def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def worse(now: Costs, memory: list[int] | None, instructions: int | None) -> dict[str, tuple[int, int]]:
    """What a layer needs more of than was recorded, and RAM that is another: (now, before). Less RAM is
    recorded anew, or a result lies where something is still read. What was not counted is 0.
    """
    limits: dict[str, tuple[int, float]] = {}
    found: dict[str, tuple[int, int]] = {}
    if memory is not None:
        ram, constants, flash = memory
        found = {"ram": (now.ram, ram)} if now.ram != ram else {}
        limits = {"constants": (constants, constants), "flash": (flash, WORSE * flash + SLACK)}
    if instructions is not None:
        limits["instructions"] = instructions, WORSE * instructions + SLACK
    for name, (before, limit) in limits.items():
        if getattr(now, name) > limit:
            found[name] = getattr(now, name), before
    return found


@pytest.mark.parametrize("target", [*BOARDS, "host"])
def test_no_layer_needs_more_than_recorded(target: str, request: pytest.FixtureRequest) -> None:
    updates, version = request.config.getoption("--update-golden"), json.loads(FILE.read_text())["compiler"]
    counted = target in BOARDS and available() and (updates or version == compiler_version())
    every = layers(target)
    asked = every if updates else in_turn(every, 4)
    now = costs([case for _, case in asked], target, BOARDS[target] if counted else None)
    if updates:
        _record(target, now)
        return
    # Of all of them in every run: a new layer moves the numbers of those behind it, and each would be compared
    # with another one.
    others = {case.name for _, case in every} ^ set(_read(MEMORY)["targets"][target])
    assert not others, f"new layers, or recorded ones that are gone: use --update-golden: {sorted(others)[:9]}"
    before = {name: recorded(target, name) for name in now}
    differing = {name: found for name, costs in now.items() if (found := worse(costs, *before[name]))}
    assert not differing, f"worse than recorded (now, before): {differing}"
    if target in BOARDS and not counted:
        pytest.skip(f"memory alone: the counts are those of {COMPILER} {version}")


def _record(target: str, now: dict[str, Costs]) -> None:
    recorded, memory = json.loads(FILE.read_text()), json.loads(MEMORY.read_text())
    memory["targets"][target] = {name: [c.ram, c.constants, c.flash] for name, c in now.items()}
    text = json.dumps(memory, indent=0)
    MEMORY.write_text(re.sub(r"\[\n(\d+),\n(\d+),\n(\d+)\n\]", r"[\1, \2, \3]", text) + "\n")
    if target in BOARDS:
        recorded["targets"][target] = {name: c.instructions for name, c in now.items()}
        FILE.write_text(json.dumps({**recorded, "compiler": compiler_version()}, indent=0) + "\n")


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_a_kernel_that_computes_everything_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, case = layers("cortex-m4")[0]
    before = json.loads(FILE.read_text())["targets"]["cortex-m4"][case.name]
    emit = Site.emit

    def twice(self: Site, name: str, code: KernelCode, *arguments: Any, **named: Any) -> None:
        emit(self, name, replace(code, body=code.body + code.body), *arguments, **named)

    monkeypatch.setattr(Site, "emit", twice)
    now = costs([case], "cortex-m4", "m4")[case.name]
    assert now.instructions > 1.8 * before > 0
