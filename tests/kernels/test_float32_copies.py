"""Float convolutions of a Cortex-M4 whose weights, or some of them, are copied to RAM, against numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from float32_cases import Case, check, conv_reference
from test_float32 import WARNINGS, build_and_run, dense_tail, random_conv, write

import qemu
from aot_model.cycles.rules import memory_of
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.float32 import conv as conv_kernels
from aot_model.kernels.float32 import tiles
from aot_model.kernels.float32.dialects import APART
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.reading import Reading


def copied(code: KernelCode) -> int:
    """Bytes."""
    return sum(piece.nbytes for piece in code.scratch if piece.name == "copied")


def written(s: ConvShape, weights: Weights, tail: object, memory: str, room: int) -> KernelCode:
    return conv_kernels.conv(s, weights, tail, APART, reading=Reading(memory_of(memory), room=room))  # type: ignore[arg-type]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies for small layers too."""
    monkeypatch.setattr(tiles, "LEAST_SAVING", -1e9)
    monkeypatch.setattr(Reading, "waits", lambda self, nbytes: self.memory.data is not None)


def cases(seed: int, count: int) -> list[Case]:
    """All weights copied, or some; with groups, borders, pixels copied aside."""
    rng, found, partly = np.random.default_rng(seed), [], 0
    while len(found) < count:
        s = replace(random_conv(rng), x_strides=None)
        if rng.integers(3) == 0:
            s = ConvShape(1, 1, 13, 20, 1, 13, int(rng.choice([38, 64])))
        x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
        w = rng.standard_normal((s.out_c, s.kernel_h, s.kernel_w, s.in_c // s.groups)).astype(np.float32)
        bias = rng.standard_normal(s.out_c).astype(np.float32)
        tail = dense_tail((s.batch, s.out_h, s.out_w, s.out_c), APART, rng)
        least = written(s, Weights(w, bias), tail, "l4-art", 0)
        if least.wish is None:
            continue  # written out, without calls
        room = least.wish + int(rng.integers(0, 4)) * w.nbytes // 3
        code = written(s, Weights(w, bias), tail, "l4-art", room)
        assert not copied(least) and 0 < copied(code) <= room
        partly += "? copied : weights" in code.body
        found.append(Case(f"{s}, room {room}", code, [x], conv_reference(s, x, w) + bias))
    assert count // 4 < partly < count
    return found


def panels(seed: int) -> list[Case]:
    """Pixels copied aside: odd and even counts of steps, padding, loops of more turns where code is fast."""
    rng, found = np.random.default_rng(seed), []
    for memory, steps in (("0ws", 20), ("0ws", 22), ("0ws", 27), ("0ws", 23), ("l4-art", 20), ("l4-art", 21)):
        pixels, pad = int(rng.integers(2, 40)), int(rng.integers(0, 2))
        s = ConvShape(1, 1, pixels, steps, 1, pixels + 2 * pad, int(rng.choice([32, 45])), pad_left=pad)
        x = rng.standard_normal((1, 1, pixels, steps)).astype(np.float32)
        w = rng.standard_normal((s.out_c, 1, 1, steps)).astype(np.float32)
        bias = rng.standard_normal(s.out_c).astype(np.float32)
        tail = dense_tail((1, 1, s.out_w, s.out_c), APART, rng)
        code = written(s, Weights(w, bias), tail, memory, 0)
        unroll = next(u for u in ((4, 3, 2, 1) if memory == "0ws" else (2, 3, 1)) if steps % u == 0)
        assert f"f32_panel_{code.note[0]}x" in code.body and f"_by_{unroll}(" in code.body
        found.append(Case(f"{s}, {memory}", code, [x], conv_reference(s, x, w) + bias))
    return found


def test_host(tmp_path: Path, eager: None) -> None:
    build_and_run([*cases(0, 16), *panels(2)], tmp_path, [])


@pytest.mark.skipif(not qemu.available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_core(tmp_path: Path, eager: None) -> None:
    every = [*cases(1, 12), *panels(3)]
    write(every, tmp_path)
    for level in ("-O2", "-O3", "-Os"):
        qemu.build_and_run(qemu.BOARDS["m4"], ["main.c", "kernels.c"], tmp_path, [level, *WARNINGS])
        check(every, np.fromfile(tmp_path / "out.bin", np.float32))


def test_copies_are_made_where_they_pay() -> None:
    def code_of(memory: str, room: int, pixels: int = 125, given: bool = False) -> KernelCode:
        s = ConvShape(1, 1, pixels, 64, 1, pixels, 64)
        w = Weights(np.ones((64, 1, 1, 64), np.float32), None, given)
        return written(s, w, dense_tail((1, 1, pixels, 64), APART, np.random.default_rng(0)), memory, room)

    whole = 4 * 65 * 64
    assert copied(code_of("l4-art", whole + 2048)) == whole
    assert 0 < copied(code_of("l4-art", whole // 2)) < whole // 2
    assert code_of("l4-art", 0).wish is not None and not copied(code_of("l4-art", 0))
    for code in (
        code_of("0ws", whole * 2),
        code_of("l4-art", whole * 2, pixels=1),
        code_of("l4-art", whole * 2, given=True),
    ):
        assert not copied(code) and code.wish is None
