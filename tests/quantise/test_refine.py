"""What makes plans better: learned rounding beside every rounding there is, noise of single tensors beside
ONNX Runtime's, 16 bits within what they may cost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from networks import Array, Builder, attention, data, mobile, saved, tiny
from test_quantise import _calibration, decibels, run

from aot_model.errors import CompileError
from aot_model.host.compiler import HostCompiler
from aot_model.quantise import refine
from aot_model.quantise.automatic import Automatic, Simulation, best_by_source
from aot_model.quantise.candidates import Calibration, Candidate, tensor_plans, without_data
from aot_model.quantise.data import Samples
from aot_model.quantise.insert import inserted, quantised_weight
from aot_model.quantise.plan import LIMITS, Plan, TensorPlan, WeightPlan, fitted
from aot_model.quantise.prepare import prepared
from aot_model.quantise.refine import by_answers, learned, widened
from aot_model.quantise.rounding import closest, encoded, fitted_rows, learnt_by_outputs
from aot_model.quantise.runtime import FloatModel
from aot_model.quantise.score import Score, noise, top1, usual
from aot_model.quantise.sensitivity import Sensitivity
from aot_model.quantise.session import Job, disagree, quantise, strays
from aot_model.quantise.stages import Stages, affordable
from aot_model.quantise.weights import weight_plan, weight_plans
from aot_model.quantise.work import work_of


def test_rounding_beside_all_there_are() -> None:
    """With correlated inputs: near the best of all 2^6 (up, down) and better than the nearest."""
    rng = np.random.default_rng(0)
    lost = np.zeros(3)
    for _ in range(20):
        x = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6))
        moments, wanted = (x.T @ x / 200)[np.newaxis], rng.normal(0, 3, (1, 2, 6))
        found = closest(wanted, moments, -127, 127)

        def error(q: Array, wanted: Array = wanted, moments: Array = moments) -> Array:
            return np.asarray(np.einsum("goi,gij,goj->go", wanted - q, moments, wanted - q))

        every = np.stack([error(np.floor(wanted) + np.array(up)) for up in product((0, 1), repeat=6)])
        lost += [error(found).sum(), every.min(axis=0).sum(), error(np.rint(wanted)).sum()]
    assert lost[0] < 1.3 * lost[1] and lost[0] < 0.5 * lost[2], lost
    assert np.abs(closest(np.full((1, 1, 6), 99.0), moments, -7, 7)).max() <= 7


def layers() -> onnx.ModelProto:
    """Convolutions with strides, dilations, groups, pads as numbers and as words; products."""
    b = Builder(7)

    def conv(x: str, out: int, inside: int, group: int = 1, **more: object) -> str:
        bias = b.constant(b.rng.normal(0, 0.2, out).astype(np.float32))
        return b("Relu", b("Conv", x, b.weights(out, inside // group, 3, 3), bias, group=group, **more))

    x = conv("x", 8, 3, pads=[1, 0, 1, 2], strides=[2, 1])
    x = conv(x, 8, 8, group=8, auto_pad="SAME_UPPER", strides=[2, 2])
    x = conv(x, 8, 8, auto_pad="SAME_LOWER", strides=[2, 1])
    x = conv(x, 8, 8, group=2, pads=[2, 1, 2, 1], dilations=[2, 1])
    x = b("Flatten", b("GlobalAveragePool", x))
    x = b("Relu", b("Add", b("MatMul", x, b.weights(8, 12)), b.constant(np.zeros(12, np.float32))))
    b("Gemm", x, b.weights(12, 4), b.constant(np.zeros(4, np.float32)), output="y")
    return b.model({"x": (1, 3, 12, 12)}, {"y": (1, 4)})


def test_rounding_is_learnt_by_what_each_layer_reads(tmp_path: Path) -> None:
    """With weights of 4 bits and float inputs: every layer is nearer than with the nearest integers."""
    model = layers()
    calibration = _calibration(*saved(tmp_path, model), tmp_path)
    source = calibration.plain
    assert len(source.choice.layers) == 6
    constants = source.network.constants
    coarse = {n: weight_plan(constants[n], w, "int4") for n, w in source.choice.weights.items()}
    plan = Plan({}, coarse)
    learnt, bias = learnt_by_outputs(source.network, source.choice, plan, calibration.samples, "")
    assert all(w.rounding for w in learnt.values())
    ends = [layer.before for layer in source.choice.layers]
    want = FloatModel(source.network.model, ends, "").stacked(calibration.samples)
    gains = []
    for k, (end, reference) in enumerate(zip(ends, want, strict=True)):
        errors = []
        for weights in (coarse, learnt):  # the layers before are as they were learnt, this one is not, or is
            several = {**dict(list(learnt.items())[:k]), list(coarse)[k]: list(weights.values())[k]}
            made = inserted(source.network, source.choice, Plan({}, several, (), bias), "")
            [got] = FloatModel(made, [end], "").stacked(calibration.samples)
            lost = got - reference
            channels = 2 if lost.ndim > 3 else lost.ndim - 1  # a bias makes up for the mean
            mean = lost.mean(axis=tuple(a for a in range(lost.ndim) if a != channels), keepdims=True)
            errors.append(float(np.square(lost - mean).sum()))
        gains.append(errors[1] / errors[0])
    assert max(gains) < 1 and sorted(gains)[2] < 0.8, "what layers before lose is left"


def test_weights_make_up_for_what_was_lost_before() -> None:
    """Beside least squares of numpy: inputs that have lost the same in all samples, and some noise."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, 8))
    other = x + np.outer(x[:, 0], rng.normal(0, 0.3, 8)) + rng.normal(0, 0.1, x.shape)
    rows, pull = rng.normal(size=(4, 8)), 1.0
    moments, mixed = other.T @ other / 500, x.T @ other / 500
    found = fitted_rows(rows[np.newaxis], moments[np.newaxis], mixed[np.newaxis])[0]
    tie = np.sqrt(pull * 500 * np.trace(moments) / 8) * np.eye(8)
    want = np.linalg.lstsq(np.vstack([other, tie]), np.vstack([x @ rows.T, tie @ rows.T]), rcond=None)[0]
    assert np.allclose(found, want.T)
    errors = [np.square(x @ rows.T - other @ v.T).sum() for v in (rows, found)]
    assert errors[1] < 0.7 * errors[0]
    same = fitted_rows(rows[np.newaxis], moments[np.newaxis], moments[np.newaxis])[0]
    assert np.allclose(same, rows), "nothing was lost"


