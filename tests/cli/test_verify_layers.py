"""`verify --layers`: tensors of the generated code beside those of a reference, and which layer is the first
that is off.
"""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host import program as host_run
from aot_model.host.comparison import Tolerance, share_of
from aot_model.ir.types import DType
from aot_model.layers.choice import open_reference
from aot_model.layers.litert import LiteRT
from aot_model.layers.measure import Measured, measure
from aot_model.layers.reference import Reference
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, small_cnn, tensor
from tflite_models import BOOL, FLOAT16, FLOAT32, INT4, INT8, INT32, G, Op, T
from tflite_models import build as build_tflite

RNG = np.random.default_rng(5)


def _measured(
    path: Path,
    folder: Path,
    reference: Reference,
    inputs: list[np.ndarray],
    edit: tuple[str, str] | None = None,
    target: str = "c",
    times: int = 1,
) -> Measured:
    """The layers of a model, its generated C edited to be wrong: the first `times` places, all where that is
    -1.
    """
    compiled = compile_model(Request(path, "m", target, library=Options(trace=True)))
    texts = dict(compiled.texts)
    if edit is not None:
        assert edit[0] in texts["m.c"]
        texts["m.c"] = texts["m.c"].replace(*edit, times)
    program = host_run.build(compiled.view, texts, folder)
    return measure(program, program.run([inputs]), [inputs], reference, Tolerance())


