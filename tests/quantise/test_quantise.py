"""`aot-model quantise`: integer kernels for what has them, answers beside ONNX Runtime's, plans as data,
bad data refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import Array, Builder, attention, data, mobile, saved, tiny

from aot_model.cli import main
from aot_model.errors import CompileError, fail
from aot_model.pipeline import Request, compile_model
from aot_model.quantise.automatic import Row, chosen, first
from aot_model.quantise.candidates import Calibration, Candidate
from aot_model.quantise.choose import choose
from aot_model.quantise.data import Samples, doubts, read_samples
from aot_model.quantise.insert import inserted
from aot_model.quantise.network import Network
from aot_model.quantise.plan import LIMITS, Plan, fitted
from aot_model.quantise.prepare import prepared, read_float
from aot_model.quantise.ranges import METHODS, Seen, _error
from aot_model.quantise.rounding import learnt_by_outputs
from aot_model.quantise.score import Score
from aot_model.quantise.session import Job, quantise
from aot_model.quantise.statistics import doubts_of_training, spreads
from aot_model.quantise.weights import weight_plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits"


def run(model: onnx.ModelProto | bytes, samples: dict[str, Array]) -> Array:
    """ONNX Runtime without optimisations: the literal meaning."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options)
    names = [i.name for i in session.get_inputs()]
    return np.stack(
        [
            session.run(None, {n: samples[f"in_{j}"][k] for j, n in enumerate(names)})[0]
            for k in range(len(samples["in_0"]))
        ]
    )


def operators(model: bytes, folder: Path) -> list[str]:
    path = folder / "quantised.onnx"
    path.write_bytes(model)
    return [call.op for call in compile_model(Request(path, "net", "cortex-m4")).view.program.calls()]


def decibels(got: Array, want: Array) -> float:
    return float(10 * np.log10(np.square(want).sum() / np.square(got - want).sum()))


def candidate(
    model: onnx.ModelProto, folder: Path, method: str = "minmax", correct: bool = False
) -> Candidate:
    """A plan that nobody scores."""
    file, samples = saved(folder, model)
    found = _calibration(file, samples, folder).candidate("minmax", False)
    assert found is not None
    return found


SOFTMAX = {"ReduceMax", "Exp", "ReduceSum", "Reciprocal", "Mul"}
ENDS = {"Transpose", "QuantizeLinear", "DequantizeLinear", *SOFTMAX}
NORMALISATION = {"ReduceMean", "Sub", "Reciprocal", "Add"}


