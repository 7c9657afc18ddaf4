"""Resize finds its neighbours and weights in float32 as ONNX Runtime does: as many elements, the same nearest
ones, and linear interpolation bit for bit, since what quantises it is often exactly between two integers.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build
from aot_model.ops.resample import Resize
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

F32 = DType.FLOAT32

KINDS = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")


def _resize(shape: list[int], factors: list[float], sizes: list[int] | None, **attributes: str) -> Case:
    last = numpy_helper.from_array(
        np.asarray(factors, np.float32) if sizes is None else np.asarray(sizes), "last"
    )
    node = helper.make_node(
        "Resize", ["x", "", "last"] if sizes is None else ["x", "", "", "last"], ["y"], **attributes
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    proto = helper.make_model(
        helper.make_graph([node], "g", [x], [y], [last]),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=9,
    )
    data = np.asarray(np.random.default_rng(4).standard_normal(shape), np.float32)
    return Case(f"{shape} {factors} {sizes} {attributes}", proto, (data,))


def _check(cases: list[Case]) -> None:
    for case, outcome in zip(cases, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (want,) = session.run(None, {"x": case.inputs[0]})
        np.testing.assert_array_equal(outcome.outputs[0], want, err_msg=case.name)


def test_as_many_elements_as_a_product_of_float32() -> None:
    """10 * 5.7 in float32 is 57, in float64 56.999998."""
    pairs = [(10, 5.7), (3, 7 / 3), (24, 14 / 24)]
    _check(
        [
            _resize([1, 1, 2, n], [1, 1, 2, s], None, mode=m, coordinate_transformation_mode="half_pixel")
            for n, s in pairs
            for m in ("nearest", "linear")
        ]
    )


@pytest.mark.parametrize("kind", KINDS[:2])
def test_the_nearest(kind: str) -> None:
    """12 / float32(2.4) is 5 in float32, and just below in float64."""
    pairs = [(10, 24), (21, 60), (9, 57), (22, 4), (12, 52)]
    _check(
        [
            _resize(
                [1, 1, 1, n],
                [1, 1, 1, m / n],
                None,
                mode="nearest",
                nearest_mode="floor",
                coordinate_transformation_mode=kind,
            )
            for n, m in pairs
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_linear_bit_for_bit(kind: str) -> None:
    """In the last row and column, too, where halves of one element are added."""
    shapes = [
        ([1, 3, 4, 4], [1, 1, 2, 2]),
        ([1, 2, 5, 7], [1, 1, 2, 3]),
        ([1, 2, 6, 5], [1, 1, 0.5, 0.8]),
        ([1, 5, 7, 3], [1, 2, 2, 1]),
        ([1, 2, 4, 6], [1, 1, 1.5, 2.5]),
    ]
    if kind != "align_corners":  # which spreads over the exact length, other than in ONNX Runtime
        shapes.append(([1, 2, 4, 5], [1, 1, 7 / 4, 3 / 5]))
    _check([_resize(s, f, None, mode="linear", coordinate_transformation_mode=kind) for s, f in shapes])


@pytest.mark.parametrize(("count", "fits"), [(8, True), (6, False), (4, False)])
def test_a_region_has_two_numbers_for_each_axis(count: int, fits: bool) -> None:
    roi, scales = Value("roi", TensorType(F32, (count,)), np.linspace(0, 1, count, dtype=np.float32)), Value(
        "scales", TensorType(F32, (4,)), np.asarray([1, 1, 2, 2], np.float32))  # fmt: skip
    resize = Resize(coordinate_transformation_mode="tf_crop_and_resize")
    inputs = [Value("x", TensorType(F32, (1, 2, 4, 5))), roi, scales]
    if fits:
        assert resize.expand(Build([], "resize"), inputs)
        return
    with pytest.raises(OperatorError, match=f"region of interest has {count} numbers"):
        resize.expand(Build([], "resize"), inputs)


@pytest.mark.parametrize("factor", [np.inf, np.nan, 3e38, 0.0, -1.0])
def test_scales_that_are_no_lengths(factor: float) -> None:
    """3e38 is a number, four times that is none in float32."""
    scales = Value("scales", TensorType(F32, (4,)), np.asarray([1, 1, factor, 2], np.float32))
    with pytest.raises(OperatorError, match="not positive, or too large"):
        Resize().infer([Value("x", TensorType(F32, (1, 2, 4, 5))), Value("", TensorType(F32, (0,))), scales])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("kind", KINDS)
def test_where_onnx_runtime_differs_is_said(mode: str, kind: str) -> None:
    """There, and nowhere else; the nearest pixels of other places may be the same ones."""
    x = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    few = [(0.6, 1.5), (1.3, 0.7), (0.3, 0.4), (1.1, 1.1), (0.19, 2.3), (1.4, 5 / 7)]
    cases, said = [], []
    for some in [(2, 2), (1.5, 1), (1, 1), *few]:
        last = np.asarray(some, np.float32)
        attributes = {"mode": mode, "coordinate_transformation_mode": kind}
        node = helper.make_node("Resize", ["x", "", "last"], ["y"], **attributes)
        proto = model(
            [node], [tensor("x", x.shape)], [onnx.ValueInfoProto(name="y")], {"last": last}, opset=19
        )
        cases.append(Case(str(some), proto, (x,)))
        inputs = [Value("x", TensorType(F32, x.shape)), None, constant("last", last)]
        said.append(Resize(**attributes).remarks(inputs))  # type: ignore[arg-type]
    for case, outcome, remarks in zip(cases, run_cases(cases, "c", flags=("-O0",)), said, strict=True):
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (theirs,) = session.run(None, {"x": x})
        same = np.allclose(outcome.outputs[0], theirs, atol=1e-4)
        assert remarks or same, case.name
        assert not (remarks and same) or mode == "nearest", (case.name, remarks)
    assert any(said) and not all(said)


def test_a_note_of_a_model_names_the_node(tmp_path: Path) -> None:
    scales = {"s": np.asarray([1.5, 1.5], np.float32)}
    attributes = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], name="up", **attributes)
    proto = model([node], [tensor("x", (5, 4))], [tensor("y", (7, 6))], scales, opset=19)
    notes = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c")).notes
    assert len(notes) == 1 and notes[0].startswith("Resize 'up': pixels of axis 0 are spread over"), notes


@pytest.mark.parametrize(
    ("mode", "extent", "fits"),
    [
        ("nearest", 1 << 21, True),
        ("nearest", (1 << 22) + 2, False),
        ("linear", 1 << 21, True),
        ("cubic", 1 << 20, True),
        ("cubic", (1 << 21) + 2, False),
    ],
)
def test_tables_hold_so_many_places(mode: str, extent: int, fits: bool) -> None:
    """Half of so many elements become them: what a file of a few bytes may ask for has a limit."""
    x = Value("x", TensorType(F32, (1, extent // 2)))
    sizes = constant("sizes", np.asarray([1, extent]))
    with nullcontext() if fits else pytest.raises(OperatorError, match="its tables would have"):
        Resize(mode=mode).expand(Build([], "n"), [x, None, None, sizes])