def _chain() -> Any:
    """Transposed and fused all over: convolution, batch normalisation, activation, reduction, product,
    concatenation.
    """
    c = {
        "w1": RNG.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5,
        "s": RNG.uniform(0.5, 2, 8).astype(np.float32),
        "b": RNG.standard_normal(8).astype(np.float32),
        "m": RNG.standard_normal(8).astype(np.float32),
        "v": RNG.uniform(0.5, 2, 8).astype(np.float32),
        "w2": RNG.standard_normal((8, 8, 1, 1)).astype(np.float32) / 3,
        "axes": np.asarray([2, 3]),
        "w3": RNG.standard_normal((16, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["conv1"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["conv1", "s", "b", "m", "v"], ["bn"], name="norm"),
        helper.make_node("Relu", ["bn"], ["relu1"], name="relu"),
        helper.make_node("Conv", ["relu1", "w2"], ["conv2"], name="second"),
        helper.make_node("Sigmoid", ["conv2"], ["gate"], name="gate"),
        helper.make_node("Mul", ["relu1", "gate"], ["gated"], name="gating"),
        helper.make_node("ReduceMean", ["gated", "axes"], ["mean"], name="mean", keepdims=0),
        helper.make_node("ReduceMax", ["relu1", "axes"], ["most"], name="most", keepdims=0),
        helper.make_node("Concat", ["mean", "most"], ["both"], name="both", axis=1),
        helper.make_node("MatMul", ["both", "w3"], ["y"], name="last"),
    ]
    return model(nodes, [tensor("x", (1, 3, 6, 7))], [tensor("y", (1, 5))], c)


@pytest.mark.parametrize("name", ["onnxruntime", "onnx"])
@pytest.mark.parametrize("target", ["c", "host"])
def test_tensors_are_found_through_fusion_and_layout(tmp_path: Path, name: str, target: str) -> None:
    path = save(_chain(), tmp_path / "m.onnx")
    x = RNG.standard_normal((1, 3, 6, 7)).astype(np.float32)
    found = _measured(path, tmp_path / "b", open_reference(path, "onnx", name, {}), [x], target=target)
    by_name = {layer.name: layer for layer in found.layers}
    assert {"relu1", "mean", "most", "y"} <= set(by_name)
    assert (
        {layer.status for layer in found.layers} == {"ok"} and found.first_off is None and not found.refused
    )
    assert [n.kind for n in by_name["relu1"].nodes] == ["Conv", "BatchNormalization", "Relu"]
    assert "conv1" not in by_name  # the normalisation is in its weights: what it would hold is nowhere


def test_the_first_layer_that_is_off(tmp_path: Path) -> None:
    """An error in one layer: its own there, inherited behind it, and none before it."""
    path = save(_chain(), tmp_path / "m.onnx")
    x = RNG.standard_normal((1, 3, 6, 7)).astype(np.float32)
    found = _measured(
        path,
        tmp_path / "b",
        open_reference(path, "onnx", None, {}),
        [x],
        ("aot_model_logistic_float32(", "0.9f * aot_model_logistic_float32("),
        times=-1,
    )
    first = found.first_off
    assert first is not None and "gate" in [n.name for n in first.nodes]
    assert first.own is not None and first.own.of_range is not None and 0.05 < first.own.of_range < 0.15
    status = {layer.name: layer.status for layer in found.layers}
    assert status["relu1"] == status["most"] == "ok"
    assert status["y"] == "inherited"
    assert list(status.values()).count("off") == 1


def test_chains_of_float16(tmp_path: Path) -> None:
    """ONNX Runtime rounds a chain once, the program after each node: both right; a factor of 1.03 is not."""
    x = RNG.standard_normal((64, 64)).astype(np.float16)
    half = {f"c{i}": RNG.uniform(0.9, 1.1, (1, 64)).astype(np.float16) for i in range(30)}
    nodes = [helper.make_node("Mul" if i % 3 else "Add", [f"t{i}" if i else "x", f"c{i}"], [f"t{i + 1}"])
             for i in range(30)]  # fmt: skip
    ends = [[tensor(name, (64, 64), TensorProto.FLOAT16)] for name in ("x", "t30")]
    path = save(model(nodes, *ends, half), tmp_path / "m.onnx")
    reference = open_reference(path, "onnx", None, {})
    compiled = compile_model(Request(path, "m", "c", library=Options(trace=True)))
    program = host_run.build(compiled.view, compiled.texts, tmp_path / "b")
    (row,) = program.run([[x]])
    tolerance = Tolerance(share=share_of([DType.FLOAT16]))
    layers = measure(program, [row], [[x]], reference, tolerance).layers
    assert max(len(layer.nodes) for layer in layers) > 4 and {layer.status for layer in layers} == {"ok"}
    wrong = [array * np.float16(1.03) for array in row]
    layers = measure(program, [wrong], [[x]], reference, tolerance).layers
    assert layers[0].status == "off"


def test_integers_are_off_by_steps(tmp_path: Path) -> None:
    scale, zero = np.float32(0.05), np.uint8(120)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
        helper.make_node("Tanh", ["xf"], ["t"], name="tanh"),
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["tq"]),
        helper.make_node("DequantizeLinear", ["tq", "s", "z"], ["y"]),
    ]
    path = save(
        model(
            nodes,
            [tensor("x", (64,))],
            [tensor("y", (64,)), tensor("tq", (64,), TensorProto.UINT8)],
            {"s": scale, "z": zero},
        ),
        tmp_path / "m.onnx",
    )
    x = RNG.standard_normal(64).astype(np.float32)
    reference = open_reference(path, "onnx", None, {})
    assert {layer.status for layer in _measured(path, tmp_path / "b", reference, [x]).layers} == {"ok"}
    for entry, status in ((1, "rounding"), (3, "off")):
        found = _measured(
            path,
            tmp_path / f"b{entry}",
            reference,
            [np.full(64, -7, np.float32)],
            ("100, ", f"{100 + entry}, "),
        )
        assert next(layer for layer in found.layers if layer.name == "tq").status == status