def test_every_layer_gets_an_integer_kernel(tmp_path: Path) -> None:
    made = candidate(mobile(), tmp_path).model("")
    kinds = operators(made.SerializeToString(), tmp_path)
    assert kinds.count("Convolution") + kinds.count("MatMul") == 7, kinds
    integers = {
        "Convolution",
        "MatMul",
        "Requantise",
        "WideSum",  # a mean, with its requantisation
        "Pool",
        "Concat",
        "ReshapeTo",
        "Flatten",
        "Lookup",
        "QuantisedSum",
    }
    assert set(kinds) <= ENDS | integers, kinds
    onnx.checker.check_model(made, full_check=True)
    floats = [t for t in made.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
    assert max(np.prod(t.dims) for t in floats) <= 24, "scales are, weights are not"


def test_attention_products_and_tables_are_integers(tmp_path: Path) -> None:
    kinds = operators(candidate(attention(), tmp_path).model("").SerializeToString(), tmp_path)
    assert kinds.count("MatMul") == 8
    assert not {"Erf", "Exp", "Softmax", "Mul", "Div"} & set(kinds), kinds


def test_answers(tmp_path: Path) -> None:
    """What ONNX Runtime makes of the quantised model is close to the float model; what we score is what it
    computes."""
    model = attention()
    file, samples = saved(tmp_path, model)
    result = quantise(Job(file, samples, method="mse"), tmp_path)
    fresh = data(model, 20, seed=9)
    want, got = run(model, fresh), run(result.model, fresh)
    assert decibels(got, want) > 22
    assert result.rows[result.chosen].score.snr > 22
    assert len({row.score.snr for row in result.rows}) == len(result.rows) >= 2


def test_same_bytes_and_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples = saved(tmp_path, tiny(), labels=np.arange(48) % 3)
    first, second, third = (tmp_path / f"{k}.onnx" for k in "abc")
    plan, rule = tmp_path / "plan.json", tmp_path / "a.d"
    words = ["quantise", str(file), "--calibration", str(samples), "--method", "minmax", "-o"]
    assert main([*words, str(first), "--write-plan", str(plan), "--depfile", str(rule)]) == 0
    said = capsys.readouterr()
    assert "integers, held back" in said.out and "chosen" in said.out
    assert "agree" in said.out, "two compilers do, or it is said that there is one alone"
    assert "the float model is right in only" in said.err  # labels that are not the model's
    assert str(samples) in rule.read_text() and str(file) in rule.read_text()
    assert main([*words, str(second), "-q"]) == 0 and first.read_bytes() == second.read_bytes()
    assert main(["quantize", str(file), "--plan", str(plan), "-o", str(third)]) == 0
    assert first.read_bytes() == third.read_bytes(), "the plan is all that decides"


def test_a_plan_is_edited(tmp_path: Path) -> None:
    file, _ = saved(tmp_path, mobile())
    facts = json.loads(candidate(mobile(), tmp_path).plan.to_json())
    weight = next(name for name, w in facts["weights"].items() if w["axis"] == 0)
    tensor = next(
        name for name, t in facts["tensors"].items() if t["type"] == "int8" and name.startswith("n")
    )
    facts["weights"][weight] = {"type": "float"}
    facts["tensors"][tensor] = {"type": "int16", "scale": 0.001}
    edited = tmp_path / "plan.json"
    edited.write_text(json.dumps(facts))
    result = quantise(Job(file, None, plan=edited), tmp_path)
    types = {t.name: t.data_type for t in onnx.load_from_string(result.model).graph.initializer}
    assert types[weight] == onnx.TensorProto.FLOAT
    assert types[f"{tensor}/zero_point"] == onnx.TensorProto.INT16
    assert Plan.read(edited).to_json() == result.plan.to_json()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 7}, "schema 7"),
        ({"tensors": {"x": {"type": "int3", "scale": 1}}}, "type int3"),
        ({"tensors": {"x": {"type": "int8", "scale": 0}}}, "more than 0"),
        ({"tensors": {"x": {"type": "int8", "scale": 1, "zero_point": 200}}}, "zero point 200"),
        ({"tensors": {"nobody": {"type": "int8", "scale": 1}}}, "'nobody', which the model has not"),
        ({"weights": {"c9": {"type": "int8", "axis": 0, "scale": [1, 1]}}}, "2 scales"),
        ({"weights": {"c9": {"type": "int8", "axis": 9, "scale": [1]}}}, "along axis 9"),
        ({"tensors": None}, "cannot be used"),
        ({"tensors": {"x": {"type": "int8", "scale": 1e-320}}}, "more than 0"),
        ({"tensors": {"x": {"type": "int8", "scale": 1e300}}}, "finite"),
        ({"equalisation": {"nobody": [1.0]}}, "no channels that could be scaled"),
        ({"bias": {"nobody": [1.0]}}, "no layer with weights"),
    ],
)
def test_wrong_plans(change: dict[str, object], message: str, tmp_path: Path) -> None:
    file, _ = saved(tmp_path, attention() if "c9" not in str(change) else mobile(), 1)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"schema": 1, "tensors": {}, "weights": {}, **change}))
    with pytest.raises(CompileError, match="E302") as caught:
        quantise(Job(file, None, plan=plan), tmp_path)
    assert message in str(caught.value)


