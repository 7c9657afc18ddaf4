"""TensorFlow Lite Micro's signal library over several runs, and as a whole front end; what of it is
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audio import SUBTRACTION, loud, noise, options, signal, tensor

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from sanitizers import sanitized
from tflite_models import INT16, INT32, UINT32, UINT64, Op, T, build
from tflite_reference import tflm

RUNS = 9


def streamed(folder: Path, model: bytes, rows: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """The outputs of consecutive runs."""
    path = folder / "m.tflite"
    path.write_bytes(model)
    compiled = compile_model(Request(path, "m", "c"))
    return sanitized(compiled.view, compiled.texts, folder).run([list(r) for r in rows])


def compared(
    folder: Path, model: bytes, rows: Sequence[Sequence[np.ndarray]], outputs: int, valid: int | None = None
) -> list[bool]:
    """Each run against TensorFlow Lite Micro; `valid`: the output that says whether the others mean
    something.
    """
    said = []
    for got, want in zip(streamed(folder, model, rows), tflm(model, rows, outputs), strict=True):
        said.append(valid is None or bool(want[valid].reshape(-1)[0]))
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            if said[-1] or k == valid:
                np.testing.assert_array_equal(g.reshape(w.shape), w)
    return said


def rows_of(*shape: int, dtype: str = "int16", runs: int = RUNS) -> list[list[np.ndarray]]:
    return [[loud(dtype, *shape) if dtype != "float32" else noise(dtype, *shape)] for _ in range(runs)]


@pytest.mark.parametrize("length", [0, 1, 4, 5, 13])
def test_delay(tmp_path: Path, length: int) -> None:
    rows = rows_of(2, 5)
    compared(
        tmp_path, signal("", "Delay", rows[0], [("int16", (2, 5))], {"delay_length": length}).model, rows, 1
    )


@pytest.mark.parametrize(
    ("shape", "step", "dtype"),
    [((2, 3, 6), 2, "int16"), ((1, 8), 3, "int16"), ((4, 5), 5, "int16"), ((3, 6), 4, "float32")],
)
def test_overlap_add(tmp_path: Path, shape: tuple[int, ...], step: int, dtype: str) -> None:
    rows = rows_of(*shape, dtype=dtype)
    out = (*shape[:-2], shape[-2] * step)
    compared(
        tmp_path,
        signal(
            "", "OverlapAdd", rows[0], [(dtype, out)], {"T": 7 if dtype == "int16" else 0, "frame_step": step}
        ).model,
        rows,
        1,
    )


@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize(
    ("shape", "size", "step"), [((6,), 13, 3), ((2, 4), 7, 2), ((5,), 5, 5), ((2, 3), 8, 3), ((6,), 1, 1)]
)
def test_framer(tmp_path: Path, shape: tuple[int, ...], size: int, step: int, prefill: bool) -> None:
    rows = rows_of(*shape)
    fields = {"frame_size": size, "frame_step": step, "prefill": prefill}
    case = signal(
        "", "Framer", rows[0], [("int16", (*shape[:-1], shape[-1] // step, size)), ("bool", ())], fields
    )
    valid = compared(tmp_path, case.model, rows, 2, valid=1)
    assert any(valid) and (all(valid) or not prefill)


@pytest.mark.parametrize(
    ("left", "right", "step"), [(2, 1, 1), (3, 0, 2), (0, 2, 3), (0, 0, 1), (1, 3, 4), (2, 2, 5)]
)
def test_stacker(tmp_path: Path, left: int, right: int, step: int) -> None:
    rows = rows_of(4)
    fields = {
        "num_channels": 4,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": step,
    }
    case = signal("", "Stacker", rows[0], [("int16", (4 * (left + right + 1),)), ("bool", ())], fields)
    assert any(compared(tmp_path, case.model, rows, 2, valid=1))


@pytest.mark.parametrize("clamping", [False, True])
def test_spectral_subtraction(tmp_path: Path, clamping: bool) -> None:
    rows = [[noise("uint32", 417) >> np.uint32(6)] for _ in range(RUNS)]
    fields = {**SUBTRACTION, "clamping": clamping}
    compared(
        tmp_path,
        signal("", "FilterBankSpectralSubtraction", rows[0], [("uint32", (417,))] * 2, fields).model,
        rows,
        2,
    )


def test_each_operator_has_a_state_of_its_own(tmp_path: Path) -> None:
    tensors = [tensor(f"t{k}", "int16", 3) for k in range(4)]
    delays = [
        Op("CUSTOM:SignalDelay", (a,), (b,), custom=options({"delay_length": n}))
        for a, b, n in ((0, 1, 2), (0, 2, 5), (1, 3, 2))
    ]
    compared(tmp_path, build(tensors, delays, [0], [1, 2, 3]), rows_of(3), 3)


def front_end() -> bytes:
    """Features of a frame of 480 samples, as keyword spotters have them: 40 channels, noise taken away, gain
    controlled.
    """
    rng = np.random.default_rng(8)
    hann = np.asarray(
        np.rint(4096 * (0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(480) + 0.5) / 480))), np.int16
    )
    widths = np.asarray([2, *(2 + k // 5 for k in range(40))], np.int16)
    starts = np.asarray(5 + np.cumsum([0, *widths[:-1]]), np.int16)
    weights = np.asarray(rng.integers(0, 4097, int(widths.sum())), np.int16)
    gain = np.asarray(np.maximum(32767 >> (np.arange(125) // 8), 1), np.int16)
    tensors: list[T] = []
    operators: list[Op] = []

    def add(name: str, kind: int, *shape: int, data: np.ndarray | None = None) -> int:
        tensors.append(T(name, shape, kind, scale=(), data=data))
        return len(tensors) - 1

    def step(kind: str, fields: dict[str, Any], inputs: tuple[int, ...], *outputs: int) -> int:
        operators.append(
            Op(f"CUSTOM:Signal{kind}", inputs, outputs, custom=options(fields) if fields else b"")
        )
        return outputs[0]

    x = add("audio", INT16, 480)
    y = step("Window", {"shift": 12}, (x, add("hann", INT16, 480, data=hann)), add("windowed", INT16, 480))
    bits = add("bits", INT32)
    y = step("FftAutoScale", {}, (y,), add("scaled", INT16, 480), bits)
    y = step("Rfft", {"T": 7, "fft_length": 512}, (y,), add("spectrum", INT16, 514))
    y = step("Energy", {"end_index": 257, "start_index": 0}, (y,), add("energy", UINT32, 257))
    tables = [
        add(f"c{k}", INT16, *c.shape, data=c)
        for k, c in enumerate(
            (weights, np.asarray(4096 - weights, np.int16), starts, np.asarray(starts - 5, np.int16), widths)
        )
    ]
    y = step("FilterBank", {"num_channels": 40}, (y, *tables), add("bank", UINT64, 40))
    y = step("FilterBankSquareRoot", {}, (y, bits), add("root", UINT32, 40))
    noise_level = add("noise", UINT32, 40)
    y = step(
        "FilterBankSpectralSubtraction",
        {**SUBTRACTION, "num_channels": 40},
        (y,),
        add("less", UINT32, 40),
        noise_level,
    )
    y = step(
        "PCAN",
        {"snr_shift": 6},
        (y, noise_level, add("gain", INT16, 125, data=gain)),
        add("even", UINT32, 40),
    )
    y = step(
        "FilterBankLog", {"input_correction_bits": 3, "output_scale": 1600}, (y,), add("features", INT16, 40)
    )
    return build(tensors, operators, [x], [y])


def test_a_whole_front_end(tmp_path: Path) -> None:
    t = np.arange(480 * RUNS)
    speech = (
        6000 * np.sin(t * 0.05) * np.sin(t * 0.0007)
        + 2000 * np.sin(t * 0.31)
        + np.random.default_rng(9).normal(0, 200, t.size)
    )
    rows = [[np.asarray(part, np.int16)] for part in speech.reshape(RUNS, 480)]
    rows += [[np.zeros(480, np.int16)], [np.full(480, 32767, np.int16)], *rows_of(480, runs=2)]
    compared(tmp_path, front_end(), rows, 1)


_x16 = np.zeros(40, np.int16)
_x32 = np.zeros(40, np.uint32)
REFUSED = {
    "odd": ("Rfft", [_x16], [("int16", (47,))], {"T": 7, "fft_length": 45}, (), "length 45"),
    "seven": ("Rfft", [_x16], [("int16", (58,))], {"T": 7, "fft_length": 56}, (), "length 56"),
    "two": ("Irfft", [_x16[:4]], [("int16", (2,))], {"T": 7, "fft_length": 2}, (), "length 2"),
    "too long": ("Rfft", [_x16], [("int16", (34,))], {"T": 7, "fft_length": 32}, (), "length 32"),
    "no length": ("Rfft", [_x16], [("int16", (34,))], {"T": 7}, (), "fft_length"),
    "unsigned": ("Rfft", [_x32], [("uint32", (66,))], {"T": 15, "fft_length": 64}, (), "uint32"),
    "half a spectrum": (
        "Irfft",
        [_x16],
        [("int16", (64,))],
        {"T": 7, "fft_length": 64},
        (),
        "half of a spectrum",
    ),
    "window": ("Window", [_x16], [("int16", (40,))], {"shift": 1}, [_x16[:7]], "does not fit"),
    "shift": ("Window", [_x16], [("int16", (40,))], {"shift": 32}, [_x16], "32 bits"),
    "energies": ("Energy", [_x16], [("uint32", (20,))], {"start_index": 0, "end_index": 21}, (), "0 to 21"),
    "gain": ("PCAN", [_x32, _x32], [("uint32", (40,))], {"snr_shift": 1}, [_x16], "a table"),
    "bank": (
        "FilterBank",
        [_x32],
        [("uint64", (1,))],
        {"num_channels": 1},
        [_x16, _x16, *(np.asarray(t, np.int16) for t in ([0, 39], [0, 3], [1, 2]))],
        "out of a vector",
    ),
    "weights": (
        "FilterBank",
        [_x32],
        [("uint64", (1,))],
        {"num_channels": 1},
        [_x16, _x16, *(np.asarray(t, np.int16) for t in ([0, 3], [-1, 3], [1, 2]))],
        "out of a vector",
    ),
    "bank of data": (
        "FilterBank",
        [_x32, *[_x16] * 5],
        [("uint64", (39,))],
        {"num_channels": 39},
        (),
        "must be known",
    ),
    "frames": (
        "Framer",
        [_x16],
        [("int16", (5, 9)), ("bool", ())],
        {"frame_size": 9, "frame_step": 7, "prefill": False},
        (),
        "7 apart",
    ),
    "frames apart": (
        "Framer",
        [_x16],
        [("int16", (5, 4)), ("bool", ())],
        {"frame_size": 4, "frame_step": 8, "prefill": True},
        (),
        "8 apart",
    ),
    "stack": (
        "Stacker",
        [_x16],
        [("int16", (80,)), ("bool", ())],
        {"num_channels": 40, "stacker_left_context": 1, "stacker_right_context": 0, "stacker_step": 3},
        (),
        "3 apart",
    ),
    "stack without end": (
        "Stacker",
        [_x16],
        [("int16", (40,)), ("bool", ())],
        {"num_channels": 40, "stacker_left_context": 2, "stacker_right_context": -2, "stacker_step": 1},
        (),
        "1 frames",
    ),
    "overlap": (
        "OverlapAdd",
        [_x16.reshape(5, 8)],
        [("int16", (45,))],
        {"T": 7, "frame_step": 9},
        (),
        "9 apart",
    ),
    "delay": ("Delay", [_x16], [("int16", (40,))], {"delay_length": -1}, (), "by -1"),
    "delay without end": ("Delay", [_x16], [("int16", (40,))], {"delay_length": 2**31 - 1}, (), "than 2 GB"),
    "frames without end": (
        "Framer",
        [_x16],
        [("int16", (1, 2**31 - 1)), ("bool", ())],
        {"frame_size": 2**31 - 1, "frame_step": 1, "prefill": False},
        (),
        "than 2 GB",
    ),
    "channels": (
        "FilterBankSpectralSubtraction",
        [_x32],
        [("uint32", (40,))] * 2,
        {**SUBTRACTION, "num_channels": 41},
        (),
        "41 channels",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path: Path, case: str) -> None:
    kind, inputs, outputs, fields, constants, words = REFUSED[case]
    path = tmp_path / "m.tflite"
    path.write_bytes(signal("", kind, inputs, outputs, fields, constants).model)
    with pytest.raises(CompileError, match=words):
        compile_model(Request(path, "m", "c"))
