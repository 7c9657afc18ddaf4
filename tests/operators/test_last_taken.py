"""The last attribute or extent that an operator takes and the first that it refuses, of many operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles import ONNX_RUNTIME, expected
from rows import rows_of, taken
from verdict import verdict

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.quantised_tables import Table
from aot_model.ops.registry import OPERATORS, load_all
from aot_model.ops.requantise import Rescale
from batch import run_cases

load_all()

STANDARD, LEARNING, RUNTIME, OURS = "", "ai.onnx.ml", "com.microsoft", "aot"


def real(*shape: int) -> TensorType:
    return TensorType(DType.FLOAT32, shape)


def word(*shape: int) -> TensorType:
    return TensorType(DType.INT16, shape)


def places(*shape: int) -> TensorType:
    return TensorType(DType.INT64, shape)


def whole(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


ONE, BYTES = TensorType(DType.INT32, (1,)), TensorType(DType.INT8, (2, 4))
IMAGE = real(1, 2, 5, 5)
CODES = np.zeros((3, 1), np.uint8)

QUOTIENT = {"a_zero_point": 0, "b_zero_point": 0, "result": Rescale(0, 1 << 30, 0), "to": DType.INT16}
QUOTIENT_OF_BYTES = {"a_zero_point": 0, "b_zero_point": 0, "factor": 1, "places": 8, "zero_point": 0}
SUM = {"function": "add", "left_shift": 20, **dict.fromkeys(("a", "b", "result"), Rescale(0, 1 << 30, 0))}
ENERGIES = {"smoothing": (409, 983), "remaining": (15975, 15401), "least": 819, "extra": 10}
ATTENTION = (
    real(1, 2, 4), real(1, 2, 4), real(1, 2, 4), real(1, 1, 0, 4), real(1, 1, 0, 4),
    np.asarray([1], np.int32), np.asarray([2], np.int32),
)  # fmt: skip


def layer(n: int) -> tuple[TensorType, ...]:
    """Of a step of n numbers, with one unit."""
    weights, state = TensorType(DType.INT8, (4, 1, n)), real(1, 1)
    return real(1, 1, n), state, state, weights, TensorType(DType.INT8, (4, 1, 1)), real(4, 1)


def pieces(n: int) -> dict[str, Any]:
    tables = {name: Table((0,) * n, DType.INT16, 0) for name in ("values", "slopes", "curves")}
    return {**tables, "point": 1, "curved": 0, "to": DType.INT16}


ALIKE = Graph("body", [Value("a", real(4))], [], [])
ALIKE.outputs.append(ALIKE.inputs[0])

BOTH = Graph("body", [Value("a", real(4)), Value("b", real(4))], [], [])
BOTH.outputs.extend(BOTH.inputs)

LIMITS: list[tuple[str, str, dict[str, Any], Sequence[Any], bool]] = [
    (OURS, "RealFourier", {"length": 1 << 17}, (real(8),), True),
    (OURS, "RealFourier", {"length": 135_000}, (real(8),), False),
    (OURS, "RealFourier", {"length": 8}, (real(8),), True),
    (OURS, "RealFourier", {"length": 8}, (real(9),), False),
    (OURS, "RealFourier", {"length": 8}, (real(0),), False),
    (OURS, "RealFourier", {"length": 14}, (real(8),), False),
    (OURS, "RealFourier", {"length": 2}, (real(2),), False),
    (OURS, "RealFourier", {"length": 8}, (real(),), False),
    (OURS, "OverlapAdd", {"step": 4}, (real(3, 4), real(4)), True),
    (OURS, "OverlapAdd", {"step": 5}, (real(3, 4), real(4)), False),
    (OURS, "OverlapAdd", {"step": 0}, (real(3, 4), real(4)), False),
    *(
        (OURS, "Stacker", {"frames": 3, "before": b, "step": s}, (word(4), word(2, 4), ONE), fits)
        for b, s, fits in (
            (2, 3, True),
            (3, 3, False),
            (2, 4, False),
            (0, 1, True),
            (-1, 1, False),
            (0, 0, False),
        )
    ),
    (OURS, "Framer", {"size": 2, "step": 2}, (word(2), word(1), ONE), True),
    (OURS, "Framer", {"size": 2, "step": 3}, (word(2), word(1), ONE), False),
    *(
        (OURS, "BoxSuppression", {"most": m, "per_class": p, "skipped": s}, (real(3, 4), real(3, 2)), fits)
        for m, p, s, fits in (
            (1, 1, 1, True),
            (1, 1, 2, False),
            (1, 1, 0, True),
            (1, 1, -1, False),
            (0, 1, 0, False),
            (1, 0, 0, False),
        )
    ),
    (OURS, "SoftSuppression", {"most": 0, "overlap": 0.5}, (real(3, 4), real(3)), True),
    (OURS, "SoftSuppression", {"most": -1, "overlap": 0.5}, (real(3, 4), real(3)), False),
    (OURS, "SoftSuppression", {"most": 1, "overlap": 0.5, "sigma": np.inf}, (real(3, 4), real(3)), False),
    (STANDARD, "Max", {}, (real(3),) * 128, True),
    (STANDARD, "Max", {}, (real(3),) * 129, False),
    # (2^30 - 3) + the next multiple of 4, 2^30, + the divisor is the largest int32
    (OURS, "ExactQuotient", {"divisor": 2, "most": (1 << 30) - 3}, (ONE,), True),
    (OURS, "ExactQuotient", {"divisor": 2, "most": (1 << 30) - 2}, (ONE,), False),
    *(
        (OURS, "HybridLstm", {"w_scales": (1.0,) * 4, "r_scales": (1.0,) * 4}, layer(n), fits)
        for n, fits in ((0, False), (1, True), (1 << 16, True), ((1 << 16) + 1, False))
    ),
    (OURS, "BlockMatMul", {"block": 1}, (real(2, 4), np.ones((3, 4), np.int8), real(3, 4)), True),
    (OURS, "BlockMatMul", {"block": 0}, (real(2, 4), np.ones((3, 4), np.int8), real(3, 4)), False),
    (OURS, "QuantisedLogSoftmax", {"scale": 0.1}, (TensorType(DType.INT8, (1, 4095)),), True),
    (OURS, "QuantisedLogSoftmax", {"scale": 0.1}, (TensorType(DType.INT8, (1, 4096)),), False),
    *((OURS, "Piecewise", pieces(n), (word(3),), fits) for n, fits in ((1, False), (2, True), (3, False))),
    *((OURS, "Piecewise", pieces(n), (word(3),), fits) for n, fits in ((128, True), (256, False))),
    *(
        (OURS, "QuantisedDiv", QUOTIENT, (TensorType(dtype, (3,)),) * 2, fits)
        for dtype, fits in ((DType.INT16, True), (DType.UINT16, True), (DType.INT32, False))
    ),
    *(
        (RUNTIME, "GroupNorm", {"groups": n, "activation": 0}, (real(1, 2, 2, 4), real(4), real(4)), fits)
        for n, fits in ((1, True), (0, False), (-1, False), (4, True), (3, False))
    ),
    *(
        (RUNTIME, "GroupQueryAttention", {"num_heads": n, "kv_num_heads": k}, ATTENTION, fits)
        for n, k, fits in ((1, 1, True), (0, 1, False), (1, 0, False))
    ),
    *(
        (RUNTIME, "BiasSoftmax", {"is_inner_broadcast": 1}, (real(2, 3, 4), real(*shape)), fits)
        for shape, fits in (((2, 3, 4), True), ((3, 4), False), ((4,), False))
    ),
    *(
        (STANDARD, "MaxPool", {"kernel_shape": (3,), "pads": (n, 0)}, (real(1, 2, 5),), fits)
        for n, fits in ((2, True), (3, False))
    ),
    (OURS, "FastFourier", {"axis": 0, "length": 4, "bins": 4}, (real(4, 1),), True),
    (OURS, "FastFourier", {"axis": 0, "length": 3, "bins": 3}, (real(4, 1),), False),
    (OURS, "FastFourier", {"axis": 0, "length": 1 << 16, "bins": 1 << 16}, (real(4, 1),), True),
    (OURS, "FastFourier", {"axis": 0, "length": 65_610, "bins": 65_610}, (real(4, 1),), False),
    (OURS, "FastFourier", {"axis": 0, "length": 8, "bins": 8, "real": True}, (real(5, 2),), True),
    (OURS, "FastFourier", {"axis": 0, "length": 8, "bins": 8, "real": True}, (real(4, 2),), False),
    (OURS, "Fourier", {"axis": 0, "bins": 5, "real": True}, (real(3, 2), real(5), real(5)), True),
    (OURS, "Fourier", {"axis": 0, "bins": 5, "real": True}, (real(2, 2), real(5), real(5)), False),
    (STANDARD, "LRN", {"size": 1 << 20}, (real(1, 3),), True),
    (STANDARD, "LRN", {"size": (1 << 20) + 1}, (real(1, 3),), False),
    (STANDARD, "LRN", {"size": 1}, (real(1, 3),), True),
    (STANDARD, "LRN", {"size": 0}, (real(1, 3),), False),
    (STANDARD, "LRN", {"size": 1}, (real(3),), False),
    (RUNTIME, "MatMulNBits", {"K": 4, "N": 3, "block_size": 0}, (real(2, 4), CODES, real(3, 1)), False),
    (RUNTIME, "ExpandDims", {}, (real(2, 3), whole(-3)), True),
    (RUNTIME, "ExpandDims", {}, (real(2, 3), whole(-4)), False),
    (RUNTIME, "ExpandDims", {}, (real(2, 3), whole(2)), True),
    (RUNTIME, "ExpandDims", {}, (real(2, 3), whole(3)), False),
    *(
        (STANDARD, "Split", {}, (real(3), whole(*sizes)), fits)
        for sizes, fits in (((0, 3), True), ((-1, 4), False), ((1, 3), False))
    ),
    (STANDARD, "Split", {}, (real(4), whole(*(0,) * 4095, 4)), True),
    (STANDARD, "Split", {}, (real(4), whole(*(0,) * 4096, 4)), False),
    (STANDARD, "Split", {"num_outputs": 4096}, (real(4096),), True),
    (STANDARD, "Split", {"num_outputs": 4097}, (real(4097),), False),
    (STANDARD, "Split", {"num_outputs": 3}, (real(3),), True),
    (STANDARD, "Split", {"num_outputs": 4}, (real(3),), False),
    (STANDARD, "Split", {"num_outputs": 1}, (real(0),), True),
    (OURS, "RowMoments", {"axis": 0}, (BYTES,), False),
    (OURS, "RowMoments", {"axis": 1}, (BYTES,), True),
    (OURS, "RowMoments", {"axis": 2}, (BYTES,), False),
    *(
        (OURS, "RowMoments", {"axis": 1}, (TensorType(DType.INT8, (2, n)),), fits)
        for n, fits in ((0, False), (1, True), (1 << 14, True), ((1 << 14) + 1, False))
    ),
    *(
        (OURS, "SpectralSubtraction", {**ENERGIES, "bits": bits}, (TensorType(DType.UINT32, (2,)),) * 2, fits)
        for bits, fits in ((63, True), (64, False), (-1, False))
    ),
    *(
        (OURS, "Curve", {"multiplier": m, "offset": c}, (TensorType(DType.INT8, (2,)),), fits)
        for m, c, fits in (
            (1 << 24, 127, True),
            (1 << 24, (1 << 24) - 1, True),
            (1 << 24, 1 << 24, False),
            (-(1 << 24), -1, True),
            (1 << 24, 0, False),
        )
    ),
    *(
        (STANDARD, "MaxRoiPool", {"pooled_shape": s}, (IMAGE, real(3, 5)), fits)
        for s, fits in (((1, 1), True), ((0, 1), False), ((1, 0), False), ((1,), False))
    ),
    *(
        (STANDARD, "RoiAlign", {"sampling_ratio": n}, (IMAGE, real(3, 4), places(3)), fits)
        for n, fits in ((1, True), (0, False), (4096, True), (4097, False))
    ),
    *(
        (STANDARD, "STFT", {}, (real(1, 9, 1), whole(step), None, whole(size)), fits)
        for step, size, fits in ((1, 1, True), (0, 1, False), (1, 0, False), (1, 9, True), (1, 10, False))
    ),
    *(
        (STANDARD, "Scan", {"body": ALIKE, "num_scan_inputs": n}, (real(3, 4),), fits)
        for n, fits in ((1, True), (2, False), (0, False), (-1, False))
    ),
    *(
        (STANDARD, "GroupNormalization", {"num_groups": n}, (real(1, 4, 2), real(4), real(4)), fits)
        for n, fits in ((1, True), (0, False), (4, True), (3, False))
    ),
    (STANDARD, "MaxUnpool", {"kernel_shape": (2,)}, (real(1, 2, 3), places(1, 2, 3)), True),
    (LEARNING, "LinearClassifier", {"classlabels_ints": (0, 1)}, (real(2, 0),), False),
]  # fmt: skip


LINE, SHORT = TensorType(DType.INT8, (3,)), word(3)


def table(count: int, low: int = -128, dtype: DType = DType.INT8) -> dict[str, Any]:
    return {"table": Table((0,) * count, dtype, low)}


def scale(number: float) -> np.ndarray:
    return np.asarray(number, np.float32)


MISFITS: list[tuple[str, str, dict[str, Any], Sequence[Any], bool]] = [
    *(
        (STANDARD, "AffineGrid", {"align_corners": corners}, (real(2, 2, 3), whole(2, 1, 3, n)), fits)
        for corners, n, fits in ((1, 2, True), (1, 1, False), (0, 1, True))
    ),
    *(
        (STANDARD, "Range", {}, (whole(0), whole(*to), whole(1)), fits)
        for to, fits in (((2,), True), ((2, 3), False))
    ),
    *(
        (STANDARD, "OneHot", {}, (places(3), whole(*depth), whole(0, 1)), fits)
        for depth, fits in (((2,), True), ((2, 2), False), ((0,), True), ((-1,), False))
    ),
    *(
        (STANDARD, "CumSum", {}, (real(3, 4), whole(*axes)), fits)
        for axes, fits in (((1,), True), ((0, 1), False), ((2,), False))
    ),
    *(
        (STANDARD, "Einsum", {"equation": equation}, (real(2, 3),), fits)
        for equation, fits in (("ij->ji", True), ("ij->ik", False), ("ij->ii", False), ("ij->jij", False))
    ),
    *(
        (STANDARD, "QuantizeLinear", {}, (real(3), scale(number), np.asarray(0, np.int8)), fits)
        for number, fits in ((1e-30, True), (0.0, False), (-1.0, False), (np.nan, False), (np.inf, False))
    ),
    (STANDARD, "QuantizeLinear", {}, (real(3), scale(1), np.asarray(0, np.float16)), False),
    *(
        (STANDARD, "TopK", {}, (real(3, 4), whole(*k)), fits)
        for k, fits in (((4,), True), ((5,), False), ((0,), True), ((-1,), False), ((1, 1), False))
    ),
    *(
        (STANDARD, "QuantizeLinear", {"output_dtype": kind}, (real(3), scale(1)), fits)
        for kind, fits in ((3, True), (5, True), (6, False), (10, False), (17, True), (99, False))
    ),
    *(
        (STANDARD, "Scan",
         {"body": BOTH, "num_scan_inputs": 2, "scan_input_directions": ways}, (real(3, 4),) * 2, fits)
        for ways, fits in (
            ((0, 0), True), ((0, 1), True), ((1, 1), True), ((0, 2), False), ((-1, 0), False), ((0,), False)
        )
    ),
    *(
        (STANDARD, "MelWeightMatrix", {}, (whole(1), whole(16), scale(rate), scale(0), scale(0)), fits)
        for rate, fits in ((8.0, True), (0.0, False), (np.inf, False), (np.nan, False), (-8.0, False))
    ),
    *(
        (STANDARD, "Multinomial", {"sample_size": n}, (real(2, classes),), fits)
        for n, classes, fits in ((1, 1, True), (0, 1, False), (1, 0, False))
    ),
    (STANDARD, "MaxRoiPool", {"pooled_shape": (1, 1)}, (real(0, 2, 5, 5), real(3, 5)), False),
    *((STANDARD, "NonZero", {}, (real(*shape),), fits) for shape, fits in (((3,), True), ((), False))),
    *(
        (RUNTIME, "CropAndResize", {}, (IMAGE, real(3, 4), TensorType(DType.INT32, (3,)), whole(*size)), fits)
        for size, fits in (((1, 1), True), ((1, 0), False), ((1,), False))
    ),
    (RUNTIME, "CropAndResize",
     {}, (real(0, 2, 5, 5), real(3, 4), TensorType(DType.INT32, (3,)), whole(1, 1)), False),
    *(
        (LEARNING, "ArrayFeatureExtractor", {}, (real(*shape), whole(0)), fits)
        for shape, fits in (((3,), True), ((), False))
    ),
    (OURS, "BlockMatMul", {"block": 4}, (real(2, 4), TensorType(DType.INT8, (3, 4)), real(3, 1)), False),
    (OURS, "Framer", {"size": 2, "step": 2}, (word(), word(1), ONE), False),
    (OURS, "Curve", {"multiplier": 1, "offset": 0, "to": DType.INT16}, (LINE,), False),
    (OURS, "Curve", {"multiplier": 1, "offset": 0}, (SHORT,), False),
    (OURS, "QuantisedLogSoftmax", {"scale": 0.1}, (TensorType(DType.INT8, ()),), False),
    (OURS, "QuantisedLogSoftmax", {"scale": 0.1}, (SHORT,), False),
    (OURS, "Lookup", table(256), (LINE,), True),
    (OURS, "Lookup", table(255), (LINE,), False),
    (OURS, "Lookup", table(256, 0), (LINE,), False),
    (OURS, "Lookup", table(256), (SHORT,), False),
    (OURS, "InterpolatedLookup", table(513, 0, DType.INT16), (SHORT,), True),
    (OURS, "InterpolatedLookup", table(512, 0, DType.INT16), (SHORT,), False),
    (OURS, "InterpolatedLookup", table(513, 0, DType.INT16), (LINE,), False),
    *(
        (OURS, "QuantisedQuotient", QUOTIENT_OF_BYTES, (TensorType(dtype, (3,)), LINE), fits)
        for dtype, fits in ((DType.INT8, True), (DType.INT16, False), (DType.FLOAT32, False))
    ),
    *(
        (OURS, "QuantisedSum", SUM, (TensorType(a, (3,)), TensorType(b, (3,))), fits)
        for a, b, fits in (
            (DType.INT8, DType.INT8, True),
            (DType.INT8, DType.UINT8, False),
            (DType.FLOAT32, DType.FLOAT32, False),
        )
    ),
    *(
        (OURS, "RoundedSoftmax", {"scale": 0.1}, (TensorType(dtype, (3,)),), fits)
        for dtype, fits in (
            (DType.INT8, True), (DType.UINT16, True), (DType.INT32, False), (DType.FLOAT16, False)
        )
    ),
    *(
        (OURS, "ResizeBilinear",
         {"height": h, "width": w, "align_corners": a, "half_pixel_centers": c}, (x,), fits)
        for h, w, a, c, x, fits in (
            (1, 1, True, False, IMAGE, True),
            (1, 1, True, True, IMAGE, False),
            (0, 1, False, True, IMAGE, False),
            (1, 0, False, True, IMAGE, False),
            (1, 1, False, True, real(1, 2, 0, 5), False),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("domain", "name", "attributes", "inputs", "fits"),
    [
        pytest.param(*limit, id=f"{limit[1]}-{k}-{'taken' if limit[-1] else 'refused'}")
        for k, limit in enumerate([*LIMITS, *MISFITS])
    ],
)
def test_last_taken(
    domain: str, name: str, attributes: dict[str, Any], inputs: Sequence[Any], fits: bool
) -> None:
    operator = OPERATORS[domain, name](**attributes)
    assert taken(operator, *inputs) is fits


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, 1.5])
def test_slopes_of_infinity(alpha: float) -> None:
    """Above 0 nothing is multiplied: 0 times infinity would be no number."""
    x = np.asarray([np.inf, -np.inf, np.nan, 0, 3, -3], np.float32)
    (row, *_) = rows_of(OPERATORS["", "LeakyRelu"])
    row = replace(row, sample=replace(row.sample, inputs=(x,), attributes={"alpha": alpha}))
    (outcome,) = run_cases([row.case], "c", jobs=1)
    known = expected(row)
    assert ONNX_RUNTIME in known.outputs and verdict(row, outcome, known) == ""