def test_what_cannot_be_compiled_is_of_the_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of one that is made on the way."""
    file, samples = saved(tmp_path, mobile())

    def refused(request: Request) -> NoReturn:
        raise fail("E301", "it is refused", where=f"{request.model}: node 'n'")

    monkeypatch.setattr("aot_model.quantise.score.compile_model", refused)
    with pytest.raises(CompileError) as caught:
        quantise(Job(file, samples), tmp_path)
    assert str(caught.value).startswith(f"{file}: node 'n': error: it is refused")


def test_a_quantised_model_passes_through(tmp_path: Path) -> None:
    _, samples = saved(tmp_path, mobile())
    once = candidate(mobile(), tmp_path).model("").SerializeToString()
    quantised = tmp_path / "q.onnx"
    quantised.write_bytes(once)
    again = quantise(Job(quantised, samples), tmp_path)
    assert again.model == once and "passed through" in again.notes[0]


def test_a_number_of_samples_that_is_open(tmp_path: Path) -> None:
    file, samples = saved(tmp_path, tiny())
    model = onnx.load(file)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(model, file)
    with pytest.raises(CompileError, match=r"--dim N=1, or what they are in use"):
        quantise(Job(file, samples), tmp_path)


def test_odd_data_are_told(tmp_path: Path) -> None:
    model = tiny()
    file, _ = saved(tmp_path, model, 1)
    given = data(model, 40)["in_0"]
    cases = {"small": given / 5, "few": given[:4], "same": given[:1].repeat(40, 0)}
    held = tmp_path / "held.npz"
    np.savez(held, in_0=given)
    said = {}
    plan = tmp_path / "plan.json"
    plan.write_text(candidate(model, tmp_path).plan.to_json())
    for name, array in cases.items():
        np.savez(tmp_path / f"{name}.npz", in_0=array)
        job = Job(file, tmp_path / f"{name}.npz", holdout=str(held), plan=plan)
        said[name] = "\n".join(quantise(job, tmp_path).notes)
    assert "0.2 times as large" in said["small"]
    assert "only 4 samples" in said["few"] and "are the same" in said["same"]
    np.savez(tmp_path / "zeros.npz", in_0=np.zeros_like(given))
    with pytest.raises(CompileError, match="ranges cannot be learnt"):
        quantise(Job(file, tmp_path / "zeros.npz"), tmp_path)


def test_batch_normalisations_know_the_scale(tmp_path: Path) -> None:
    """Without labels and other data: data / 3 and noise are told of, by what normalisations learnt."""
    b = Builder(5)
    x = b.normalised(b.conv("x", 12, 3), 12)
    b("Identity", b.normalised(b.conv(b("Relu", x), 8, 12), 8), output="y")
    model = b.model({"x": (1, 3, 12, 12)}, {"y": (1, 8, 12, 12)})
    rng = np.random.default_rng(2)
    good = np.cumsum(rng.normal(0.1, 0.3, (40, 1, 3, 12, 12)), axis=4).astype(np.float32)
    tensors = {t.name: t for t in model.graph.initializer}
    for node in [n for n in model.graph.node if n.op_type == "BatchNormalization"]:  # as training would
        probe = onnx.ModelProto()
        probe.CopyFrom(model)
        del probe.graph.output[:]
        probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.input[0]))
        seen = run(probe, {"in_0": good})[:, 0]
        both = seen.mean(axis=(0, 2, 3)), seen.var(axis=(0, 2, 3))
        for name, value in zip(node.input[3:], both, strict=True):
            tensors[name].CopyFrom(onnx.numpy_helper.from_array(value.astype(np.float32), name))

    def said(data: Array) -> list[str]:
        return doubts_of_training(model, Samples({"x": data.astype(np.float32)}, None, (), ""), "")

    assert spreads(model, Samples({"x": good}, None, (), ""), "") == pytest.approx([1, 1], rel=0.1)
    assert not said(good) and not said(good[:10] * 1.1) and not said(good[:4] / 9), "four say nothing"
    assert said(good / 3) and "0.2" in said(good / 5)[0] and said(good * 255)
    assert said(rng.normal(0, 9, good.shape))


def test_ranges() -> None:
    """Each way against its definition, on a distribution with one far outlier."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(0, 1, 200_000), [40.0]])
    seen = Seen(float(x.min()), float(x.max()))
    seen.counts = np.histogram(x, len(seen.counts), (seen.low, seen.high))[0]
    found = {name: METHODS[name](seen, 255) for name in METHODS}
    assert found["minmax"] == (x.min(), x.max())
    low, high = found["percentile"]
    assert abs(low - np.quantile(x, 0.00005)) < 0.2 and abs(high - np.quantile(x, 0.99995)) < 0.2

    def cost(bounds: tuple[float, float]) -> float:
        plan = fitted("int8", *bounds)
        q = np.clip(np.rint(x / plan.scale) + plan.zero_point, *LIMITS["int8"])
        return float(np.square((q - plan.zero_point) * plan.scale - x).sum())

    brute = min(cost((low * f, high * g)) for low, high in [(x.min(), 8.0), (x.min(), 40.0)]
                for f in (0.7, 0.8, 0.9, 1) for g in (0.5, 0.6, 0.8, 1))  # fmt: skip
    assert cost(found["mse"]) <= 1.05 * min(brute, cost(found["minmax"]), cost(found["percentile"]))
    assert _error(seen, *found["mse"], 255) == pytest.approx(cost(found["mse"]), rel=0.1)
    assert found["entropy"][1] < 20


def test_zero_is_exact_and_ranges_are_kept() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        low, high = np.sort(rng.normal(0, 10, 2) * 10 ** rng.uniform(-6, 6))
        for kind in ("int8", "int16"):
            plan = fitted(kind, float(low), float(high))
            least, most = plan.range
            assert least <= min(low, 0) + plan.scale and most >= max(high, 0) - plan.scale
            assert LIMITS[kind][0] <= plan.zero_point <= LIMITS[kind][1]
            assert kind == "int8" or plan.zero_point == 0


@pytest.mark.parametrize("network", [mobile, attention])
def test_equalisation_keeps_the_float_model(network: object, tmp_path: Path) -> None:
    model = network()  # type: ignore[operator]
    file, samples = saved(tmp_path, model)
    calibration = _calibration(file, samples, tmp_path)
    equal = calibration.equal()
    assert equal is not None and equal.equalisation
    fresh = data(model, 8, seed=4)
    want = run(calibration.plain.network.model, fresh)
    assert np.abs(run(equal.network.model, fresh) - want).max() < 1e-4 * np.abs(want).max()
    for name, _ in equal.equalisation:
        before, after = (
            s.channels / s.channels.max() for s in (calibration.plain.seen[name], equal.seen[name])
        )
        assert np.log(after[after > 0]).std() < np.log(before[before > 0]).std(), "nearer to each other"


