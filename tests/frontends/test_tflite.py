"""The TFLite frontend: what it refuses and how it says so, mutated files, and real models where they are at
hand.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.tflite import read_tflite
from aot_model.host.program import SANITIZE, HostProgram, scratch_folder
from aot_model.host.program import build as build_program
from aot_model.pipeline import Request, compile_model
from tflite_models import BOOL, FLOAT32, INT32, INT64, G, Op, Sparsity, T, build, floats
from tflite_reference import litert

MODELS = Path(os.environ.get("AOT_MODEL_MODELS", Path(__file__).parents[3] / "shared" / "models"))
FUZZ_CASES = int(os.environ.get("AOT_MODEL_FUZZ_CASES", "300"))

_rng = np.random.default_rng(1)
WEIGHTS = np.asarray(_rng.integers(-127, 128, (4, 3, 3, 2)), dtype=np.int8)
BIAS = np.asarray(_rng.integers(-999, 999, 4), dtype=np.int32)

CONVOLUTION = (
    T("x", (1, 5, 6, 2), zero=(-3,)),
    T("w", WEIGHTS.shape, scale=(0.01, 0.02, 0.03, 0.04), zero=(0,) * 4, data=WEIGHTS),
    T("b", (4,), INT32, scale=(), data=BIAS),
    T("y", (1, 5, 6, 4), scale=(0.7,), zero=(5,)),
)
CONV = Op(
    "CONV_2D",
    (0, 1, 2),
    (3,),
    "Conv2DOptions",
    {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 1},
)


def save(folder: Path, data: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(data)
    return path


def conv(**changed: Any) -> bytes:
    """The model of one convolution, with tensors changed: x={"scale": …}."""
    tensors = [replace(t, **changed.get(t.name, {})) for t in CONVOLUTION]
    return build(tensors, [CONV], [0], [3])


def errors_of(folder: Path, data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        read_tflite(save(folder, data))
    return str(caught.value)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "code", "words"),
    [
        ({"x": {"scale": ()}}, "E302", "no quantisation"),
        ({"y": {"scale": ()}}, "E302", "no quantisation"),
        ({"x": {"scale": (0.0,)}}, "E302", "scale 0.0"),
        ({"w": {"scale": (0.1, 0.0, 0.1, 0.1)}}, "E302", "scale 0.0"),
        ({"w": {"scale": (0.1, -0.1, 0.1, 0.1)}}, "E302", "scale -0.1"),
        ({"x": {"scale": (float("nan"),)}}, "E302", "scale nan"),
        ({"x": {"zero": (128,)}}, "E302", "zero point"),
        ({"w": {"scale": (0.1, 0.2, 0.3), "zero": (0, 0, 0)}}, "E302", "3 scales"),
        ({"w": {"zero": (0, 0)}}, "E302", "2 zero points"),
        ({"w": {"axis": 3}}, "E302", "along axis 3"),
        ({"w": {"axis": 7}}, "E302", "along axis 7"),
        ({"w": {"data": b"\0" * 10}}, "E102", "its buffer has 10"),
        ({"x": {"shape": (1, -5, 6, 2)}}, "E102", "shape"),
        ({"x": {"shape": (1, 2**30, 2**30, 2)}}, "E102", "larger than 2 GB"),
        ({"x": {"shape": (1, 5, 6, 3)}}, "E301", "do not fit"),
        ({"y": {"shape": (1, 9, 6, 4)}}, "E301", "declared with shape"),
        ({"y": {"type": FLOAT32}}, "E302", "no quantisation"),
        ({"b": {"data": BIAS[:1], "shape": (3,)}}, "E102", "needs 12 bytes"),
        ({"x": {"type": 5}}, "E202", "STRING"),
    ],
)
def test_contradictions_are_named(tmp_path: Path, changed: dict[str, Any], code: str, words: str) -> None:
    text = errors_of(tmp_path, conv(**changed))
    assert f"[{code}]" in text and words in text


def test_the_quantisation_of_a_bias_is_that_of_nobody(tmp_path: Path) -> None:
    """Older converters give it the axis of the weights, 3 for depthwise ones, or one scale too many; nothing
    reads it.
    """
    for bias in (
        {"axis": 3},
        {"scale": (0.1,) * 3},
        {"scale": (0.0,) * 4},
        {"scale": (0.1,) * 4, "zero": (0,) * 3},
    ):
        model = read_tflite(save(tmp_path, conv(b={"scale": (0.1,) * 4, "zero": (0,) * 4, **bias})))
        assert [n.kind for n in model.graph.nodes] == ["Convolution", "Add", "Requantise"]


@pytest.mark.parametrize("kind", ["ADD", "MUL", "SUB", "MAXIMUM", "SQUARED_DIFFERENCE"])
@pytest.mark.parametrize("field", ["new", "old", "both"])
def test_an_operator_is_the_larger_of_its_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, field: str
) -> None:
    """Quantisers write only the new field of operators that they add, old converters only the old one."""
    unwritten = {"new": "OperatorCodeAddDeprecatedBuiltinCode", "old": "OperatorCodeAddBuiltinCode"}
    if field in unwritten:
        monkeypatch.setattr(tflite, unwritten[field], lambda *_: None)
    tensors = [floats(name, 2, 3) for name in "aby"]
    data = build(tensors, [Op(kind, (0, 1), (2,))], [0, 1], [2])
    fed = [np.asarray(_rng.normal(size=(2, 3)), np.float32) for _ in range(2)]
    compiled = compile_model(Request(save(tmp_path, data), "m", "c"))
    program = build_program(compiled.view, compiled.texts, tmp_path / "c")
    np.testing.assert_allclose(program.run([fed])[0][0], litert(data, fed)[0], rtol=1e-6)


def test_what_a_shape_signature_leaves_open_is_bound(tmp_path: Path) -> None:
    """-1 in the signature: the file's extent, or that of --dim; the shapes of the operators follow."""
    two = [
        replace(CONVOLUTION[0], signature=(-1, 5, -1, 2)),
        *CONVOLUTION[1:3],
        replace(CONVOLUTION[3], signature=(-1, 5, -1, 4)),
    ]
    path = save(tmp_path, build(two, [CONV], [0], [3]))
    assert read_tflite(path).graph.outputs[0].shape == (1, 5, 6, 4)
    assert "--dim x:2=N" in " ".join(read_tflite(path).notes)
    model = read_tflite(path, Bindings({"x:0": 3, "x:2": 9}))
    assert (model.graph.inputs[0].shape, model.graph.outputs[0].shape) == ((3, 5, 9, 2), (3, 5, 9, 4))
    with pytest.raises(CompileError, match=r"--dim x:1.*leaves no such.*\[E203\]\n.*x:0, x:2"):
        read_tflite(path, Bindings({"x:1": 3}))


