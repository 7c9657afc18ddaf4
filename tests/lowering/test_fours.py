"""Bytes that a loop stores four at a time, on cores with the DSP extension: networks of one operator with
rows of any length, all bytes and zero points at the ends of their range, beside numpy in doubles.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from batch import Case, for_any_processor, run_cases
from onnx_models import model, tensor

SCALES = {"a": 0.0235173, "b": 0.0311401, "y": 0.0237247}
SLOPES = (0.2537, -1.4881, 0.0, 1.9123)
ROWS = 256
COLUMNS = (1, 3, 4, 5, 8, 63)
ZEROS = ((-128, 127, 127), (127, -128, -128), (5, -77, 0))
"""Of a, b and y."""


def case(kind: str, columns: int, zeros: tuple[int, int, int], unsigned: bool) -> tuple[Case, np.ndarray]:
    """A network, and what it gives."""
    dtype, number = (np.uint8, TensorProto.UINT8) if unsigned else (np.int8, TensorProto.INT8)
    places = dict(zip("aby", (z + 128 * unsigned for z in zeros), strict=True))
    rng = np.random.default_rng(columns)
    every = np.arange(ROWS * columns).reshape(ROWS, columns) % 256
    data = {"a": every.astype(dtype), "b": rng.permuted(every).astype(dtype)}
    real = {
        k: (v.astype(np.float64) - places[k]) * np.float64(np.float32(SCALES[k])) for k, v in data.items()
    }
    slopes = np.resize(np.float32(SLOPES), columns)
    if kind == "Add":
        result = real["a"] + real["b"]
    else:
        del data["b"]
        result = np.where(real["a"] < 0, real["a"] * slopes, real["a"])
    limits = np.iinfo(dtype)
    wanted = np.rint(result / np.float32(SCALES["y"])) + places["y"]
    constants = {f"{k}_scale": np.float32(v) for k, v in SCALES.items()}
    constants |= {f"{k}_zero": dtype(v) for k, v in places.items()} | {"slopes": slopes}
    nodes = [
        helper.make_node("DequantizeLinear", [k, f"{k}_scale", f"{k}_zero"], [f"{k}_real"]) for k in data
    ]
    operands = [*(f"{k}_real" for k in data), *(["slopes"] if kind == "PRelu" else [])]
    nodes.append(helper.make_node(kind, operands, ["real"]))
    nodes.append(helper.make_node("QuantizeLinear", ["real", "y_scale", "y_zero"], ["y"]))
    shape = [ROWS, columns]
    made: onnx.ModelProto = model(
        nodes, [tensor(k, shape, number) for k in data], [tensor("y", shape, number)], constants
    )
    return Case(f"{kind}{columns}", made, tuple(data.values())), np.clip(wanted, limits.min, limits.max)


@pytest.mark.parametrize("kind", ["Add", "PRelu"])
@pytest.mark.parametrize("board", [None, "m4"])
def test_rows_of_any_length(kind: str, board: str | None) -> None:
    cases, wanted = zip(
        *(case(kind, c, z, u) for c in COLUMNS for z in ZEROS for u in (False, True)), strict=True
    )
    make = for_any_processor if board is None else None
    outcomes = run_cases(cases, "cortex-m4", board=board, sanitize=board is None, make=make)
    assert {(o.status, o.message) for o in outcomes} == {("ok", "")}
    assert any("dsp_put_four(" in o.made.source for o in outcomes if o.made is not None)
    for outcome, expected in zip(outcomes, wanted, strict=True):
        apart = np.abs(outcome.outputs[0] - expected)
        assert apart.max() <= (kind == "PRelu") and (apart > 0).mean() < 0.005  # its slopes are rounded


@pytest.mark.parametrize("kind", ["border", "rows"])
@pytest.mark.parametrize("board", [None, "m4"])
def test_four_times_the_same(board: str | None, kind: str) -> None:
    """What pads a tensor that is quantised behind, and what is the same along a row: the byte is named once,
    before the loop that stores it.
    """
    x = np.random.default_rng(3).normal(0, 1, (5, 8) if kind == "border" else (7, 1)).astype(np.float32)
    constants = {"scale": np.float32(0.0235173), "zero": np.int8(-102)}
    if kind == "border":
        constants["pads"] = np.int64([2, 4, 1, 3])
        wide, made = np.pad(x, ((2, 1), (4, 3))), helper.make_node("Pad", ["x", "pads"], ["wide"])
    else:
        constants["shape"] = np.int64([7, 12])
        wide, made = np.repeat(x, 12, 1), helper.make_node("Expand", ["x", "shape"], ["wide"])
    nodes = [made, helper.make_node("QuantizeLinear", ["wide", "scale", "zero"], ["y"])]
    network = model(nodes, [tensor("x", x.shape)], [tensor("y", wide.shape, TensorProto.INT8)], constants)
    (outcome,) = run_cases(
        [Case(kind, network, (x,))],
        "cortex-m4",
        board=board,
        sanitize=board is None,
        make=for_any_processor if board is None else None,
    )
    assert (outcome.status, outcome.message) == ("ok", "")
    wanted = np.rint(wide / constants["scale"]) - 102
    assert np.array_equal(outcome.outputs[0], np.clip(wanted, -128, 127))
    assert outcome.made is not None and "t0, t0, t0, t0" in outcome.made.source
