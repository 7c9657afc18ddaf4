"""Layers, instances and groups normalised between quantised tensors of 8 bits: the nearest integers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from qdq_network import TYPES

from aot_model.frontends.onnx import read_onnx
from aot_model.host.program import scratch_folder
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.normalised_rows import MOST, Normalisation
from aot_model.ops.registry import Build
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

NEAR = 0.5 + 2.0**-6
KINDS = ("LayerNormalization", "SimplifiedLayerNormalization", "InstanceNormalization", "GroupNormalization")


@dataclass
class Drawn:
    """A normalisation with its parameters, and rows of bytes."""

    kind: str
    x: np.ndarray
    zero: int
    scale: float
    epsilon: float
    axis: int
    groups: int
    gain: np.ndarray
    bias: np.ndarray | None
    to: str
    to_scale: float
    to_zero: int

    def real(self) -> np.ndarray:
        """The result in its units, in doubles."""
        x = (self.x.astype(np.float64) - self.zero) * np.float32(self.scale)
        if self.kind.endswith("LayerNormalization"):
            rows, gain, bias = x, self.gain, self.bias
            over = tuple(range(self.axis % x.ndim, x.ndim))
        else:
            rows = x.reshape(x.shape[0], self.groups, -1)
            column = (-1,) + (1,) * (x.ndim - 2)
            gain, bias = self.gain.reshape(column), np.asarray(self.bias).reshape(column)
            over = (2,)
        mean = 0.0 if self.kind.startswith("Simplified") else rows.mean(over, keepdims=True)
        root = np.sqrt(((rows - mean) ** 2).mean(over, keepdims=True) + self.epsilon)
        y = ((rows - mean) / root).reshape(x.shape) * gain + (0.0 if bias is None else bias)
        low, high = np.iinfo(self.to).min, np.iinfo(self.to).max
        return np.asarray(np.clip(y / np.float32(self.to_scale) + self.to_zero, low, high))

    def nodes(self, k: int, constants: dict[str, np.ndarray]) -> list[onnx.NodeProto]:
        kind = self.x.dtype.name
        given = {
            "scale": np.float32(self.scale),
            "zero": np.asarray(self.zero, kind),
            "gain": self.gain.astype(np.float32),
            "to": np.float32(self.to_scale),
            "tz": np.asarray(self.to_zero, self.to),
            **({} if self.bias is None else {"bias": self.bias.astype(np.float32)}),
        }
        constants.update({f"{n}{k}": v for n, v in given.items()})
        more: dict[str, object] = {"epsilon": self.epsilon}
        if self.kind.endswith("LayerNormalization"):
            more["axis"] = self.axis
        elif self.kind == "GroupNormalization":
            more["num_groups"] = self.groups
        inputs = [f"x{k}", f"gain{k}", *([] if self.bias is None else [f"bias{k}"])]
        return [
            helper.make_node("DequantizeLinear", [f"q{k}", f"scale{k}", f"zero{k}"], [f"x{k}"]),
            helper.make_node(self.kind, inputs, [f"r{k}"], **more),
            helper.make_node("QuantizeLinear", [f"r{k}", f"to{k}", f"tz{k}"], [f"y{k}"]),
        ]


def rows_of(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Rows of all bytes, of neighbours, of the ends alone, and with one that is far from the others."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    x = rng.integers(low, high + 1, shape)
    flat = x.reshape(shape[0], -1)
    for row in flat:
        middle = int(rng.integers(low, high + 1))
        form = rng.integers(5)
        if form == 1:
            row[:] = np.clip(middle + rng.integers(-1, 2, row.size), low, high)
        elif form == 2:
            row[:] = rng.choice([low, high], row.size)
        elif form == 3:
            row[:] = middle
            row[rng.integers(row.size)] = rng.choice([low, high, middle, min(middle + 1, high)])
    return x.astype(kind)


def drawn(rng: np.random.Generator, name: str) -> Drawn:
    kind, to = (str(rng.choice(["int8", "uint8"])) for _ in range(2))
    shape = tuple(int(n) for n in rng.integers(1, 7, int(rng.integers(3, 5))))
    axis, groups = -1, 1
    channels = shape[1]
    if name.endswith("LayerNormalization"):
        axis = int(rng.choice([-1, 0, 1, 2]))
        shape = (shape[0] + 2, *shape[1:-1], int(rng.choice([2, 3, 16, 64, 100, 363, 384, 777])))
        shape = (2, *shape[2:]) if axis == 0 else shape
        gain = rng.uniform(-2, 2, shape[axis:] if axis >= 0 else shape[-1:])
        bias = (
            None if name.startswith("Simplified") or rng.integers(3) == 0 else rng.uniform(-1, 1, gain.shape)
        )
    else:
        shape = (shape[0], channels, int(rng.integers(2, 40)), *shape[3:])
        groups = channels
        if name == "GroupNormalization":
            groups = int(rng.choice([g for g in range(1, channels + 1) if channels % g == 0]))
        gain, bias = rng.uniform(-2, 2, channels), rng.uniform(-1, 1, channels)
    zero, to_zero = (int(rng.integers(np.iinfo(k).min, np.iinfo(k).max + 1)) for k in (kind, to))
    scale, epsilon = float(2.0 ** rng.uniform(-9, 2)), float(10.0 ** rng.uniform(-9, 0))
    x = rows_of(rng, kind, shape)
    return Drawn(
        name, x, zero, scale, epsilon, axis, groups, gain, bias, to, float(rng.uniform(0.01, 0.06)), to_zero
    )


@pytest.mark.parametrize("name", KINDS)
def test_results_are_the_nearest_integers(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(KINDS.index(name))
    cases = [drawn(rng, name) for _ in range(24)]
    constants: dict[str, np.ndarray] = {}
    nodes = [node for k, case in enumerate(cases) for node in case.nodes(k, constants)]
    inputs = [tensor(f"q{k}", c.x.shape, TYPES[c.x.dtype.name]) for k, c in enumerate(cases)]
    outputs = [tensor(f"y{k}", c.x.shape, TYPES[c.to]) for k, c in enumerate(cases)]
    path = save(model(nodes, inputs, outputs, constants, opset=21), tmp_path / "model.onnx")
    graph = read_onnx(path).graph
    assert fuse_qdq(graph)
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear", name}
    compiled = compile_model(Request(path, "m", "c"))
    with scratch_folder() as folder:
        program = sanitized(compiled.view, compiled.texts, Path(folder))
        (results,) = program.run([[case.x for case in cases]])
    for case, got in zip(cases, results, strict=True):
        assert np.abs(got - case.real()).max() <= NEAR, case


def test_an_epsilon_that_no_float_holds(tmp_path: Path) -> None:
    """Rows of one number have no factor then; others are as they are."""
    constants = {
        "s": np.float32(2.0**12),
        "z": np.int8(3),
        "gain": np.ones(6, np.float32),
        "t": np.float32(0.02),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("LayerNormalization", ["x", "gain"], ["r"], epsilon=1e-38),
        helper.make_node("QuantizeLinear", ["r", "t", "z"], ["y"]),
    ]
    ports = [tensor(name, (2, 6), TYPES["int8"]) for name in ("q", "y")]
    path = save(model(nodes, ports[:1], ports[1:], constants), tmp_path / "m.onnx")
    compiled = compile_model(Request(path, "m", "c"))
    assert "row_moments" in compiled.texts["m.c"]
    q = np.asarray([[7, 7, 7, 7, 7, 7], [7, 7, 7, 7, 7, 8]], np.int8)
    with scratch_folder() as folder:
        ((y,),) = sanitized(compiled.view, compiled.texts, Path(folder)).run([[q]])
    assert y[0].tolist() == [3] * 6
    assert np.abs(y[1] - (q[1] - q[1].mean()) / q[1].std() / 0.02 - 3).max() <= 0.51


@pytest.mark.parametrize("output", [0, 1])
def test_a_mean_that_is_a_result(output: int, tmp_path: Path) -> None:
    """It is not what is normalised."""
    constants = {"s": np.float32(0.1), "z": np.int8(3), "gain": np.ones(6, np.float32)}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["x"]),
        helper.make_node("LayerNormalization", ["x", "gain"], ["r", "mean"]),
        helper.make_node("QuantizeLinear", [("r", "mean")[output], "s", "z"], ["y"]),
    ]
    outputs = [tensor("y", (2, (6, 1)[output]), TYPES["int8"]), tensor("mean", (2, 1))][: 2 - output]
    path = save(model(nodes, [tensor("q", (2, 6), TYPES["int8"])], outputs, constants), tmp_path / "m.onnx")
    q = np.asarray([[-128, 0, 5, 90, 127, 3], [7, 7, 7, 7, 7, 9]], np.int8)
    compiled = compile_model(Request(path, "m", "c"))
    with scratch_folder() as folder:
        ((y, *means),) = sanitized(compiled.view, compiled.texts, Path(folder)).run([[q]])
    x = (q.astype(np.float64) - 3) * np.float32(0.1)
    mean = x.mean(1, keepdims=True)
    real = mean if output else (x - mean) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    assert np.abs(y - real / np.float32(0.1) - 3).max() <= 0.51
    assert output or np.abs(means[0] - mean).max() < 1e-5


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.0},  # of rows of one number that is 0 / 0
        {"epsilon": 2.0**61},
        {"gain": np.asarray([2.0**12])},
        {"gain": np.asarray([np.inf])},
        {"offset": np.asarray([2.0**23])},
        {"offset": np.asarray([np.nan])},
    ],
)
def test_what_32_bits_have_no_room_for(change: dict[str, object]) -> None:
    given: dict[str, object] = {
        "axis": 1,
        "epsilon": 1e-4,
        "centred": True,
        "zero": 0,
        "gain": np.ones(1),
        "offset": np.ones(1),
    }
    x = Value("x", TensorType(DType.INT8, (2, 500)))
    build = Build([], "n")
    limits = (-128, 127, DType.INT8)
    assert Normalisation(**given).build(build, x, *limits) is not None  # type: ignore[arg-type]
    assert Normalisation(**{**given, **change}).build(build, x, *limits) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "fits"), [(1, False), (2, True), (MOST, True), (MOST + 1, False)])
def test_rows_that_are_too_short_or_too_long(count: int, fits: bool) -> None:
    x = Value("x", TensorType(DType.INT8, (2, count)))
    one = Normalisation(1, 1e-4, True, 0, np.ones(1), np.ones(1))
    assert (one.build(Build([], "n"), x, -128, 127, DType.INT8) is not None) == fits