@pytest.mark.parametrize(("network", "gain"), [(attention, 1.2), (mobile, 5.0)])
def test_layers_make_up_for_layers_before(
    network: Callable[[], onnx.ModelProto], gain: float, tmp_path: Path
) -> None:
    """Ranges of half of what was seen: what is learnt is nearer on other data, in ONNX Runtime."""
    model = network()
    calibration = _calibration(*saved(tmp_path, model, 200), tmp_path)
    source, base = calibration.plain, calibration.candidate("minmax", False)
    assert base is not None
    half = {n: fitted("int8", t.range[0] / 2, t.range[1] / 2) if t.type == "int8" and n != "x" else t
            for n, t in base.plan.tensors.items()}  # fmt: skip
    plan = Plan(half, weight_plans(source.network, source.choice, half))
    weights, bias = learnt_by_outputs(source.network, source.choice, plan, calibration.samples, "")
    fresh = data(model, 48, seed=8)
    want = run(model, fresh)
    made = [
        decibels(run(inserted(source.network, source.choice, one, ""), fresh), want)
        for one in (plan, Plan(half, weights, (), bias))
    ]
    assert made[1] > made[0] + gain, made


@pytest.mark.parametrize("behind", [False, True])
def test_a_weight_of_two_layers(behind: bool, tmp_path: Path) -> None:
    """Learnt from what both read; where one is behind the other, which is not known then, it stays."""
    b = Builder(4)
    shared, mixing = (b.constant(b.rng.normal(0, 0.4, (8, 8)).astype(np.float32)) for _ in range(2))
    x, y = (b("Relu", b("MatMul", b("MatMul", name, mixing), shared)) for name in ("x", "z"))
    b("Add", b("Relu", b("MatMul", x, shared)) if behind else x, y, output="y")
    model = b.model({"x": (1, 8), "z": (1, 8)}, {"y": (1, 8)})
    calibration = _calibration(*saved(tmp_path, model), tmp_path)
    source = calibration.plain
    assert sum(layer.weight == shared for layer in source.choice.layers) == 2 + behind
    narrow = weight_plan(source.network.constants[shared], source.choice.weights[shared], "int4")
    plan = Plan({}, {shared: narrow})
    weights, bias = learnt_by_outputs(source.network, source.choice, plan, calibration.samples, "")
    assert not bias and bool(weights[shared].rounding) is not behind
    fresh = data(model, 200, seed=8)
    want = run(model, fresh)
    made = [
        decibels(run(inserted(source.network, source.choice, Plan({}, w), ""), fresh), want)
        for w in (plan.weights, weights)
    ]
    assert made[1] == made[0] if behind else made[1] > made[0] + 1, made


