"""Numbers that are none, ties and tensors without an element, as ONNX Runtime has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, helper

from batch import Case, run_cases
from onnx_models import model, tensor
from qemu import available

NAN, INFINITE = np.nan, np.inf
Constants = Mapping[str, np.ndarray]


def check(
    nodes: list[NodeProto], fed: Constants, constants: Constants | None = None, target: str = "c"
) -> None:
    """Whether outputs of the last node are those of ONNX Runtime."""
    ports = [tensor(k, v.shape, helper.np_dtype_to_tensor_dtype(v.dtype)) for k, v in fed.items()]
    ends = [helper.make_empty_tensor_value_info(o) for o in nodes[-1].output]
    proto = model(nodes, ports, ends, constants, opset=21, domains={"com.microsoft": 1})
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(fed))
    board = target.removeprefix("cortex-") if target.startswith("cortex-") else None
    (outcome,) = run_cases(
        [Case("edge", proto, tuple(fed.values()))], target, board=board, sanitize=board is None, jobs=1
    )
    assert outcome.status == "ok", outcome.message
    for got, want in zip(outcome.outputs, wanted, strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("count", [2, 7])
def test_the_best_of_numbers_that_are_none(largest: int, kind: type, count: int) -> None:
    """NaN is larger than all others; of several the first comes first."""
    x = np.asarray([[NAN, 3, NAN, 1, INFINITE, 1, 2], [2, 1, NAN, 2, -INFINITE, NAN, NAN]], kind)
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], largest=largest)
    check([node], {"x": x}, {"k": np.asarray([count])})


@pytest.mark.parametrize("target", ["c", "host,vector=v4"])
def test_a_maximum_does_not_forget_what_was_before_what_is_no_number(target: str) -> None:
    x = np.asarray([5, NAN, 1, 2, 3, NAN, -7, 9, NAN, 4, 1, NAN], np.float32)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[3])
    check([node], {"x": np.resize(x, (1, 4, 12))}, target=target)


def test_a_product_of_a_constant_without_columns() -> None:
    constants = {"a": np.zeros((3, 0), np.int32)}
    check([helper.make_node("MatMul", ["a", "x"], ["y"])], {"x": np.ones((0, 4), np.int32)}, constants)


@pytest.mark.parametrize("target", ["c", "host,vector=v4", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize(
    ("kind", "ends"), [("Relu", []), ("Clip", ["low", "high"]), ("Max", ["low"]), ("Min", ["high"])]
)
def test_an_activation_behind_a_layer_hides_no_nan(kind: str, ends: list[str], target: str) -> None:
    if target.startswith("cortex-") and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    x = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4) - 32
    x[0, 1, 2, 2] = NAN
    weights = np.eye(8, 4, dtype=np.float32).reshape(8, 4, 1, 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node(kind, ["a", *ends], ["y"])]
    check(nodes, {"x": x}, {"w": weights, "low": np.float32(-1), "high": np.float32(6)}, target)


def test_a_choice_between_one_quantised_number_and_another() -> None:
    """Without an axis, as a product of two vectors is."""
    scale, zero = np.float32(0.5), np.int8(3)
    constants = {"c": np.asarray(False), "s": scale, "z": zero, "n": np.int8(76), "t": np.float32(0.25)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["n", "s", "z"], ["b"]),
        helper.make_node("MatMul", ["a", "a"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("Where", ["c", "r", "b"], ["w"]),
        helper.make_node("QuantizeLinear", ["w", "t", "z"], ["y"]),
    ]
    check(nodes, {"x": np.asarray([5, -7, 3], np.int8)}, constants)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["Mish", "Exp"])
def test_a_function_of_constant_halves_is_rounded_once(kind: str) -> None:
    """Powers within it are beyond their type, or the result is, of which the compiler says nothing."""
    constants = {"c": np.asarray([11, 20, 100, 65504], np.float16)}
    nodes = [helper.make_node(kind, ["c"], ["m"]), helper.make_node("Add", ["m", "x"], ["y"])]
    check(nodes, {"x": np.zeros(4, np.float16)}, constants)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_the_place_of_the_best_of_constants_is_that_of_numbers_that_are_given(kind: str, last: int) -> None:
    c = np.asarray([[1, NAN, 3, 3], [NAN, 1, -1, 2], [-INFINITE, NAN, NAN, 1], [2, 1, 1, NAN]], np.float32)
    given = helper.make_node(kind, ["x"], ["g"], axis=1, keepdims=0, select_last_index=last)
    known = helper.make_node(kind, ["c"], ["k"], axis=1, keepdims=0, select_last_index=last)
    nodes = [given, known, helper.make_node("Sub", ["g", "k"], ["y"])]
    check(nodes, {"x": c}, {"c": c})


def test_rows_stay_floats_where_groups_of_weights_have_an_order() -> None:
    """As in ONNX Runtime, whatever the accuracy that the file asks for: its bytes take no order."""
    rng = np.random.default_rng(3)
    weights, scales = rng.integers(0, 256, (3, 2, 8), np.uint8), np.full(6, 0.03125, np.float32)
    constants = {"b": weights, "s": scales, "g": np.arange(32, dtype=np.int32) // 16}
    given = {"K": 32, "N": 3, "bits": 4, "block_size": 16, "accuracy_level": 4}
    node = helper.make_node("MatMulNBits", ["x", "b", "s", "", "g"], ["y"], domain="com.microsoft", **given)
    x = rng.integers(-40, 40, (2, 32)).astype(np.float32) / 64  # sums of such products are exact
    check([node], {"x": x}, constants)
