"""`compare`: which layer of a quantised model loses, on models that were broken on purpose."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.cli import main
from aot_model.layers.statistics import Histogram, Sums
from onnx_models import model, save, tensor

RNG = np.random.default_rng(8)
C = {
    "w1": RNG.standard_normal((8, 3, 3, 3)).astype(np.float32) / 4,
    "b1": RNG.standard_normal(8).astype(np.float32) / 4,
    "w2": RNG.standard_normal((12, 8, 3, 3)).astype(np.float32) / 6,
    "b2": RNG.standard_normal(12).astype(np.float32) / 4,
    "w3": RNG.standard_normal((12, 12, 1, 1)).astype(np.float32) / 3,
    "b3": RNG.standard_normal(12).astype(np.float32) / 4,
    "w4": RNG.standard_normal((12, 5)).astype(np.float32) / 3,
}  # fmt: skip
X = RNG.standard_normal((12, 1, 3, 8, 8)).astype(np.float32)
CONVOLUTIONS = (
    ("conv1", "x", "relu1", True),
    ("conv2", "relu1", "relu2", True),
    ("conv3", "relu2", "conv3", False),
)


def _float() -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["conv1"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["conv1"], ["relu1"], name="relu1"),
        helper.make_node("Conv", ["relu1", "w2", "b2"], ["conv2"], name="second", pads=[1] * 4),
        helper.make_node("Relu", ["conv2"], ["relu2"], name="relu2"),
        helper.make_node("Conv", ["relu2", "w3", "b3"], ["conv3"], name="third"),
        helper.make_node("GlobalAveragePool", ["conv3"], ["pool"], name="pool"),
        helper.make_node("Flatten", ["pool"], ["flat"], name="flat"),
        helper.make_node("MatMul", ["flat", "w4"], ["y"], name="last"),
    ]  # fmt: skip
    return model(nodes, [tensor("x", (1, 3, 8, 8))], [tensor("y", (1, 5))], C)


def _ranges() -> dict[str, tuple[float, float]]:
    """Of every tensor, as ONNX's own evaluator computes it."""
    from onnx.reference import ReferenceEvaluator

    proto = _float()
    names = [o for n in proto.graph.node for o in n.output]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    runs = [ReferenceEvaluator(proto).run(None, {"x": x}) for x in X]
    stacked = {n: np.stack([r[k] for r in runs]) for k, n in enumerate(names)} | {"x": X}
    return {n: (min(0.0, float(a.min())), max(0.0, float(a.max()))) for n, a in stacked.items()}


