"""Instructions of every layer of the kernels' table on Cortex-M against recorded ones: a slower choice of a
kernel, a tile or a schedule gives the same numbers, and only counts notice it.

A layer more than 1 % worse than recorded fails. After an improvement, or for new layers: python -m pytest
tests/kernels/test_instructions.py --update-golden. With another version of the C compiler the counts are
different ones, and the test is skipped.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from counted_firmware import instructions
from network_layers import float_layers, int8_layers, network_case
from table import GROUPS

from aot_model.kernels.base import KernelCode
from aot_model.kernels.site import Site
from batch import Case
from qemu import COMPILER, available

FILE = Path(__file__).with_name("instructions.json")
BOARDS = {"cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
PREFERENCES = ({}, {"optimize": "speed"}, {"optimize": "size"})
WORSE, SLACK = 1.01, 8
"""More than this times what was recorded, and this many instructions, is worse: the clock counts 5 at a time.
"""


def cases(target: str) -> list[Case]:
    """Every layer of the table; those of networks with every preference, floats on the M55 alone."""
    groups = [(group, layers())
              for group, layers in GROUPS.items()
              if target != "cortex-m0" or group.startswith("int8")]
    found = [
        replace(layer.case(group, {}), name=f"{group}: {layer.name}")
        for group, layers in groups
        for layer in layers
    ]
    found += [
        replace(network_case(layer, words), name=f"{' '.join(words.values())} {layer.name}".strip())
        for words in PREFERENCES
        for layer in int8_layers()
    ]
    return found + [network_case(layer, {}) for layer in float_layers() if target == "cortex-m55"]


@cache
def compiler_version() -> str:
    return subprocess.run([COMPILER, "-dumpversion"], check=True, capture_output=True,
                          text=True).stdout.strip()


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("target", BOARDS)
def test_no_layer_needs_more_instructions_than_recorded(target: str, request: pytest.FixtureRequest) -> None:
    recorded = json.loads(FILE.read_text())
    updates = request.config.getoption("--update-golden")
    if recorded["compiler"] != compiler_version() and not updates:
        pytest.skip(f"recorded with {COMPILER} {recorded['compiler']}, this is {compiler_version()}")
    now = instructions(cases(target), target, BOARDS[target])
    if updates:
        FILE.write_text(
            json.dumps({"compiler": compiler_version(), "targets": {**recorded["targets"], target: now}},
                       indent=0) + "\n")
        return
    before = recorded["targets"][target]
    known = {name: n for name, n in now.items() if name in before}
    assert len(known) > 0.9 * len(now), "a tenth of the layers is not recorded: run with --update-golden"
    worse = {name: (n, before[name]) for name, n in known.items() if n > WORSE * before[name] + SLACK}
    assert not worse, f"more than 1 % worse than recorded (now, before): {worse}"


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_a_kernel_that_computes_everything_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases("cortex-m4")[0]
    before = json.loads(FILE.read_text())["targets"]["cortex-m4"][case.name]
    emit = Site.emit

    def twice(self: Site, name: str, code: KernelCode, *arguments: Any, **named: Any) -> None:
        emit(self, name, replace(code, body=code.body + code.body), *arguments, **named)

    monkeypatch.setattr(Site, "emit", twice)
    now = instructions([case], "cortex-m4", "m4")[case.name]
    assert now > 1.8 * before > 0