def test_an_input_can_be_a_constant(tmp_path: Path) -> None:
    model = read_tflite(save(tmp_path, conv()), Bindings(constants={"x": [3.0]}))
    assert not model.graph.inputs
    with pytest.raises(CompileError, match="no such input"):
        read_tflite(save(tmp_path, conv()), Bindings(constants={"z": [3.0]}))


SPARSE = {  # the same tensor, in several orders and with blocks
    "rows": Sparsity((0, 1), (4, ([0, 2, 2, 3, 5], [0, 3, 1, 0, 2]))),
    "columns": Sparsity((1, 0), (4, ([0, 2, 3, 4, 5], [0, 3, 2, 3, 0]))),
    "both": Sparsity((0, 1), (([0, 3], [0, 2, 3]), ([0, 2, 3, 5], [0, 3, 1, 0, 2]))),
    "blocks": Sparsity((0, 1, 2, 3), (2, ([0, 2, 4], [0, 1, 0, 1]), 2, 2), (0, 1)),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_sparse_constant_is_densified(tmp_path: Path, name: str) -> None:
    whole = np.asarray([[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0], [4, 0, 5, 0]], np.float32)
    stored = {"columns": whole.T[whole.T != 0], "blocks": whole.reshape(2, 2, 2, 2).swapaxes(1, 2)}.get(
        name, whole[whole != 0]
    )
    weights = T("w", (4, 4), FLOAT32, scale=(), data=np.ascontiguousarray(stored), sparsity=SPARSE[name])
    tensors = [floats("x", 1, 4), weights, floats("d", 4, 4), floats("y", 1, 4)]
    operators = [
        Op("DENSIFY", (1,), (2,), "DensifyOptions"),
        Op("FULLY_CONNECTED", (0, 2), (3,), "FullyConnectedOptions"),
    ]
    graph = read_tflite(save(tmp_path, build(tensors, operators, [0], [3]))).graph
    assert np.array_equal(np.asarray(graph.nodes[0].inputs[1].data).T, whole)


@pytest.mark.parametrize("broken", [
    Sparsity((0, 0), (4, 4)),
    Sparsity((0, 1), (4, ([0, 2, 1, 3, 5], [0, 3, 1, 0, 2]))),
    Sparsity((0, 1), (4, ([0, 2, 2, 3, 5], [0, 3, 1, 0, 4]))),
    Sparsity((0, 1, 2), (4, 4, 4)),
    Sparsity((0, 1, 2, 3), (2, 2, 3, 2), (0, 1)),
    Sparsity((0,), (4,)),
])  # fmt: skip
def test_a_broken_sparse_constant_is_refused(tmp_path: Path, broken: Sparsity) -> None:
    weights = T("w", (4, 4), FLOAT32, scale=(), data=np.zeros(16, np.float32), sparsity=broken)
    assert "[E102]" in errors_of(
        tmp_path,
        build(
            [floats("x", 1, 4), weights, floats("y", 1, 4)],
            [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions")],
            [0],
            [2],
        ),
    )


@pytest.mark.parametrize(
    "kind",
    [
        "EXP",
        "LOG",
        "TANH",
        "LOGISTIC",
        "SQRT",
        "RSQRT",
        "SIN",
        "FLOOR",
        "ELU",
        "GELU",
        "HARD_SWISH",
        "SOFTMAX",
        "LOGICAL_NOT",
        "LOGICAL_AND",
    ],
)
def test_functions_of_real_numbers_refuse_integers(tmp_path: Path, kind: str) -> None:
    x, y = T("x", (4,), INT32, scale=()), T("y", (4,), INT32, scale=())
    text = errors_of(
        tmp_path, build([x, y], [Op(kind, (0, 0) if kind == "LOGICAL_AND" else (0,), (1,))], [0], [1])
    )
    assert "[E202]" in text and "int32[4]" in text


@pytest.mark.parametrize("index", [99, -7])
def test_an_index_outside_the_table_is_refused(tmp_path: Path, index: int) -> None:
    text = errors_of(tmp_path, build(CONVOLUTION, [replace(CONV, inputs=(index, 1, 2))], [0], [3]))
    assert "[E102]" in text and f"names tensor {index} of 4" in text
    assert "[E102]" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [index], [3]))