@pytest.mark.parametrize(("factor", "status"), [(1.0, "ok"), (1.02, "rounding"), (1.05, "off")])
def test_a_chain_is_off_by_a_step_for_each_of_its_roundings(
    tmp_path: Path, factor: float, status: str
) -> None:
    """Two of QuantizeLinear: two steps of 100, not five."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"]),
        helper.make_node("Relu", ["xf"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["rq"]),
    ]
    ends = [tensor("x", (8,))], [tensor("rq", (8,), TensorProto.UINT8)]
    constants = {"s": np.float32(0.05), "z": np.uint8(0)}
    path = save(model(nodes, *ends, constants), tmp_path / "m.onnx")
    reference = open_reference(path, "onnx", None, {})
    x = np.full(8, 5, np.float32)
    compiled = compile_model(Request(path, "m", "c", library=Options(trace=True)))
    program = host_run.build(compiled.view, compiled.texts, tmp_path / "b")
    (row,) = program.run([[x]])
    off = [np.rint(array * factor).astype(array.dtype) for array in row]
    (layer,) = measure(program, [off], [[x]], reference, Tolerance()).layers[-1:]
    assert len(layer.nodes) > 1 and layer.status == status


def _tflite(folder: Path) -> Path:
    w = RNG.standard_normal((4, 6)).astype(np.float32)
    tensors = [
        T("x", (1, 6), FLOAT32, ()),
        T("w", (4, 6), FLOAT32, (), data=w),
        T("fc", (1, 4), FLOAT32, ()),
        T("t", (1, 4), FLOAT32, ()),
        T("y", (1, 4), FLOAT32, ()),
        T("beside", (1, 4), FLOAT32, ()),
    ]
    operators = [
        Op("FULLY_CONNECTED", (0, 1, -1), (2,), "FullyConnectedOptions"), Op("TANH", (2,), (3,)),
        Op("SOFTMAX", (3,), (4,), "SoftmaxOptions", {"Beta": 1.0}), Op("ABS", (2,), (5,), "AbsOptions"),
    ]  # fmt: skip
    path = folder / "m.tflite"
    path.write_bytes(build_tflite(tensors, operators, (0,), (4, 5)))
    return path


def test_tflite_beside_litert(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = _tflite(tmp_path)
    reference = open_reference(path, "tflite", None, {})
    x = RNG.standard_normal((1, 6)).astype(np.float32)
    found = _measured(path, tmp_path / "b", reference, [x])
    assert {"fc", "y", "beside"} <= {layer.name for layer in found.layers} and found.first_off is None
    call = "aot_model_libm_tanh_float32("
    wrong = _measured(path, tmp_path / "w", reference, [x], (call, f"0.5f * {call}"))
    assert wrong.first_off is not None and "TANH" in [n.kind for n in wrong.first_off.nodes]


def test_infinities_beside_litert(tmp_path: Path) -> None:
    """Its sums end at the largest number, the program's are infinite; a number is no infinity."""
    pytest.importorskip("ai_edge_litert")
    mask = np.asarray([0, -np.inf, 0, np.inf], np.float32)
    tensors = [T("x", (4,), FLOAT32, scale=()), T("m", (4,), FLOAT32, scale=(), data=mask)]
    add = Op("ADD", (0, 1), (2,), "AddOptions", {"FusedActivationFunction": 0})
    path = tmp_path / "m.tflite"
    path.write_bytes(build_tflite([*tensors, T("y", (4,), FLOAT32, scale=())], [add], [0], [2]))
    reference, x = open_reference(path, "tflite", None, {}), np.ones(4, np.float32)
    assert _measured(path, tmp_path / "b", reference, [x]).first_off is None
    wrong = _measured(path, tmp_path / "w", reference, [x], ("-INFINITY", "-1.0e30f"))
    assert wrong.first_off is not None


def test_operators_without_a_reference_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    tensors = [T(name, (3,), FLOAT32, scale=()) for name in "xy"]
    path = tmp_path / "m.tflite"
    path.write_bytes(build_tflite(tensors, [Op("CEIL", (0,), (1,))], [0], [1]))
    reference = open_reference(path, "tflite", None, {})
    found = _measured(path, tmp_path / "b", reference, [np.asarray([0.5, -1.5, 2.0], np.float32)])
    assert [layer.status for layer in found.layers] == ["ok"] and "optimised kernels" in found.reference


def test_sums_of_signed_integers_beside_litert(tmp_path: Path) -> None:
    """Its reference kernel takes them for unsigned bytes."""
    pytest.importorskip("ai_edge_litert")
    axis = np.asarray([1], np.int32)
    tensors = [T("x", (2, 8), INT8, (0.5,), (-3,)), T("axis", (1,), INT32, (), data=axis)]
    path = tmp_path / "m.tflite"
    operator = Op("SUM", (0, 1), (2,), "ReducerOptions", {"KeepDims": False})
    path.write_bytes(build_tflite([*tensors, T("y", (2,), INT8, (2.0,), (5,))], [operator], [0], [2]))
    x = RNG.integers(-128, 128, (2, 8)).astype(np.int8)
    found = _measured(path, tmp_path / "b", open_reference(path, "tflite", None, {}), [x])
    assert found.layers and found.first_off is None and "optimised kernels" in found.reference


