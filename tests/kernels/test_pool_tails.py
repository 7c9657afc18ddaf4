"""Normalisations behind pooling, one multiplier and one summand for each channel, as Keras has them after a
convolution and a pool: on Helium they are vectors of channels (targets/row_tails.py). Against LiteRT in
QEMU, and the same C without vectors on the host, under sanitizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from aot_model.pipeline import Request, compile_model
from batch import Case, Outcome, for_any_processor, run_cases
from qemu import available
from tflite_models import INT8, INT16, UINT8, Op, T, build
from tflite_reference import litert

RNG = np.random.default_rng(17)
CHANNELS = (1, 3, 4, 5, 16, 33)
_CODES = {"int8": INT8, "uint8": UINT8, "int16": INT16}


def _case(mode: str, dtype: str, channels: int, same: bool) -> Case:
    """A pool of 2x3 windows, a product and a sum, with the images' edges or without."""
    limits, code = np.iinfo(dtype), _CODES[dtype]
    zero = {"int8": -9, "uint8": 117, "int16": 0}[dtype]
    rows, columns = (3, 4) if same else (2, 3)
    x = RNG.integers(limits.min, limits.max, (1, 5, 8, channels), endpoint=True).astype(dtype)
    each = [RNG.integers(limits.min, limits.max, channels, endpoint=True).astype(dtype) for _ in range(2)]
    shape = (1, rows, columns, channels)
    tensors = [
        T("x", x.shape, code, (0.02,), (zero,)),
        T("factor", (channels,), code, (0.03,), (zero,), data=each[0]),
        T("summand", (channels,), code, (0.011,), (zero,), data=each[1]),
        T("pooled", shape, code, (0.02,), (zero,)),
        T("product", shape, code, (0.05,), (zero,)),
        T("y", shape, code, (0.07,), (zero,)),
    ]
    window = {"StrideW": 2, "StrideH": 2, "FilterWidth": 3, "FilterHeight": 2}
    operators = [
        Op(f"{mode}_POOL_2D", (0,), (3,), "Pool2DOptions", {"Padding": 0 if same else 1, **window}),
        Op("MUL", (3, 1), (4,), "MulOptions"),
        Op("ADD", (4, 2), (5,), "AddOptions"),
    ]
    model = build(tensors, operators, [0], [5])
    name = f"{mode} {dtype} {channels} {'same' if same else 'valid'}"
    return Case(name, model, (x,), options={"arithmetic": "litert-ref"})


@cache
def cases() -> tuple[Case, ...]:
    return tuple(
        _case(mode, dtype, channels, same)
        for mode in ("MAX", "AVERAGE")
        for dtype in _CODES
        for channels in CHANNELS
        for same in (True, False)
    )


def _check(outcomes: Sequence[Outcome]) -> None:
    for case, outcome in zip(cases(), outcomes, strict=True):
        assert outcome.status == "ok", (case.name, outcome.message)
        assert isinstance(case.model, bytes)
        (wanted,) = litert(case.model, case.inputs)
        np.testing.assert_array_equal(outcome.outputs[0].reshape(wanted.shape), wanted, err_msg=case.name)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
def test_in_helium() -> None:
    _check(run_cases(cases(), "cortex-m55", sanitize=False, board="m55", flags=("-O2",)))


def test_without_vectors() -> None:
    """The code for Cortex-M55 as C for the host, under sanitizers."""
    _check(run_cases(cases(), "cortex-m55", make=for_any_processor))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_channels_are_vectors(dtype: str, tmp_path: Path) -> None:
    case = _case("MAX", dtype, 16, same=False)
    assert isinstance(case.model, bytes)
    (tmp_path / "m.tflite").write_bytes(case.model)
    text = compile_model(Request(tmp_path / "m.tflite", "m", "cortex-m55", case.options)).texts["m.c"]
    assert "#if AOT_MODEL_INTEGER_VECTORS" in text