def test_biases_mend_the_mean(tmp_path: Path) -> None:
    """The mean of each channel of a layer, which rounding inputs and weights has moved, is where it was."""
    b = Builder()
    b("Identity", b.conv(b.conv("x", 12, 3), 8, 12), output="y")
    model = b.model({"x": (1, 3, 12, 12)}, {"y": (1, 8, 12, 12)})
    calibration = _calibration(*saved(tmp_path, model), tmp_path)
    source = calibration.plain
    coarse = {
        n: weight_plan(source.network.constants[n], w, "int4") for n, w in source.choice.weights.items()
    }
    end = source.choice.layers[-1].before
    rough = {n: fitted("int8", -3.0, 2.0) for n in source.choice.tensors if n != end}
    plan = Plan(rough, coarse)
    weights, found = learnt_by_outputs(source.network, source.choice, plan, calibration.samples, "")
    assert set(found) == {layer.node for layer in source.choice.layers}
    want = run(model, calibration_data := data(model, 48))
    errors = []
    for bias in ({}, found):
        made = inserted(source.network, source.choice, Plan(rough, weights, (), bias), "")
        errors.append(np.abs((run(made, calibration_data) - want).mean(axis=(0, 1, 3, 4))).sum())
    assert errors[1] < 0.02 * errors[0]


def _calibration(file: Path, samples: Path, folder: Path) -> Calibration:
    model, _ = read_float(file, {}, {})
    ready = prepared(model, folder, str(file))
    from aot_model.quantise.network import ports

    return Calibration(ready, read_samples(samples, ports(model)), file)


def test_normalisations_are_folded_and_versions_converted(tmp_path: Path) -> None:
    for opset in (11, 13, 21, 23):
        model = mobile(opset)
        file, _ = saved(tmp_path, model, 1)
        ready = prepared(read_float(file, {}, {})[0], tmp_path, "")
        kinds = [n.op_type for n in ready.graph.node]
        assert "BatchNormalization" not in kinds and ready.opset_import[0].version >= 21
        assert len(choose(Network(ready)).layers) == 7
        fresh = data(model, 2)
        assert np.abs(run(ready, fresh) - run(model, fresh)).max() < 1e-5


def test_constants_that_are_inputs_too(tmp_path: Path) -> None:
    """As old exporters wrote them: they are folded all the same, and none is asked of the user."""
    model = mobile(13)
    for t in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims))
    model.ir_version = 3
    file, _ = saved(tmp_path, model, 1)
    ready = prepared(read_float(file, {}, {})[0], tmp_path, "")
    assert [i.name for i in ready.graph.input] == ["x"]
    assert "BatchNormalization" not in {n.op_type for n in ready.graph.node}
    fresh = data(model, 2)
    assert np.abs(run(ready, fresh) - run(mobile(13), fresh)).max() < 1e-5


def test_metric_of_the_user(tmp_path: Path) -> None:
    file, samples = saved(tmp_path, tiny())
    plan = tmp_path / "plan.json"
    plan.write_text(candidate(tiny(), tmp_path).plan.to_json())
    script = tmp_path / "metric.py"
    script.write_text(
        "import numpy as np\ndef near(outputs, reference, labels):\n"
        "    return -float(np.abs(outputs[0] - reference[0]).max())\ndef nan(*a): return float('nan')\n"
    )
    job = Job(file, samples, metric=f"python:{script}:near", plan=plan)
    result = quantise(job, tmp_path)
    assert -9 < result.rows[0].score.value < 0 and script in result.files
    for wrong in ("near", f"python:{script}:nothing", f"python:{script}:nan"):
        with pytest.raises(CompileError, match="E501"):
            quantise(Job(file, samples, metric=wrong, plan=plan), tmp_path)


def test_doubts_about_samples() -> None:
    """One class, few, all the same; a difference of two answers of many is chance, one of three is not."""
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    one = Samples({"x": x}, np.full(40, 7), (), "d")
    assert [text.split(":")[0] for text in doubts(one)] == ["all samples are of one class (7)"]
    same = Samples({"x": x[:1].repeat(40, 0)}, None, (), "d")
    assert doubts(same) == ["all samples are the same"] and not doubts(Samples({"x": x}, None, (), "d"))
    rows = [Row(None, Score(1 - k / 300, k / 300, snr, 300))  # type: ignore[arg-type]
            for k, snr in ((0, 30.0), (2, 35.0), (3, 40.0))]  # fmt: skip
    assert chosen(rows) == 1 and chosen(rows[:1] + rows[2:]) == 0
    assert first(rows[::-1]) == 1, "the order is the simulation's, which looks before a Softmax"