def test_parts_of_a_model(tmp_path: Path) -> None:
    """Piece by piece as at once: branches, bodies that read from outside; constants may change meanwhile."""
    b = Builder(2)
    x = b("Relu", b.conv("x", 4, 2))
    y = b.conv(x, 4, 4)
    inner = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", [x, y], ["inside"])], "body", [],
        [onnx.helper.make_tensor_value_info("inside", onnx.TensorProto.FLOAT, None)])  # fmt: skip
    then = b("If", b.constant(np.asarray(True)), then_branch=inner, else_branch=inner)
    b("Add", b.conv(then, 4, 4), y, output="y")
    model = b.model({"x": (1, 2, 5, 5)}, {"y": (1, 4, 5, 5)})
    samples = Samples({"x": data(model, 5)["in_0"]}, None, (), "")
    whole = FloatModel(model, [x, y, then, "y"], "").stacked(samples)
    stages = Stages(model, samples, "")
    assert stages.needs(y) == {"n0", "n1", "n2"}
    for name, want in zip((x, y, then, "y"), whole, strict=True):
        assert np.array_equal(np.stack(stages.tensor(name)), want), name
    assert x not in stages.known and not stages.left and stages.needs("y") == set()
    changed = Stages(model, samples, "")
    changed.tensor(x)
    for tensor in model.graph.initializer[2:4]:  # of the second convolution
        changed.assign(tensor.name, np.zeros(tensor.dims, np.float32))
    assert not np.stack(changed.tensor(y)).any()
    changed.shift(y, np.float32(1))
    assert np.array_equal(np.stack(changed.tensor(then)), whole[0] + 1)
    assert affordable(10, 100, 8) == 100 and affordable(2**40, 100, 8) == 8 and affordable(2**24, 5, 8) == 5


