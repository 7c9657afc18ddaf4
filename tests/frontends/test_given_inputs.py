"""What --constant and --dim say of inputs: numbers and extents are taken as they are, or refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node

from aot_model.cli.values import elements
from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings, given_elements
from aot_model.frontends.onnx import read_onnx
from aot_model.ir.types import DType, TensorType
from onnx_models import model, save, tensor

NUMBERS = (0, 1, -1, 0.5, 1.5, 2, 7, 8, -8, -9, 127, 128, 255, 256, -129, 2.0**24 + 1, 1e-3, 2.5e-6, 448, 449,
           57344, 65504, 65520, 70000, 1e39, -1e39, 1e300, 10**400, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
           -(2**63), float("inf"), float("-inf"), float("nan"))  # fmt: skip
TYPES = [t for t in DType if not t.is_string]


def _kept(value: float, dtype: DType) -> bool:
    """Whether a type has a number: as it is, or of real ones the neighbours on both sides of it."""
    if not dtype.is_float:
        return (
            value == value
            and abs(value) != np.inf
            and value == int(value)
            and (dtype.limits[0] <= value <= dtype.limits[1])
        )
    own = np.arange(1 << dtype.bits, dtype=np.uint32) if dtype.bits <= 16 else None
    if own is None:
        most = float(np.finfo(dtype.numpy).max)
        return value != value or abs(value) == np.inf or abs(value) <= most
    storage = np.uint16 if dtype.bits == 16 else np.uint8
    with np.errstate(invalid="ignore"):
        every = own.astype(storage).view(dtype.numpy).astype(np.float64)
    if value != value:
        return bool(np.isnan(every).any())
    if abs(value) == np.inf:
        return bool((every == value).any())
    finite = every[np.isfinite(every)]
    return abs(value) <= float(finite.max()) and (value > 0 or bool(finite.min() <= value))


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.label)
def test_a_constant_is_the_number_that_is_given_or_refused(dtype: DType) -> None:
    for value in NUMBERS:
        if not _kept(value, dtype):
            with pytest.raises(ValueError, match=r"is none of|is more than|there is no"):
                given_elements([value], TensorType(dtype, (2,)))
            continue
        for given in ([value], [value, value]):
            found = given_elements(given, TensorType(dtype, (2,)))
            assert found.dtype == dtype.numpy and found.shape == (2,)
            if dtype.is_float:
                wanted = np.full(2, float(value)).astype(dtype.numpy)
                assert found.tobytes() == wanted.tobytes()
            else:
                assert [int(v) for v in found] == [value, value]


def test_each_element_has_its_own_number(tmp_path: Path) -> None:
    """Also beside one with a fraction or a sign: no number goes through a type that has not got it."""
    inputs = [tensor("c", [2, 2], TensorProto.INT64), tensor("x", [4])]
    nodes = [node("Identity", ["c"], ["y"]), node("Identity", ["x"], ["z"])]
    path = save(
        model(nodes, inputs, [tensor("y", None, TensorProto.INT64), tensor("z", None)]), tmp_path / "m.onnx"
    )
    said = dict([elements("c=9007199254740993,0.0,-9223372036854775808,9223372036854775807")])
    found = read_onnx(path, Bindings(constants=said)).constants["c"]
    assert found.tolist() == [[9007199254740993, 0], [-(2**63), 2**63 - 1]]
    with pytest.raises(CompileError, match=r"2\.5 is none of.*\[E203\]"):
        read_onnx(path, Bindings(constants=dict([elements("c=2.5")])))
    with pytest.raises(CompileError, match=r"3 values.*\[E203\]"):
        read_onnx(path, Bindings(constants=dict([elements("c=1,2,3")])))


def test_strings_are_not_given_as_numbers() -> None:
    with pytest.raises(ValueError, match="not strings"):
        given_elements([1], TensorType(DType.STRING16, ()))


def _sequence(name: str, shape: Sequence[int | str | None] | None) -> onnx.ModelProto:
    info = helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, shape)
    return model([node("SequenceAt", [name, "k"], ["y"])], [info], [tensor("y", None)], {"k": np.asarray(0)})


@pytest.mark.parametrize(
    ("name", "shape", "dims", "found", "notes"),
    [
        ("s", ["N", 3], {"N": 4}, [(4, 3), (4, 3)], 0),
        ("s", ["N", 3], {}, [(1, 3), (1, 3)], 2),  # as of a tensor, with a note
        ("s", ["N", 3], {"s:1:0": 5}, [(1, 3), (5, 3)], 1),
        ("s", [None, 3], {"s:0:0": 2, "s:1:0": 5, "s:1:1": 3}, [(2, 3), (5, 3)], 0),
        ("s", None, {"s:0:0": 2, "s:0:1": 7}, [(2, 7), ()], 2),
        ("in:0", [None, None], {"in:0:0:0": 2, "in:0:0:1": 7, "in:0:1:1": 8}, [(2, 7), (1, 8)], 1),
    ],
)
def test_extents_of_elements(
    name: str,
    shape: Sequence[int | str | None] | None,
    dims: dict[str, int],
    found: list[tuple[int, ...]],
    notes: int,
    tmp_path: Path,
) -> None:
    path = save(_sequence(name, shape), tmp_path / "m.onnx")
    read = read_onnx(path, Bindings({f"{name}:length": 2, **dims}))
    assert [v.shape for v in read.graph.inputs] == found
    assert len(read.notes) == notes


@pytest.mark.parametrize(
    ("shape", "dims", "says"),
    [
        (["N", "M"], {"N": 4}, "dimension 1 ('M') of input 's_0' is dynamic"),
        (["N", 3], {"s:0:1": 9}, "--dim s:0:1=9: the file says that input 's_0' has 3 there"),
        (["N", 3], {"s:0:2": 9}, "unknown dimensions: s:0:2"),
        (["N", 3], {"s:2:0": 9}, "unknown dimensions: s:2:0"),
        (["N", 3], {"s:0:a": 9}, "unknown dimensions: s:0:a"),
        (None, {"s:0:1": 9}, "unknown dimensions: s:0:1"),  # of axis 0 nothing is said
        ([-5, 3], {}, ""),
        ([1 << 20, 1 << 20], {}, "larger than 2 GB"),
    ],
)
def test_extents_that_elements_do_not_have(
    shape: Sequence[int | str | None] | None, dims: dict[str, int], says: str, tmp_path: Path
) -> None:
    path = save(_sequence("s", shape), tmp_path / "m.onnx")
    if not says:  # a number below 0 is an open dimension, as of a tensor
        assert read_onnx(path, Bindings({"s:length": 1})).graph.inputs[0].shape == (1, 3)
        return
    with pytest.raises(CompileError, match=re.escape(says)):
        read_onnx(path, Bindings({"s:length": 2, **dims}))


def test_an_optional_has_one_element_at_most(tmp_path: Path) -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    nodes = [node("OptionalGetElement", ["o"], ["y"])]
    path = save(model(nodes, [helper.make_value_info("o", kind)], [tensor("y", [2])]), tmp_path / "m.onnx")
    assert read_onnx(path, Bindings({"o:length": 1})).graph.inputs[0].name == "o"
    with pytest.raises(CompileError, match=r"--dim o:length=2: the optional 'o' has 0 or 1"):
        read_onnx(path, Bindings({"o:length": 2}))


def test_an_extent_of_the_file_may_be_said_once_more(tmp_path: Path) -> None:
    path = save(
        model([node("Relu", ["x"], ["y"])], [tensor("x", ["N", 3])], [tensor("y", None)]), tmp_path / "m"
    )
    assert read_onnx(path, Bindings({"N": 2, "x:1": 3})).graph.inputs[0].shape == (2, 3)
    with pytest.raises(CompileError, match=r"--dim x:1=4: the file says"):
        read_onnx(path, Bindings({"N": 2, "x:1": 4}))