def test_weights_of_blocks_beside_litert(tmp_path: Path) -> None:
    """Its reference kernel leaves their products out; the optimised one makes bytes of the input first."""
    pytest.importorskip("ai_edge_litert")
    scales = RNG.uniform(0.01, 0.1, (8, 2)).astype(np.float16)
    weights = RNG.integers(0, 256, (8, 32)).astype(np.uint8)
    x, y = (T(name, (5, columns), FLOAT32, scale=()) for name, columns in (("x", 64), ("y", 8)))
    w = T("w", (8, 64), INT4, scale=(), data=weights, blocks=(2, -1, 32))
    tensors = [x, w, T("s", (8, 2), FLOAT16, scale=(), data=scales), y]
    path = tmp_path / "m.tflite"
    layer = Op("FULLY_CONNECTED", (0, 1, -1), (3,), "FullyConnectedOptions")
    path.write_bytes(build_tflite(tensors, [layer], [0], [3]))
    given = RNG.standard_normal((5, 64)).astype(np.float32)
    found = _measured(path, tmp_path / "b", open_reference(path, "tflite", None, {}), [given])
    assert found.layers and found.first_off is None and "optimised kernels" in found.reference


def test_local_response_normalisation_beside_litert(tmp_path: Path) -> None:
    """Its reference kernel leaves out the last channel of each window."""
    pytest.importorskip("ai_edge_litert")
    options = {"Radius": 1, "Bias": 1.0, "Alpha": 1.0, "Beta": 0.5}
    operator = Op("LOCAL_RESPONSE_NORMALIZATION", (0,), (1,), "LocalResponseNormalizationOptions", options)
    path = tmp_path / "m.tflite"
    tensors = [T(name, (1, 2, 3, 4), FLOAT32, ()) for name in "xy"]
    path.write_bytes(build_tflite(tensors, [operator], [0], [1]))
    x = RNG.standard_normal((1, 2, 3, 4)).astype(np.float32)
    found = _measured(path, tmp_path / "b", open_reference(path, "tflite", None, {}), [x])
    assert [layer.status for layer in found.layers] == ["ok"]


def test_what_a_loop_of_litert_does_not_write(tmp_path: Path) -> None:
    """A loop doubles a number and hands a list on as it is, which nothing reads afterwards: at times LiteRT
    shows other tensors' memory as that result.
    """
    pytest.importorskip("ai_edge_litert")

    def numbers(suffix: str) -> list[T]:
        return [T(f"{n}{suffix}", shape, FLOAT32, ()) for n, shape in (("list", (64,)), ("number", ()))]

    limit = T("limit", (), FLOAT32, (), data=np.asarray(50, np.float32))
    again = G([*numbers(""), limit, T("c", (), BOOL, ())], [Op("LESS", (1, 2), (3,))], [0, 1], [3])
    body = G([*numbers(""), numbers(" doubled")[1]], [Op("ADD", (1, 1), (2,), "AddOptions")], [0, 1], [0, 2])
    operators = [
        Op("NEG", (0,), (2,)),
        Op("WHILE", (2, 1), (3, 4), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}),
        Op("NEG", (4,), (5,)), Op("NEG", (2,), (6,)),
    ]  # fmt: skip
    lists = [numbers(f" {k}")[0] for k in range(3)]
    scalars = [numbers(f" {k}")[1] for k in range(3)]
    tensors = [lists[0], scalars[0], lists[1], lists[2], scalars[1], scalars[2], numbers(" beside")[0]]
    path = tmp_path / "m.tflite"
    path.write_bytes(build_tflite(tensors, operators, [0, 1], [5, 6], again, body))
    given = [RNG.standard_normal(64).astype(np.float32), np.asarray(3, np.float32)]
    reference = LiteRT(path, {})
    assert reference.unwritten == {3}
    assert set(reference.run(given, range(2, 7))) == {2, 4, 5, 6}
    assert _measured(path, tmp_path / "b", reference, given).first_off is None