@dataclass
class Quantised:
    """A quantised model in the making. ranges, gains of weights and zero points can be made wrong."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=_ranges)
    gains: dict[str, Any] = field(default_factory=dict)
    read_with: dict[str, int] = field(default_factory=dict)
    """Steps that the zero point is off by where a tensor is read."""
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def through(self, name: str, real: str) -> str:
        """The tensor quantised and back; the names are those of ONNX Runtime's quantiser."""
        low, high = self.ranges[name]
        scale = np.float32((high - low) / 255)
        zero = np.int8(np.clip(round(-128 - low / float(scale)), -128, 127))
        self.constants |= {
            f"{name}_scale": scale,
            f"{name}_zero": zero,
            f"{name}_read": np.int8(int(zero) + self.read_with.get(name, 0)),
        }
        self.nodes += [
            helper.make_node(
                "QuantizeLinear",
                [real, f"{name}_scale", f"{name}_zero"],
                [f"{name}_QuantizeLinear_Output"],
                name=f"{name}_q",
            ),
            helper.make_node(
                "DequantizeLinear",
                [f"{name}_QuantizeLinear_Output", f"{name}_scale", f"{name}_read"],
                [f"{name}_DequantizeLinear_Output"],
                name=f"{name}_d",
            ),
        ]
        return f"{name}_DequantizeLinear_Output"

    def weights(self, name: str, axis: int) -> str:
        w = C[name]
        shape = [1] * w.ndim
        shape[axis] = -1
        scale = (np.abs(w).max(axis=tuple(k for k in range(w.ndim) if k != axis)) / 127).astype(np.float32)
        self.constants |= {
            f"{name}_quantized": np.round(w / scale.reshape(shape)).astype(np.int8),
            f"{name}_zero": np.zeros(scale.size, np.int8),
        }
        self.constants[f"{name}_scale"] = (scale * self.gains.get(name, 1)).astype(np.float32)
        self.nodes.append(
            helper.make_node(
                "DequantizeLinear",
                [f"{name}_quantized", f"{name}_scale", f"{name}_zero"],
                [f"{name}_real"],
                name=f"{name}_d",
                axis=axis,
            )
        )
        return f"{name}_real"

    def made(self, drop_relu: bool) -> Any:
        """drop_relu: its work is the range's, as quantisers have it: `conv1` is then what `relu1` was."""
        at = self.through("x", "x")
        for k, (conv, _, result, relu) in enumerate(CONVOLUTIONS, 1):
            kept = conv if drop_relu or not relu else result
            if kept != result:
                self.ranges[kept] = self.ranges[result]
            self.constants[f"b{k}"] = C[f"b{k}"]
            pads = {"pads": [1] * 4} if relu else {}
            self.nodes.append(
                helper.make_node("Conv", [at, self.weights(f"w{k}", 0), f"b{k}"], [conv], name=conv, **pads)
            )
            if relu and not drop_relu:
                self.nodes.append(helper.make_node("Relu", [conv], [result], name=result))
            at = self.through(kept, kept)
        self.nodes.append(helper.make_node("GlobalAveragePool", [at], ["pool"], name="pool"))
        self.nodes.append(helper.make_node("Flatten", [self.through("pool", "pool")], ["flat"], name="flat"))
        self.nodes.append(helper.make_node("MatMul", ["flat", self.weights("w4", 1)], ["y"], name="last"))
        return model(self.nodes, [tensor("x", (1, 3, 8, 8))], [tensor("y", (1, 5))], self.constants)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("compare")
    save(_float(), found / "float.onnx")
    np.savez(found / "data.npz", x=X[:, 0])
    return found


