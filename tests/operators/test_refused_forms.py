"""Forms of which the standard and ONNX Runtime say different things, or that nobody defines, are refused with
what to do instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rows import Row, rows_of

from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.registry import OPERATORS
from batch import Outcome, run_cases

TREES = ("ai.onnx.ml", "TreeEnsembleClassifier")
QUANTISED_LSTM = ("com.microsoft", "DynamicQuantizeLSTM")
SEVERAL = {"class_ids": (0, 1, 1, 0), "class_weights": (0.25, 0.5, 0.125, 0.5)}


def _outcome(row: Row, **changes: Any) -> Outcome:
    """changes: of the sample."""
    (outcome,) = run_cases([replace(row, sample=replace(row.sample, **changes)).case], "c", jobs=1)
    return outcome


@pytest.mark.parametrize(
    ("name", "number", "changes", "said"),
    [
        (("", "LSTM"), 0, {"clip": 0.0}, "clip is 0.0"),
        (("", "GRU"), 0, {"clip": -1.0}, "clip is -1.0"),
        (("", "RNN"), 0, {"activations": ("Tanh",) * 3}, "3 activations for"),
        (("", "LSTM"), 0, {"activations": ("Tanh",) * 2}, "2 activations for"),
        (QUANTISED_LSTM, 0, {"activations": ("Tanh",) * 2}, "2 activations for"),
        (("com.microsoft", "NhwcMaxPool"), 6, {"auto_pad": "SAME_UPPER"}, "give the pads"),
        (("", "Einsum"), 0, {"equation": "ij,jk->i1"}, "equation 'ij,jk->i1' does not fit"),
        (("", "Einsum"), 0, {"equation": "ij,j_->ik"}, "equation 'ij,j_->ik' does not fit"),
        (("ai.onnx.ml", "LinearRegressor"), 0, {"post_transform": "SOFTMAX"}, "of one score"),
        (("ai.onnx.ml", "SVMRegressor"), 0, {"post_transform": "LOGISTIC"}, "of one score"),
        (("ai.onnx.ml", "SVMRegressor"), 0, {"post_transform": "PROBIT"}, "PROBIT of one score"),
        (("ai.onnx.ml", "TreeEnsembleRegressor"), 0, {"post_transform": "LOGISTIC"}, "of one score"),
        (TREES, 2, SEVERAL, "two classes with votes of their own"),
        (TREES, 2, {"base_values": (0.5, 0.25)}, "base values for both"),
        (TREES, 2, {"post_transform": "PROBIT"}, "PROBIT"),
        (("ai.onnx.ml", "TreeEnsemble"), 2, {"post_transform": 1}, "LOGISTIC for ONNX Runtime"),
        (("ai.onnx.ml", "LabelEncoder"), 0, {"keys_strings": ("a", "b", "a")}, "twice"),
        (("ai.onnx.ml", "LabelEncoder"), 6, {"keys_floats": (np.nan, 1.0, np.nan)}, "twice"),
        (TREES, 1, {"class_weights": (1.0, -2.0, 0.5, 4.0)}, "class 0 may be without a vote"),
    ],
)  # fmt: skip
def test_refused(name: tuple[str, str], number: int, changes: dict[str, Any], said: str) -> None:
    row = rows_of(OPERATORS[name])[number]
    outcome = _outcome(row, attributes={**row.sample.attributes, **changes})
    assert outcome.status == "refused", outcome
    assert said in outcome.message, outcome.message


def test_a_window_without_axes() -> None:
    x = Value("x", TensorType(DType.FLOAT32, (1, 2, 3)))
    with pytest.raises(OperatorError, match="kernel_shape has no axes"):
        OPERATORS["", "MaxUnpool"](kernel_shape=()).infer([x, Value("i", TensorType(DType.INT64, x.shape))])


def test_a_zero_point_without_a_scale_and_a_scale_alone() -> None:
    """Without the zero point ONNX Runtime's result is a float, of what is left open."""
    row = rows_of(OPERATORS["com.microsoft", "QGemm"])[0]
    given = row.sample.inputs
    for inputs in ((*given[:7], None, *given[8:]), given[:8]):
        outcome = _outcome(row, inputs=inputs, constants=row.sample.constants - {8})
        assert outcome.status == "refused", outcome
        assert "one is there, the other is not" in outcome.message, outcome.message


def test_a_pad_of_what_is_left() -> None:
    """Nothing is left to repeat when all five elements are cut off."""
    x = np.arange(5, dtype=np.float32)
    for pads, status in (((-5, 2), "refused"), ((-4, 2), "ok"), ((2, -5), "refused")):
        outcome = _outcome(
            rows_of(OPERATORS["", "Pad"])[0], inputs=(x, np.asarray(pads)), attributes={"mode": "edge"}
        )
        assert outcome.status == status, outcome.message
        if status == "ok":
            assert outcome.outputs[0].tolist() == [4, 4, 4]


@pytest.mark.parametrize("zero", [np.uint64(2**64 - 1), np.int32(300), np.float32(1e30)])
@pytest.mark.parametrize(
    ("operator", "number", "at"),
    [("MatMulIntegerToFloat", 1, 4), ("MatMulIntegerToFloat", 3, 5), ("DynamicQuantizeMatMul", 2, 3)],
)
def test_zero_points_of_another_type(operator: str, number: int, at: int, zero: np.generic) -> None:
    """Nothing checks the types of com.microsoft's operators but they themselves; what is no byte is no zero
    point of bytes, and may be beyond all that is computed of it.
    """
    row = rows_of(OPERATORS["com.microsoft", operator])[number]
    given = list(row.sample.inputs)
    given[at] = np.asarray(zero)
    outcome = _outcome(row, inputs=tuple(given), constants=row.sample.constants | {at})
    assert outcome.status == "refused" and "is not of the type of" in outcome.message, outcome