def test_a_reference_that_ends_its_process_is_an_error(tmp_path: Path) -> None:
    """As LiteRT does with files that it cannot take; the next run has a process of its own."""
    path = _tflite(tmp_path)
    reference = LiteRT(path, {})
    given = [RNG.standard_normal((1, 6)).astype(np.float32)]
    before = reference.run(given, reference.outputs)
    running = reference._process._running
    assert running is not None
    running[0].kill()
    with pytest.raises(CompileError, match=r"its process ended \(signal SIGKILL\)"):
        reference.run(given, reference.outputs)
    after = reference.run(given, reference.outputs)
    assert [after[k].tobytes() for k in reference.outputs] == [before[k].tobytes() for k in reference.outputs]


# --- the command --------------------------------------------------------------------------------------------


def test_outputs_that_are_constants(tmp_path: Path) -> None:
    """No step of the program writes them; they are judged like all others."""
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Mul", ["shape", "two"], ["y"])]
    proto = model(
        nodes, [tensor("x", [2, 3])], [tensor("y", [2], TensorProto.INT64)], {"two": np.asarray([2, 2])}
    )
    path = save(proto, tmp_path / "m.onnx")
    reference = open_reference(path, "onnx", "onnxruntime", {})
    given = np.zeros((2, 3), np.float32)
    measured = _measured(path, tmp_path / "right", reference, [given])
    assert [(layer.key, layer.status) for layer in measured.layers] == [("y", "ok")]
    wrong = _measured(path, tmp_path / "wrong", reference, [given], edit=("INT64_C(6)", "INT64_C(7)"))
    assert [(layer.key, layer.status) for layer in wrong.layers] == [("y", "off")]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["verify", str(path), "--layers", "--all"]) == 0
    out = capsys.readouterr().out
    assert "ONNX Runtime" in out and "3 vectors" in out and "off" not in out.replace("optimisations off", "")
    assert (
        main(
            [
                "verify",
                str(path),
                "--layers",
                "--json",
                "--reference",
                "onnx",
                "--random",
                "2",
                "--seed",
                "7",
                "--target",
                "c",
            ]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["vectors"] == 2 and found["first_off"] is None and found["tensors"]
    assert all(t["own"]["differing"] == 0 for t in found["tensors"])


def test_command_says_what_is_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(_chain(), tmp_path / "m.onnx")
    build = host_run.build

    def wrong(view: Any, texts: dict[str, str], *more: Any) -> Any:
        return build(
            view,
            {
                k: t.replace("aot_model_logistic_float32(", "0.9f * aot_model_logistic_float32(")
                for k, t in texts.items()
            },
            *more,
        )

    monkeypatch.setattr(host_run, "build", wrong)
    assert main(["verify", str(path), "--layers", "--target", "c"]) == 1
    said = capsys.readouterr()
    assert (
        "layer 'gated' is off" in said.err
        or "layer 'gate' is off" in said.err
        or "layer 'mean' is off" in said.err
    )
    assert (
        "in the model file: " in said.out
        and "Sigmoid 'gate'" in said.out
        and "in the program: m_" in said.out
    )


def test_what_is_missing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["verify", str(path)]) == 1
    assert "--vectors is missing" in capsys.readouterr().err
    assert main(["verify", str(path), "--layers", "--reference", "litert"]) == 1
    assert "does not read ONNX" in capsys.readouterr().err
    imported = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.split(".")[0] in ("onnxruntime", "ai_edge_litert"):
            raise ImportError(name)
        return imported(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["verify", str(path), "--layers", "--reference", "onnxruntime"]) == 1
    assert "pip install onnxruntime" in capsys.readouterr().err
    assert main(["verify", str(_tflite(tmp_path)), "--layers"]) == 1
    assert "pip install ai-edge-litert" in capsys.readouterr().err
    assert main(["verify", str(path), "--layers"]) == 0
    assert "reference evaluator of onnx" in capsys.readouterr().out


def test_compiled_out(tmp_path: Path) -> None:
    """A library without trace has nothing of it; one with it announces each tensor behind the step that
    completes it.
    """
    path = save(_chain(), tmp_path / "m.onnx")
    plain = compile_model(Request(path, "m", "c"))
    assert "trace" not in "".join(plain.texts.values()) and "_tell" not in "".join(plain.texts.values())
    traced = compile_model(Request(path, "m", "c", library=Options(trace=True)))
    assert traced.texts["m.c"].count("m_tell(") == len(traced.view.traced) + 1 > 3
    assert f"M_TRACE_SIZE {len(traced.view.traced)}u" in traced.texts["m.h"]
