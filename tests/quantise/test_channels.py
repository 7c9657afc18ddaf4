"""Channels that are moved and multiplied before weights read them: whatever is divided is made up for, which
ONNX Runtime says of the scaled model; what goes anywhere else stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from networks import Array, Builder, attention, data, saved
from test_quantise import _calibration, run

from aot_model.layers.losses import _by
from aot_model.layers.onnx_signals import _divided
from aot_model.quantise.candidates import Candidate, without_data
from aot_model.quantise.channels import flow
from aot_model.quantise.choose import choose
from aot_model.quantise.equalise import Pair, equalised, pairs
from aot_model.quantise.network import Network
from aot_model.quantise.plan import Plan
from aot_model.quantise.runtime import FloatModel

TOKENS, WIDTH, HEADS = 5, 8, 2


def dense(b: Builder, x: str, out: int, inside: int, spread: float = 0.0, form: str = "MatMul") -> str:
    """A layer whose channels reach differently far."""
    by = np.exp(b.rng.normal(0, spread, out))
    weights = (b.rng.normal(0, inside**-0.5, (inside, out)) * by).astype(np.float32)
    shift = b.constant((b.rng.normal(0, 0.1, out) * by).astype(np.float32))
    if form == "Gemm":
        return b("Gemm", x, b.constant(np.ascontiguousarray(weights.T)), shift, transB=1)
    return b("Add", b("MatMul", x, b.constant(weights)), shift)


def whole(*numbers: int) -> Array:
    return np.asarray(numbers, np.int64)


def heads(b: Builder, x: str, keys: bool = False) -> str:
    """[tokens, width] -> [heads, tokens, width of one]; of keys, the last two the other way round."""
    x = b("Reshape", x, b.constant(whole(TOKENS, HEADS, WIDTH // HEADS)))
    return b("Transpose", x, perm=[1, 2, 0] if keys else [1, 0, 2])


def attend(b: Builder, q: str, k: str, v: str, form: str = "Gemm") -> str:
    scores = b("Softmax", b("MatMul", q, k), axis=-1)
    x = b("Transpose", b("MatMul", scores, v), perm=[1, 0, 2])
    x = b("Reshape", x, b.constant(whole(TOKENS, WIDTH)))
    return dense(b, x, WIDTH, WIDTH, 0.5, form)


def finished(b: Builder, x: str) -> onnx.ModelProto:
    b("Identity", x, output="y")
    return b.model({"x": (TOKENS, WIDTH)}, {"y": (TOKENS, WIDTH)})


def fused() -> onnx.ModelProto:
    """One product gives queries, keys and values, as torch exports it; queries and keys scaled."""
    b = Builder(3)
    x = dense(b, "x", 3 * WIDTH, WIDTH, 1.0)
    x = b("Transpose", b("Reshape", x, b.constant(whole(TOKENS, 3, WIDTH))), perm=[1, 0, 2])
    q, k, v = (b("Gather", x, b.constant(np.int64(n)), axis=0) for n in range(3))
    q = b("Mul", heads(b, q), b.constant(np.float32(0.5)))
    k = b("Div", heads(b, k, True), b.constant(np.float32(1.5)))
    return finished(b, attend(b, q, k, heads(b, v)))


def split(form: str = "MatMul") -> onnx.ModelProto:
    """... by Split, with the values' Relu."""
    b = Builder(4)
    x = dense(b, "x", 3 * WIDTH, WIDTH, 1.0, form)
    names = ["q", "k", "v"]
    b.nodes.append(
        onnx.helper.make_node("Split", [x, b.constant(whole(8, 8, 8))], names, name="split", axis=1)
    )
    q, k, v = heads(b, "q"), heads(b, "k", True), heads(b, b("Relu", "v"))
    return finished(b, attend(b, q, k, v, "MatMul"))