def test_a_tensor_that_nothing_computes_is_refused(tmp_path: Path) -> None:
    assert "which nothing computes" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [], [3]))
    assert "not computed by any operator" in errors_of(tmp_path, build(CONVOLUTION, [], [0], [3]))
    assert "written already" in errors_of(tmp_path, build(CONVOLUTION, [CONV, CONV], [0], [3]))


def test_all_unsupported_operators_are_named_at_once(tmp_path: Path) -> None:
    operators = [
        Op("CUSTOM:Whisper", (0,), (3,)),
        Op("HASHTABLE", (0,), (3,)),
        CONV,
        Op("CUSTOM:Whisper", (0,), (3,)),
    ]
    text = errors_of(tmp_path, build(CONVOLUTION, operators, [0], [3]))
    assert "custom operator 'Whisper' is not supported (operator 0, 3)" in text
    assert "operator HASHTABLE is not supported (operator 1)" in text
    assert "look up before the model" in text


@pytest.mark.parametrize(
    "data",
    [b"", b"TFL3", b"\x1c\0\0\0TFL3", b"\xff" * 4 + b"TFL3" + b"\xff" * 64, b"\x08\0\0\0TFL3" + b"\0" * 64],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    assert "[E102]" in errors_of(tmp_path, data)


def test_another_version_and_named_dimensions_are_refused(tmp_path: Path) -> None:
    assert "version 2" in errors_of(tmp_path, build(CONVOLUTION, [CONV], [0], [3], version=2))
    with pytest.raises(CompileError, match="E203"):
        read_tflite(save(tmp_path, conv()), Bindings({"batch": 2}))


def test_a_loop_of_options_is_refused(tmp_path: Path) -> None:
    """Strides of 0 and unknown paddings and activations."""
    for fields in ({"StrideH": 0}, {"Padding": 7}, {"FusedActivationFunction": 9}, {"DilationHFactor": -1}):
        errors_of(tmp_path, build(CONVOLUTION, [replace(CONV, fields={**CONV.fields, **fields})], [0], [3]))


# --- mutated files ------------------------------------------------------------------------------------------


def seeds() -> list[bytes]:
    """Valid models of several kinds."""
    pads = np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], dtype=np.int32)
    x, y = T("x", (1, 4, 4, 2)), T("y", (1, 4, 4, 2))
    dense = np.asarray(_rng.integers(-9, 9, (3, 32)), dtype=np.int8)
    return [
        conv(),
        branches(Op("MUL", (0, 0), (1,), "MulOptions")),
        build(
            [x, T("p", (4, 2), INT32, scale=(), data=pads), T("y", (1, 6, 6, 2))],
            [Op("PAD", (0, 1), (2,))],
            [0],
            [2],
        ),
        build(
            [x, y, T("z", (1, 4, 4, 2), zero=(3,))],
            [Op("ADD", (0, 0), (1,), "AddOptions"), Op("MUL", (1, 0), (2,), "MulOptions")],
            [0],
            [2],
        ),
        build(
            [x, T("w", (3, 32), data=dense), T("y", (1, 3))],
            [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions")],
            [0],
            [2],
        ),
        build(
            [x, T("y", (1, 2, 2, 2)), T("s", (1, 8), zero=(-128,), scale=(1 / 256,)), T("r", (1, 8))],
            [
                Op(
                    "AVERAGE_POOL_2D",
                    (0,),
                    (1,),
                    "Pool2DOptions",
                    {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2, "Padding": 1},
                ),
                Op("RESHAPE", (1,), (3,), "ReshapeOptions", {"NewShape": [1, 8]}),
                Op("SOFTMAX", (3,), (2,), "SoftmaxOptions", {"Beta": 1.0}),
            ],
            [0],
            [2],
        ),
    ]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes flipped, words replaced by awkward ones, the end cut off, pieces swapped."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if len(result) < 8:
            break
        at = rng.randrange(len(result) - 4)
        kind = rng.randrange(4)
        if kind == 0:
            result[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            word = rng.choice(
                (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, len(result), at, rng.getrandbits(32))
            )
            result[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
        elif kind == 2:
            del result[at:]
        else:
            other = rng.randrange(max(len(result) - 16, 1))
            result[at : at + 16] = result[other : other + 16]
    return bytes(result)


def test_mutated_models_end_in_an_error_or_a_graph(tmp_path: Path) -> None:
    """Nothing but CompileError may come out; what is accepted must compile."""
    rng = random.Random(20)
    valid = seeds()
    if MODELS.is_dir():
        small = [p for p in sorted(MODELS.glob("*.tflite")) if p.stat().st_size < 20000]
        valid += [p.read_bytes() for p in small]
    accepted = 0
    for case in range(FUZZ_CASES):
        path = save(tmp_path, mutated(rng.choice(valid), rng))
        try:
            if case % 10:
                read_tflite(path)
            else:
                compile_model(Request(path, "m", "c"))
            accepted += 1
        except CompileError:
            pass
    assert accepted > FUZZ_CASES // 20


# --- real models --------------------------------------------------------------------------------------------


def program(path: Path, folder: Path, *flags: str, **options: str) -> HostProgram:
    compiled = compile_model(Request(path, "m", "c", options))
    return build_program(compiled.view, compiled.texts, folder, ["-O1", *flags])


def outputs(model: HostProgram, vectors: dict[str, np.ndarray], consecutive: bool) -> list[list[np.ndarray]]:
    """A model with state starts afresh for each vector, unless they are consecutive runs."""
    rows = [
        [vectors[f"in_{k}"][i] for k in range(len(model.view.inputs))] for i in range(len(vectors["in_0"]))
    ]
    return (
        model.run(rows)
        if consecutive or not model.view.program.states
        else [model.run([row])[0] for row in rows]
    )


def corpus() -> list[str]:
    index = MODELS / "index.json"
    if not index.is_file():
        return []
    return [
        r["file"]
        for r in json.loads(index.read_text())
        if r["file"].endswith(".tflite")
        and r["status"].startswith(("run", "stretch"))
        and r["size"] < 150_000
    ]


@pytest.mark.skipif(not corpus(), reason=f"no models in {MODELS}; set AOT_MODEL_MODELS")
@pytest.mark.parametrize("file", corpus())
def test_real_models_match_their_reference(file: str) -> None:
    """Integers to the bit, floats within 1e-3 of the range."""
    # it has no other reference
    options = {"arithmetic": "litert-ref"} if file == "k_attn_int8.tflite" else {}
    with scratch_folder() as folder:
        model = program(MODELS / file, Path(folder), *(SANITIZE if "int8" in file else ()), **options)
        for suffix in (".npz", ".seq.npz"):
            if not (MODELS / f"{file}{suffix}").is_file():
                continue
            with np.load(MODELS / f"{file}{suffix}") as stored:
                vectors = dict(stored)
            for i, row in enumerate(outputs(model, vectors, suffix == ".seq.npz")):
                for k, got in enumerate(row):
                    expected = vectors[f"out_{k}"][i]
                    if expected.dtype.kind == "f":
                        bound = 1e-3 * max(float(np.nanmax(np.abs(expected), initial=0)), 1e-9)
                        assert np.allclose(
                            got.reshape(expected.shape), expected, rtol=0, atol=bound, equal_nan=True
                        )
                    else:
                        assert np.array_equal(got.reshape(expected.shape), expected), (suffix, i, k)


@pytest.mark.skipif(not corpus(), reason=f"no models in {MODELS}; set AOT_MODEL_MODELS")
@pytest.mark.parametrize("file", ["ad_int8.tflite", "resnet8_int8.tflite"])
def test_fully_connected_layers_round_as_litert_when_asked(file: str) -> None:
    with scratch_folder() as folder, np.load(MODELS / f"{file}.npz") as vectors:
        model = program(MODELS / file, Path(folder), arithmetic="litert-ref")
        for i, row in enumerate(outputs(model, dict(vectors), False)):
            assert np.array_equal(
                row[0].reshape(vectors["litert_out_0"][i].shape), vectors["litert_out_0"][i]
            )


def test_integer_networks_have_no_floats(tmp_path: Path) -> None:
    compiled = compile_model(Request(save(tmp_path, seeds()[-1]), "m", "c"))
    assert "float" not in compiled.texts["m.c"].split("/* ---- metadata")[0]


def test_names_of_a_model_cannot_break_the_c_text(tmp_path: Path) -> None:
    """A hostile tensor name stays inside its comment."""
    tensors = [replace(t, name='*/ #error "x" /*' if t.name == "y" else t.name) for t in CONVOLUTION]
    compiled = compile_model(Request(save(tmp_path, build(tensors, [CONV], [0], [3])), "m", "c"))
    with scratch_folder() as folder:
        built = build_program(compiled.view, compiled.texts, Path(folder))
        x = np.asarray(_rng.integers(-128, 128, (1, 5, 6, 2)), dtype=np.int8)
        assert built.run([[x]])[0][0].dtype == np.dtype(np.int8)


# --- control flow and state ---------------------------------------------------------------------------------


def scalar(name: str, kind: int = FLOAT32, data: np.ndarray | None = None) -> T:
    return T(name, (), kind, scale=(), data=data)


def branches(*operators: Op) -> bytes:
    """if c: x + x else: x * x, with the operators of the second branch given."""
    main = [scalar("c", BOOL), scalar("x"), scalar("y")]
    body = [scalar("a"), scalar("b")]
    choice = Op("IF", (0, 1), (2,), "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
    then = G(body, [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    return build(main, [choice], [0, 1], [2], then, G(body, operators, [0], [1]))


def run_one(folder: Path, data: bytes, *vectors: list[np.ndarray]) -> list[list[np.ndarray]]:
    return program(save(folder, data), folder / "built").run(list(vectors))


def test_if_takes_one_branch(tmp_path: Path) -> None:
    x = np.asarray(3, np.float32)
    rows = run_one(
        tmp_path,
        branches(Op("MUL", (0, 0), (1,), "MulOptions")),
        [np.asarray(True), x],
        [np.asarray(False), x],
    )
    assert [float(r[0]) for r in rows] == [6.0, 9.0]


@pytest.mark.parametrize("most", [5, 6])
def test_if_of_a_condition_that_folding_finds(tmp_path: Path, most: int) -> None:
    """Whether an array has at most so many elements, as TensorFlow asks to choose a type of integers."""
    main = [
        T("x", (2, 3), FLOAT32, ()), T("shape", (2,), INT64, ()),
        T("axis", (1,), INT32, (), data=np.asarray([0], np.int32)), T("size", (), INT64, ()),
        T("most", (), INT64, (), data=np.asarray(most)), T("c", (), BOOL, ()), T("y", (2, 3), FLOAT32, ()),
    ]  # fmt: skip
    operators = [
        Op("SHAPE", (0,), (1,), "ShapeOptions", {"OutType": INT64}),
        Op("REDUCE_PROD", (1, 2), (3,), "ReducerOptions", {"KeepDims": False}),
        Op("LESS_EQUAL", (3, 4), (5,)),
        Op("IF", (5, 0), (6,), "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}),
    ]
    body = [T("a", (2, 3), FLOAT32, ()), T("b", (2, 3), FLOAT32, ())]
    then = G(body, [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    otherwise = G(body, [Op("MUL", (0, 0), (1,), "MulOptions")], [0], [1])
    data = build(main, operators, [0], [6], then, otherwise)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (row,) = run_one(tmp_path, data, [x])
    np.testing.assert_array_equal(row[0], litert(data, [x])[0])
    np.testing.assert_array_equal(row[0], x + x if most == 6 else x * x)


def test_while_runs_until_its_condition_fails(tmp_path: Path) -> None:
    """Doubles until the value is 50 or more."""
    main = [scalar("x"), scalar("y")]
    loop = Op("WHILE", (0,), (1,), "WhileOptions", {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2})
    again = G(
        [scalar("a"), scalar("limit", data=np.asarray(50, np.float32)), scalar("c", BOOL)],
        [Op("LESS", (0, 1), (2,))],
        [0],
        [2],
    )
    double = G([scalar("a"), scalar("b")], [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    rows = run_one(
        tmp_path,
        build(main, [loop], [0], [1], again, double),
        *([np.asarray(v, np.float32)] for v in (3, 50, 99)),
    )
    assert [float(r[0]) for r in rows] == [96.0, 50.0, 99.0]


def test_errors_inside_of_branches_are_told(tmp_path: Path) -> None:
    text = errors_of(tmp_path, branches(Op("MUL", (0, 9), (1,), "MulOptions")))
    assert "names tensor 9 of 2" in text
    text = errors_of(tmp_path, branches(Op("CUSTOM:Whisper", (0,), (1,))))
    assert "operator 0 of sub-graph 2" in text
    nested = Op("IF", (0, 0), (1,), "IfOptions", {"ThenSubgraphIndex": 2, "ElseSubgraphIndex": 2})
    assert "runs itself" in errors_of(tmp_path, branches(nested))


def test_a_variable_keeps_its_value_from_run_to_run(tmp_path: Path) -> None:
    """A running sum in a resource variable that begins at 5."""
    names = {"Container": 0, "SharedName": 0}
    handle = T("handle", (), 13, scale=())
    main = [scalar("x"), handle, scalar("old"), scalar("new")]
    operators = [
        Op("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", names),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("ADD", (0, 2), (3,), "AddOptions"),
        Op("ASSIGN_VARIABLE", (1, 3), ()),
    ]
    start = G(
        [handle, scalar("five", data=np.asarray(5, np.float32))],
        [Op("VAR_HANDLE", (), (0,), "VarHandleOptions", names), Op("ASSIGN_VARIABLE", (0, 1), ())],
        [],
        [],
    )
    rows = run_one(
        tmp_path, build(main, operators, [0], [3], start), *([np.asarray(v, np.float32)] for v in (1, 2, 3))
    )
    assert [float(r[0]) for r in rows] == [6.0, 8.0, 11.0]


@pytest.mark.parametrize("assigned", [False, True])
def test_a_variable_that_gets_no_value_is_refused(assigned: bool, tmp_path: Path) -> None:
    """Converted from a concrete function, weights stay behind: LiteRT stops where they are read. One that the
    run itself assigns begins with 0.
    """
    operators = [
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions", {"Container": 0, "SharedName": 0}),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("ADD", (0, 2), (3,), "AddOptions"),
        *([Op("ASSIGN_VARIABLE", (1, 3), ())] if assigned else []),
    ]
    tensors = [scalar("x"), T("weights", (), 13, scale=()), scalar("old"), scalar("new")]
    model = build(tensors, operators, [0], [3])
    if assigned:
        rows = run_one(tmp_path, model, *([np.asarray(v, np.float32)] for v in (1, 2)))
        assert [float(r[0]) for r in rows] == [1.0, 3.0]
    else:
        assert "nothing gives a value to" in errors_of(tmp_path, model)