def test_rounding_is_part_of_the_plan(tmp_path: Path) -> None:
    calibration = _calibration(*saved(tmp_path, tiny()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    better = learned(calibration, base)
    assert "rounding learnt" in better.plan.method and learned(calibration, base).plan == better.plan
    file = tmp_path / "plan.json"
    file.write_text(better.plan.to_json())
    again = replace(better, plan=Plan.read(file))
    assert again.model("").SerializeToString() == better.model("").SerializeToString()
    data = np.asarray([0.4, 1.6, -127.0], np.float32)
    known = WeightPlan("int8", None, (1.0,), encoded(np.asarray([1, -1, -1])))
    assert quantised_weight(data, known).tolist() == [1, 1, -127], "within the type"
    name = next(iter(better.plan.weights))
    for text, message in (
        ("AAAA", "cannot be read"),
        (encoded(np.zeros(3)), "is not of 72 elements"),
        (encoded(np.zeros(9**7)), "is not of 72 elements"),
    ):
        wrong = replace(better.plan.weights[name], rounding=text)
        plan = replace(better.plan, weights={**better.plan.weights, name: wrong})
        with pytest.raises(CompileError, match=message):
            without_data(better.source.network.model, plan, "")


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Calibration, Candidate, Sensitivity]:
    folder = tmp_path_factory.mktemp("attention")
    calibration = _calibration(*saved(folder, attention()), folder)
    base = calibration.candidate("minmax", False)
    assert base is not None
    return calibration, base, Sensitivity(base.source, calibration.samples, "")


def test_noise_of_single_tensors(transformer: tuple[Calibration, Candidate, Sensitivity]) -> None:
    """Each is what ONNX Runtime makes of the model with only these in integers; ranges never make more."""
    _, base, sensitivity = transformer
    noises = sensitivity.noises(base.plan)
    group = max(noises, key=lambda g: noises[g])
    names = sensitivity.groups[group]
    only = Plan({n: base.plan.tensors[n] for n in names}, {})
    model = inserted(base.source.network, base.source.choice, only, "")
    given = {"in_0": sensitivity.samples.inputs["x"]}
    own = decibels(run(model, given), run(base.source.network.model, given))
    assert -10 * np.log10(noises[group]) == pytest.approx(own, abs=1e-3)
    better = by_answers(base, sensitivity)
    after = sensitivity.noises(better.plan)
    assert all(after[g] <= noises[g] for g in noises) and sum(after.values()) < sum(noises.values())


def test_16_bits_where_they_pay(transformer: tuple[Calibration, Candidate, Sensitivity]) -> None:
    _, base, sensitivity = transformer

    def ram(candidate: Candidate) -> int:
        return sum(2048 if t.type == "int16" else 1024 for t in candidate.plan.tensors.values())

    wide = widened(base, sensitivity, ram, 0.2)
    assert wide is not None
    ours = [n for n, t in wide.plan.tensors.items() if t.type == "int16" != base.plan.tensors[n].type]
    assert ours and work_of(base.source, ours) <= 1.2 * work_of(base.source)
    assert ram(wide) <= 1.3 * ram(base)
    assert all(np.log2(wide.plan.tensors[n].scale) % 1 == 0 for n in ours)
    sums = [n for n in wide.source.network.model.graph.node if n.op_type == "Add" and n.output[0] in ours]
    for names in (s.input[:] + s.output[:] for s in sums):
        known = {wide.plan.tensors[n].scale for n in names if n in wide.plan.tensors}
        constants = [wide.plan.weights[n] for n in names if n in wide.plan.weights]
        assert len(known | {w.scale[0] for w in constants}) == 1 and {w.type for w in constants} <= {"int16"}
    fresh = data(attention(), 16, seed=5)
    want = run(attention(), fresh)
    assert decibels(run(wide.model(""), fresh), want) > decibels(run(base.model(""), fresh), want) + 1
    assert widened(base, sensitivity, ram, 0.0) is None
    one = wide.plan.method.replace(f"{wide.plan.method.split()[-2]} wide", "1 wide")
    first = widened(
        base, sensitivity, lambda c: 9999 * (1 + (c.plan.method not in (base.plan.method, one))), 0.2
    )
    assert wide.plan.method == one or (first is not None and first.plan.method == one), "what fits"
    assert widened(base, sensitivity, lambda c: 9999 * (1 + (c is not base)), 0.2) is None


def test_faint_noise_counts_beside_what_is_left(
    transformer: tuple[Calibration, Candidate, Sensitivity], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors that cost next to nothing are worth little gains, once the loudest are of 16 bits."""
    _, candidate, _ = transformer
    choice = candidate.source.choice
    groups = {kind: choice.groups[name] for name, kind in choice.kinds.items()}
    kinds = list(groups)[:4]
    noises = dict(zip([groups[k] for k in kinds], (1.0, 0.006, 0.004, 0.0009), strict=True))

    class Known:
        def noises(self, plan: Plan) -> dict[str, float]:
            return noises

    monkeypatch.setattr(refine, "work_of", lambda source, names=(): float(bool(names)))
    known: Any = Known()
    assert [kind for kind, _ in refine.worth_16_bits(candidate, known)] == kinds[:3]


def test_embeddings(tmp_path: Path) -> None:
    """Rows of a constant: its elements have no tensor's type, what they are added to has."""
    b = Builder(6)
    table = b.constant(b.rng.normal(0, 1, (9, 8)).astype(np.float32))
    x = b(
        "Add",
        b("Gather", table, b("Cast", "ids", to=onnx.TensorProto.INT64), axis=0),
        b.constant(b.rng.normal(0, 1, (5, 8)).astype(np.float32)),
    )
    weights = [b.constant(b.rng.normal(0, 0.5, (8, 8)).astype(np.float32)) for _ in range(2)]
    x = b("Add", x, b("MatMul", b("Relu", b("MatMul", x, weights[0])), weights[1]))
    b("ReduceMean", x, output="y", axes=[0], keepdims=0)
    model = b.model({"ids": (5,)}, {"y": (8,)})
    ids = np.random.default_rng(1).integers(0, 9, (40, 5)).astype(np.float32)
    file = tmp_path / "embedded.onnx"
    onnx.save(model, file)
    samples = Samples({"ids": ids}, None, (), "")
    calibration = Calibration(prepared(model, tmp_path, ""), samples, file)
    candidate = calibration.candidate("minmax", False)
    assert candidate is not None and set(candidate.source.choice.groups.values()) - set(
        candidate.plan.tensors
    )
    sensitivity = Sensitivity(candidate.source, samples, "")
    found = widened(candidate, sensitivity, lambda c: 1, 10.0)
    assert found is not None and decibels_of(found, model, samples) > 3 + decibels_of(
        candidate, model, samples
    )


def decibels_of(candidate: Candidate, model: onnx.ModelProto, samples: Samples) -> float:
    plain = replace(candidate, plan=replace(candidate.plan, weights={}, bias={}))
    got = FloatModel(plain.model(""), ["y"], "").stacked(samples)
    return -10 * float(np.log10(noise(got, FloatModel(model, ["y"], "").stacked(samples))))


def test_ranges_behind_functions(tmp_path: Path) -> None:
    """Beside all ranges of a grid, by what ONNX Runtime's HardSwish makes of them; no function where others
    read the tensor too."""
    b = Builder(3)
    x = b("Conv", "x", b.constant(b.rng.normal(0, 1.5, (6, 3, 3, 3)).astype(np.float32)))
    y = b("HardSwish", x)
    z = b("Conv", y, b.weights(6, 6, 3, 3))
    b("Conv", b("Concat", b("HardSwish", z), z, axis=1), b.weights(4, 12, 1, 1), output="y")
    model = b.model({"x": (1, 3, 12, 12)}, {"y": (1, 4, 8, 8)})
    calibration = _calibration(*saved(tmp_path, model), tmp_path)
    source = calibration.plain
    assert set(source.functions) == {x}, "the other is read by another too"
    [numbers] = FloatModel(source.network.model, [x], "").stacked(calibration.samples)
    found = tensor_plans(source, "mse")[x]

    def error(plan: TensorPlan) -> float:
        q = np.clip(np.rint(numbers / plan.scale) + plan.zero_point, -128, 127) - plan.zero_point
        made = [v * np.clip(v / 6 + 0.5, 0, 1) for v in (q * plan.scale, numbers)]
        return float(np.square(made[0] - made[1]).sum())

    low, high = float(numbers.min()), float(numbers.max())
    grid = [
        fitted("int8", low * a, high * b) for a in np.linspace(0.1, 1, 19) for b in np.linspace(0.5, 1, 11)
    ]
    assert error(found) < 1.05 * min(map(error, grid)) < 0.8 * error(fitted("int8", low, high))
    assert found.range[0] > 0.6 * low, "below -3 nothing comes of it"
    assert tensor_plans(source, "minmax")[x].range[0] <= low


def test_what_is_good_by_the_outputs() -> None:
    rng = np.random.default_rng(0)

    def of(*outputs: Array, labels: Array | None = None, given: tuple[int, ...] = (1, 3, 8, 8)) -> str:
        return usual(Samples({"x": np.zeros((5, *given), np.float32)}, labels, (), ""), outputs)

    classes_, picture = rng.normal(size=(5, 1, 10)), rng.normal(size=(5, 1, 4, 8, 8))
    assert of(classes_) == "top1" and of(picture) == "noise" == of(classes_, classes_)
    assert of(picture, labels=np.zeros(5)) == "top1"
    assert of(rng.uniform(size=(5, 1, 1))) == "top1" and of(3 * rng.normal(size=(5, 1))) == "noise"
    assert of(rng.normal(size=(5, 1, 640)), given=(1, 640)) == "noise", "an autoencoder"
    assert of(np.arange(5)[:, None]) == "top1"
    assert top1([np.asarray([[3], [4]])], [np.asarray([[3], [5]])], None) == 0.5, "classes by number"
    large, small, index = 1000 * rng.normal(size=(5, 9)), rng.normal(size=(5, 9)), np.arange(45).reshape(5, 9)
    off = [large * 1.01, small * 1.1, index * 2]
    assert noise(off, [large, small, index]) == pytest.approx((0.01**2 + 0.1**2) / 2), "each counts"
    assert noise([large * np.nan], [large]) != noise([large], [large]) == 0


def test_search(tmp_path: Path) -> None:
    """The best that is simulated comes first; 16 bits only where they may cost; at most three are built."""
    calibration = _calibration(*saved(tmp_path, mobile()), tmp_path)
    held = calibration.samples.take(np.arange(0, 48, 4))
    simulation = Simulation(calibration.plain.network, held, top1, "")
    assert simulation.outputs == ["y"] != simulation.ends, "a Softmax is at the end"
    for wide in (0.0, 0.3):
        search = Automatic(calibration, simulation, lambda c: 1, print)
        found = search.run("mse", wide)
        scores = {row.candidate.plan.method: row.score for row in search.rows}
        best = max(s.value for s in scores.values())
        assert 2 <= len(found) <= 3 and scores[found[0].plan.method].value == best
        types = [{n for n, t in c.plan.tensors.items() if t.type == "int16"} for c in found]
        assert wide or all(t <= set(calibration.plain.choice.ends) for t in types)
        learnt = {m for m in scores if m.endswith(", rounding learnt")}
        assert {"mse, rounding learnt", "mse, equalised, rounding learnt"} <= learnt
        assert not wide or any("wide" in method for method in scores)
    assert LIMITS["int16"][1] == 32767


def test_the_best_of_each_float_model() -> None:
    """With and without equalisation, in the order in which they came."""
    one, other = object(), object()
    rows: list[Any] = [
        SimpleNamespace(candidate=SimpleNamespace(source=source, name=name), score=Score(1.0, 0.0, snr, 100))
        for source, name, snr in ((one, "a", 20.0), (one, "b", 22.0), (other, "c", 19.0), (other, "d", 18.0))
    ]
    found: list[Any] = list(best_by_source(rows))
    assert [c.name for c in found] == ["b", "c"]


def test_two_compilers_must_agree() -> None:
    rng = np.random.default_rng(0)
    one = [rng.normal(size=(50, 10))]
    tie = [one[0].copy()]
    tie[0][3, 2] += 0.2  # a step of integers that a rounding of floats has turned
    assert not disagree(one, one, 149.0) and not disagree(one, tie, 30.0)
    assert disagree(one, tie, 60.0) and disagree(one, [one[0][::-1]], 20.0)
    assert disagree(one, [one[0] * np.nan], 20.0)
    assert not strays([one[0] + 0.01], one, tie) and strays([one[0][::-1]], one, tie)
    poor, classes = [one[0][::-1]], [one[0].argmax(1)]
    assert strays([one[0] * np.nan], one, tie) and not strays(tie, one, poor), "poor anyway"
    assert not strays([classes[0][::-1]], classes, classes), "numbers of classes are no signals"
    found = HostCompiler.find("gcc").second() if shutil.which("gcc") else None
    assert found is None or found._machine == HostCompiler.find("gcc")._machine
    assert HostCompiler.find("gcc", "-O2").second() is None, "flags are of one compiler"


def test_scales_that_are_powers_of_two(tmp_path: Path) -> None:
    """All of them, of tensors, weights and biases, in every plan; close to the float model all the same."""
    file, samples = saved(tmp_path, tiny())
    result = quantise(Job(file, samples, metric="noise", method="mse", powers=True), tmp_path)
    assert result.rows[result.chosen].score.snr > 20 and len(result.rows) > 1
    models = [row.candidate.model("") for row in result.rows]
    for model in (onnx.load_from_string(result.model), *models):
        constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        kinds = ("QuantizeLinear", "DequantizeLinear")
        scales = [constants[n.input[1]] for n in model.graph.node if n.op_type in kinds]
        assert len(scales) > 5 and all((np.frexp(s)[0] == 0.5).all() for s in scales)