def _compared(folder: Path, quantised: Any, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    save(quantised, folder / "int8.onnx")
    capsys.readouterr()
    assert (
        main(
            [
                "compare",
                str(folder / "float.onnx"),
                str(folder / "int8.onnx"),
                "--inputs",
                str(folder / "data.npz"),
                "--json",
                *more,
            ]
        )
        == 0
    )
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("side", ["library", "reference"])
@pytest.mark.parametrize("drop_relu", [False, True])
def test_a_good_model_loses_nowhere(
    folder: Path, capsys: pytest.CaptureFixture[str], side: str, drop_relu: bool
) -> None:
    found = _compared(folder, Quantised().made(drop_relu), capsys, "--b", side)
    assert found["first_loss"] is None, found["words"]
    matched = {t["name"]: t["a"] for t in found["tensors"]}
    assert (
        matched["conv1" if drop_relu else "relu1"] == "relu1"
        and matched["y"] == "y"
        and matched["conv3"] == "conv3"
    )
    assert all(t["own"]["snr"] is None or t["own"]["snr"] > 30 for t in found["tensors"] if t["own"])
    if side == "library":
        assert all(t["program"]["functions"] for t in found["tensors"] if t["name"] != "x")


@pytest.mark.parametrize("side", ["library", "reference"])
def test_a_range_that_is_too_small(folder: Path, capsys: pytest.CaptureFixture[str], side: str) -> None:
    quantised = Quantised()
    low, high = quantised.ranges["conv3"]
    quantised.ranges["conv3"] = (low / 3, high / 3)
    found = _compared(folder, quantised.made(False), capsys, "--b", side)
    assert found["first_loss"] == "conv3" and "conv3's output saturates in " in found["words"]
    third = next(t for t in found["tensors"] if t["name"] == "conv3")
    reached = re.search(r"was calibrated to (\S+) to (\S+), data reach (\S+) to (\S+)$", found["words"])
    assert reached is not None, found["words"]
    assert [float(n) for n in reached.groups()] == pytest.approx([low / 3, high / 3, low, high], rel=0.03)
    assert third["own"]["saturated"] > 0.01 and third["limits"][1] == pytest.approx(high / 3, rel=0.02)
    assert [t["name"] for t in found["tensors"] if t["loses"]] == ["conv3"], (
        "what is behind it is right for what it is given"
    )


def test_a_scale_of_weights_that_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all channels, and of one; a reference has the tensor before the Relu, too."""
    whole = _compared(folder, Quantised(gains={"w2": 0.8}).made(False), capsys, "--b", "reference")
    assert whole["first_loss"] == "conv2"
    assert re.search(r"conv2's output is 0\.8\d* times what", whole["words"])
    one = np.where(np.arange(12) == 5, 2.0, 1.0)
    found = _compared(folder, Quantised(gains={"w2": one}).made(False), capsys, "--b", "reference")
    assert found["first_loss"] == "conv2"
    assert "in channel 5, where its gain is 2" in found["words"]
    quiet = Quantised(gains={"w3": np.where(np.arange(12) == 7, 0.5, 1.0)})
    words = _compared(folder, quiet.made(False), capsys)["words"]
    assert words.startswith("conv3's output has ") and "in channel 7, where its gain is 0.49" in words


@pytest.mark.parametrize("steps", [-6, 3])
def test_a_zero_point_that_is_off(folder: Path, capsys: pytest.CaptureFixture[str], steps: int) -> None:
    quantised = Quantised(read_with={"conv3": steps})
    found = _compared(folder, quantised.made(False), capsys, "--b", "reference")
    assert found["first_loss"] == "conv3" and "is quantised with scale" in found["words"]
    third = next(t for t in found["tensors"] if t["name"] == "conv3")
    assert any(
        "is shifted by " in f["words"] and f"= {-steps:+.1f} steps" in f["words"] for f in third["findings"]
    ), third["findings"]


def test_equalised_channels_are_no_loss(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Channels are divided, and the next layer's weights make up for it: the file says by what."""
    before = dict(C)
    factors = np.linspace(0.25, 4, 8).astype(np.float32)
    try:
        quantised = Quantised()
        C["w1"], C["b1"] = C["w1"] / factors[:, None, None, None], C["b1"] / factors
        C["w2"] = C["w2"] * factors[:, None, None]
        quantised.ranges["relu1"] = (0.0, 4 * quantised.ranges["relu1"][1])
        proto = quantised.made(False)
    finally:
        C.update(before)
    assert _compared(folder, proto, capsys, "--b", "reference")["first_loss"] == "conv1"
    said = {"conv1": factors.tolist()}
    proto.metadata_props.add(key="aot_model.equalisation", value=json.dumps(said))
    assert _compared(folder, proto, capsys, "--b", "reference")["first_loss"] is None
    proto.metadata_props[0].value = "[1"
    assert _compared(folder, proto, capsys, "--b", "reference")["first_loss"] == "conv1"


def test_a_bias_that_is_off(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a zero point of the weights' or the input's that is off looks behind the layer."""
    quantised = Quantised().made(False)
    for constant in quantised.graph.initializer:
        if constant.name == "b3":
            constant.CopyFrom(onnx.numpy_helper.from_array(C["b3"] + np.float32(0.3), "b3"))
    found = _compared(folder, quantised, capsys, "--b", "reference")
    assert found["first_loss"] == "conv3" and "conv3's output is shifted by +0." in found["words"]


def test_words_and_exit_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quantised = Quantised()
    quantised.ranges["relu2"] = (0.0, quantised.ranges["relu2"][1] / 4)
    save(quantised.made(False), folder / "int8.onnx")
    command = [
        "compare",
        str(folder / "float.onnx"),
        str(folder / "int8.onnx"),
        "--inputs",
        str(folder / "data.npz"),
        "--limit",
        "4",
    ]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "4 samples of 12" in said and "the first layer that loses: relu2's output saturates in " in said
    assert "in the program: int8_" in said and "Conv 'conv2'" in said
    assert main([*command, "--least-snr", "20"]) == 1
    assert "relu2's output saturates" in capsys.readouterr().err


def test_two_programs_of_one_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The generated code against itself: nothing differs, in integers."""
    save(Quantised().made(True), folder / "int8.onnx")
    command = [
        "compare",
        str(folder / "int8.onnx"),
        str(folder / "int8.onnx"),
        "--inputs",
        str(folder / "data.npz"),
        "--a",
        "library",
        "--target",
        "c",
        "--json",
    ]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    integers = [t for t in found["tensors"] if t["step"] is not None]
    assert (
        len(integers) >= 4
        and all(t["whole"]["identical"] for t in integers)
        and found["outputs"] == [{"name": "y", "changed": 0}]
    )


def test_sums_are_those_of_numpy() -> None:
    want, got = RNG.standard_normal((2, 3, 4, 5, 6)), RNG.standard_normal((2, 3, 4, 5, 6))
    sums, histogram = Sums.of(4), Histogram()
    for w, g in zip(want, got, strict=True):
        sums.add(w, g, 1, (-1.0, 1.0), 0.125)
        histogram.add(w, g)
    error = got - want
    assert sums.snr == pytest.approx(10 * np.log10((want**2).sum() / (error**2).sum()))
    assert sums.cosine == pytest.approx((want * got).sum() / np.sqrt((want**2).sum() * (got**2).sum()))
    assert sums.worst == np.abs(error).max() and sums.elements == want.size
    ends = ((got >= 1 - 0.03125) & (want > 1.0625)) | ((got <= -1 + 0.03125) & (want < -1.0625))
    assert sums.saturated == ends.sum() > 0
    inside = np.abs(got) < 1 - 0.03125
    gain, _ = np.polyfit(want[inside], got[inside], 1)
    through_zero = (want[inside] * got[inside]).sum() / (want[inside] ** 2).sum()
    before, after = (error[inside] ** 2).sum(), ((got[inside] - through_zero * want[inside]) ** 2).sum()
    assert sums.gain == pytest.approx((gain, (before - after) / before))
    mean = error[inside].mean()
    left = ((error[inside] - mean) ** 2).sum()
    assert sums.shift == pytest.approx((mean, (before - left) / before))
    assert histogram.want.tolist() == np.histogram(want, 64, (-histogram.reach, histogram.reach))[0].tolist()
    assert histogram.got.sum() == got.size


def test_channels_last_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Float ONNX beside TFLite: axes in another order, inputs and outputs by place."""
    from tflite_models import FLOAT32, Op, T
    from tflite_models import build as build_tflite

    x = RNG.standard_normal((3, 1, 2, 4, 5)).astype(np.float32)
    save(
        model(
            [helper.make_node("Relu", ["x"], ["y"], name="r")],
            [tensor("x", (1, 2, 4, 5))],
            [tensor("y", (1, 2, 4, 5))],
            {},
        ),
        tmp_path / "a.onnx",
    )
    (tmp_path / "b.tflite").write_bytes(
        build_tflite(
            [T("in", (1, 4, 5, 2), FLOAT32), T("out", (1, 4, 5, 2), FLOAT32)],
            [Op("RELU", (0,), (1,))],
            (0,),
            (1,),
        )
    )
    np.savez(tmp_path / "d.npz", in_0=x)
    assert (
        main(
            [
                "compare",
                str(tmp_path / "a.onnx"),
                str(tmp_path / "b.tflite"),
                "--inputs",
                str(tmp_path / "d.npz"),
                "--json",
            ]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [t["whole"]["identical"] for t in found["tensors"]] == [True, True]