def apart(kind: str = "") -> onnx.ModelProto:
    """A product for each, one of which is used for something else, too."""
    b = Builder(5)
    q, k, v = (dense(b, "x", WIDTH, WIDTH, 1.0) for _ in range(3))
    own = {"queries": q, "keys": k, "values": v}.get(kind)
    keys = heads(b, k, True)
    if kind == "shared keys":  # each head's queries meet all heads' keys
        first = b("Slice", keys, *(b.constant(whole(n)) for n in (0, 1, 0)))
        keys = b("Expand", first, b.constant(whole(HEADS, WIDTH // HEADS, TOKENS)))
    x = attend(b, heads(b, q), keys, heads(b, v))
    return finished(b, b("Add", x, own) if own else x)


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "fused": fused,
    "split": split,
    "gemm": lambda: split("Gemm"),
    "apart": apart,
    "shared keys": lambda: apart("shared keys"),
    "queries too": lambda: apart("queries"),
    "keys too": lambda: apart("keys"),
    "values too": lambda: apart("values"),
    "attention": attention,
}


def chosen_at_random(several: list[Pair], network: Network, seed: int) -> dict[str, tuple[float, ...]]:
    """Any factors that a pair's channels may have."""
    rng = np.random.default_rng(seed)
    found = {p.tensor: np.exp(rng.normal(0, 1, (network.shape(p.tensor) or ())[-1])) for p in several}
    for p in several:
        found[p.tensor][list(p.fixed)] = 1
        for channel, (tensor, other) in p.ties.items():
            found[tensor][other] = 1 / found[p.tensor][channel]
    return {name: tuple(map(float, f)) for name, f in found.items()}


@pytest.mark.parametrize("name", NETWORKS)
def test_any_factors_leave_the_model_as_it_is(name: str) -> None:
    model = onnx.shape_inference.infer_shapes(NETWORKS[name](), data_prop=True)
    network, fresh = Network(model), data(model, 6, seed=9)
    several = pairs(network, choose(network))
    want = run(model, fresh)
    for seed in range(3):
        scaled = equalised(network, several, chosen_at_random(several, network, seed))
        assert np.abs(run(scaled.model, fresh) - want).max() < 2e-5 * np.abs(want).max()


def test_which_channels_may_be_scaled() -> None:
    def found(name: str) -> list[tuple[int, int, int]]:
        """(free channels, tied ones, fixed ones) of each followed tensor, in the order of the graph."""
        model = onnx.shape_inference.infer_shapes(NETWORKS[name](), data_prop=True)
        several = pairs(network := Network(model), choose(network))
        counts = [((network.shape(p.tensor) or ())[-1], len(p.ties), len(p.fixed)) for p in several]
        return [(n - a - b, a, b) for n, a, b in counts]

    assert found("fused") == found("split") == found("gemm") == [(8, 16, 0)]
    assert found("apart") == [(0, 8, 0), (0, 8, 0), (8, 0, 0)]
    shared = [(4, 0, 4), (8, 0, 0)]
    assert found("shared keys") == shared, "a key meets two queries, the others nothing; values are free"
    assert found("queries too") == found("keys too") == [(8, 0, 0)], "what is tied to a fixed one is fixed"
    assert found("values too") == [(0, 8, 0), (0, 8, 0)]


def equal_candidate(tmp_path: Path, model: onnx.ModelProto) -> tuple[Candidate, Candidate, Array]:
    """Plans of 8 bits without and with equalisation, and the float model's answers to fresh data."""
    file, samples = saved(tmp_path, model)
    calibration = _calibration(file, samples, tmp_path)
    both = [calibration.candidate("minmax", equalise) for equalise in (False, True)]
    assert both[0] is not None and both[1] is not None
    return both[0], both[1], run(calibration.plain.network.model, data(model, 40, seed=5))


@pytest.mark.parametrize("name", ["fused", "apart"])
def test_less_noise_and_the_plan_is_all_of_it(name: str, tmp_path: Path) -> None:
    plain, equal, want = equal_candidate(tmp_path, model := NETWORKS[name]())
    tensors = [replace(c, plan=replace(c.plan, weights={})) for c in (plain, equal)]
    lost = [np.square(run(c.model(""), data(model, 40, seed=5)) - want).sum() for c in tensors]
    assert lost[1] < 0.6 * lost[0]
    path = tmp_path / "plan.json"
    path.write_text(equal.plan.to_json())
    again = without_data(plain.source.network.model, Plan.read(path), "")
    assert again.model("").SerializeToString() == equal.model("").SerializeToString()


def test_compare_knows_by_what_moved_tensors_are_divided(tmp_path: Path) -> None:
    plain, equal, _ = equal_candidate(tmp_path, model := fused())
    proto = equal.model("")
    known = _divided(proto)
    names = [n for n in known if n in plain.source.network.producer]
    assert len(names) > 8 and json.loads(proto.metadata_props[0].value)
    samples = _calibration(*saved(tmp_path, model), tmp_path).samples.take(np.arange(2))
    before, after = (FloatModel(c.source.network.model, names, "").stacked(samples) for c in (plain, equal))
    for name, a, b in zip(names, before, after, strict=True):
        by = known[name] if known[name].ndim > 1 else known[name].reshape(-1)
        assert np.abs(a / by - b).max() < 1e-5 * np.abs(b).max(), name


def test_factors_of_another_shape_are_not_taken() -> None:
    class Some:
        axis, divided = 1, np.ones((2, 1, 3)) * 2

    assert _by(Some(), np.ones((2, 4, 3))).shape == (2, 1, 3)  # type: ignore[arg-type]
    for shape in ((2, 4), (3, 4, 2), (2, 4, 3, 1)):
        assert _by(Some(), np.ones(shape)).shape == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "kept"), [("Transpose", False), ("Pad", True), ("MaxPool", True)])
def test_what_is_no_movement_of_channels(kind: str, kept: bool) -> None:
    """Zeros beside the elements belong to no channel, and a window along the channels mixes them."""
    b = Builder(2)
    more: dict[str, list[int]] = {"Transpose": {"perm": [0, 1, 2, 3]}, "Pad": {}}.get(
        kind, {"kernel_shape": [1, 2], "strides": [1, 1], "pads": [0, 0, 0, 1]}
    )
    pads = [b.constant(whole(0, 0, 0, 0, 0, 0, 0, 0))] if kind == "Pad" else []
    x = b(kind, "x", *pads, **more)
    b("MatMul", x, b.weights(8, 3), output="y")
    model = b.model({"x": (1, 2, 4, 8)}, {"y": (1, 2, 4, 3)})
    network = Network(onnx.shape_inference.infer_shapes(model))
    layers = {layer.node: layer for layer in choose(network).layers}
    found = flow(network, layers, "x")
    assert found is not None and (found.fixed == set(range(8))) is kept and bool(found.weights) is not kept
