"""No compiler looks across the calls of generated code (docs/compilers.md: a bug of GCC that made numbers
wrong).

Networks that GCC 12.1-12.3 and 13.1-13.2 get wrong without AOT_MODEL_OPAQUE and AOT_MODEL_BARRIER are right
with them at every level, and every function with a loop over memory, of the headers and of what is generated,
has one or the other or is part of one that has.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from aot_model.emit.view import Options
from aot_model.host.program import STRICT, build
from aot_model.installation import include_dir
from aot_model.pipeline import Compiled, Request, compile_model
from c_functions import definitions, exposed, header_functions
from corpus import MODELS, REASON
from turns import commit_number

FLAGS = [
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-O2 -flto",
    "-O3 -flto -fwhole-program",
    "-O2 -fwhole-program -fipa-pta",
]
MACHINES = {
    "x86-64-v3": {"avx2", "bmi2", "fma"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "native": set(),
}


def attention(k: int) -> onnx.ModelProto:
    """The movement of heads in an attention, twice: with the same places in memory, GCC specialises its
    function.
    """
    nodes, x = [], "x"
    rng = np.random.default_rng(k)
    constants = {
        "first": [2],
        "last": [3],
        "heads": [17, 4, k],
        "three": [3, 4, 17, k],
        "rows": [3, 17, 4 * k],
    }
    initialisers = [numpy_helper.from_array(np.asarray(v, np.int64), n) for n, v in constants.items()]
    initialisers.append(numpy_helper.from_array(rng.normal(size=(k, k)).astype(np.float32), "w"))
    for b in range(2):
        a, s, r, t, m, z, o = (f"{n}{b}" for n in "asrtmzo")
        nodes += [
            helper.make_node("Softmax", [x], [a], axis=-1),
            helper.make_node("Slice", [a, "first", "last"], [s]),
            helper.make_node("Reshape", [s, "heads"], [r]),
            helper.make_node("Transpose", [r], [t], perm=[1, 0, 2]),
            helper.make_node("MatMul", [t, "w"], [m]),
            helper.make_node("Expand", [m, "three"], [z]),
            helper.make_node("Reshape", [z, "rows"], [o]),
        ]
        x = o
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 17, 4 * k]) for n in ("x", x)]
    graph = helper.make_graph(nodes, "attention", ports[:1], ports[1:], initialisers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def softmax() -> onnx.ModelProto:
    """Softmaxes from one quantised type to another: the sums of their rows were found to be without
    effect.
    """
    values: dict[str, Any] = {
        "scale": np.float32(0.1),
        "zero": np.uint8(128),
        "part": np.float32(1 / 256),
        "low": np.int8(-128),
    }
    nodes, x = [], "x"
    for b in range(3):
        q, d, p, r, y = (f"{n}{b}" for n in "qdpry")
        nodes += [
            helper.make_node("QuantizeLinear", [x, "scale", "zero"], [q]),
            helper.make_node("DequantizeLinear", [q, "scale", "zero"], [d]),
            helper.make_node("Softmax", [d], [p], axis=-1),
            helper.make_node("QuantizeLinear", [p, "part", "low"], [r]),
            helper.make_node("DequantizeLinear", [r, "part", "low"], [y]),
        ]
        x = y
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 16, 16]) for n in ("x", x)]
    graph = helper.make_graph(
        nodes,
        "softmax",
        ports[:1],
        ports[1:],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


NETWORKS = {"narrow": lambda: attention(4), "wide": lambda: attention(16), "softmax": softmax}
"""The bug shows at plain -O2, with AVX-512, at plain -O2."""

Network = tuple[Compiled, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Network]:
    """(compiled, input, expected output) by name."""

    @cache
    def made(name: str) -> Network:
        model, path = NETWORKS[name](), tmp_path_factory.mktemp(name) / f"{name}.onnx"
        onnx.save(model, path)
        compiled = compile_model(Request(path, name, "c"))
        x = np.random.default_rng(1).normal(size=compiled.view.inputs[0].buffer.type.shape).astype(np.float32)
        (y,) = ReferenceEvaluator(model).run(None, {"x": x})
        return compiled, x, np.asarray(y)

    return made


def runs(machine: str) -> bool:
    """Whether this machine has the instructions."""
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and set(cpuinfo.read_text().split()) >= MACHINES[machine]


@cache
def gcc() -> tuple[int, ...]:
    """The version of gcc; () without one."""
    try:
        done = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(int(n) for n in done.stdout.strip().split("."))


def affected() -> bool:
    """Whether this is a GCC for x86-64 that has the bug."""
    machine = (
        subprocess.run(["gcc", "-dumpmachine"], capture_output=True, text=True, check=True).stdout
        if gcc()
        else ""
    )
    return machine.startswith("x86_64") and ((12,) <= gcc() < (12, 4) or (13,) <= gcc() < (13, 3))


def difference(network: Network, texts: dict[str, str], flags: str, folder: Path) -> float:
    compiled, x, want = network
    return float(np.max(np.abs(build(compiled.view, texts, folder, flags.split()).run([[x]])[0][0] - want)))


@pytest.mark.skipif(not gcc(), reason="gcc is not installed")
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("machine", ["", sorted(MACHINES)[commit_number() % len(MACHINES)]])
def test_reduced_networks(
    name: str,
    machine: str,
    network: Callable[[str], Network],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if machine and not runs(machine):
        pytest.skip(f"this processor is no {machine}")
    monkeypatch.setenv("CC", "gcc")
    given = network(name)
    level = FLAGS[commit_number() // len(MACHINES) % 3]
    for flags in [f"{level} -march={machine}"] if machine else FLAGS:
        assert difference(given, dict(given[0].texts), flags, tmp_path) < 1e-5, flags


@pytest.mark.skipif(not affected(), reason="this gcc does not have the bug")
@pytest.mark.parametrize(("name", "machine"), [("narrow", ""), ("wide", "x86-64-v4"), ("softmax", "")])
def test_they_show_the_bug(
    name: str,
    machine: str,
    network: Callable[[str], Network],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without attribute and barriers the reduced networks are wrong: the tests above can fail."""
    if machine and not runs(machine):
        pytest.skip(f"this processor is no {machine}")
    monkeypatch.setenv("CC", "gcc")
    given = network(name)
    texts = {
        n: re.sub(r"\bAOT_MODEL_OPAQUE\b|\bAOT_MODEL_BARRIER;", "", t) for n, t in given[0].texts.items()
    }
    assert difference(given, texts, f"-O2 -march={machine}" if machine else "-O2", tmp_path) > 0.05


@pytest.mark.skipif(not gcc(), reason="gcc is not installed")
def test_two_models_as_one_program(network: Callable[[str], Network], tmp_path: Path) -> None:
    """Link-time optimisation sees the models and their caller together."""
    numbers, calls, names = [], [], []
    for k in ("narrow", "softmax"):
        compiled, x, want = network(k)
        for name, text in compiled.texts.items():
            (tmp_path / name).write_text(text)
        n = compiled.view.name
        port_in, port_out = compiled.view.inputs[0].c_name, compiled.view.outputs[0].c_name
        for what, data in (("in", x), ("want", want)):
            numbers.append(
                f"static const float {what}{k}[] = {{ "
                f"{', '.join(f'{float(v)!r}f' for v in data.reshape(-1))} }};"
            )
        numbers.append(f"static float out{k}[{want.size}];")
        calls.append(
            f"    if ({n}_run(&({n}_inputs){{.{port_in} = in{k}}}, &({n}_outputs){{.{port_out} = out{k}}}) "
            f"!= 0) {{ return 2; }}"
        )
        calls.append(
            f"    for (int i = 0; i < {want.size}; ++i) {{ bad += fabsf(out{k}[i] - want{k}[i]) > 1e-5f; }}"
        )
        names.append(n)
    includes = "\n".join(f'#include "{n}.h"' for n in names)
    lines = [
        "#include <math.h>",
        includes,
        *numbers,
        "int main(void)",
        "{",
        "    int bad = 0;",
        *calls,
        "    return bad != 0;",
        "}",
    ]
    (tmp_path / "main.c").write_text("\n".join(lines) + "\n")
    sources = ["main.c", *(f"{n}.c" for n in names)]
    for flags in (
        ["-O2", "-flto", "-flto-partition=one"],
        ["-O3", "-flto"],
        ["-O2", "-fwhole-program", "-flto"],
    ):
        subprocess.run(
            ["gcc", *STRICT, *flags, "-I.", f"-I{include_dir()}", *sources, "-lm", "-o", "both"],
            cwd=tmp_path,
            check=True,
        )
        assert subprocess.run([str(tmp_path / "both")], check=False).returncode == 0, flags


# --- every function -----------------------------------------------------------------------------------------


def test_headers() -> None:
    assert len(header_functions()) > 100
    found = {p.name: exposed(p.read_text(), header_functions()) for p in sorted(include_dir().rglob("*.h*"))}
    assert not {n: f for n, f in found.items() if f}


def emitted(path: Path, target: str, **options: Any) -> tuple[str, list[str]]:
    """C text, and the functions in it that a compiler could look into."""
    text = compile_model(Request(path, "model", target, library=Options(**options))).texts["model.c"]
    return text, exposed(text, header_functions())


TARGETS = ["c", "host", "cortex-m0", "cortex-m4", "cortex-m55"]


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "model",
    [
        "kws_int8.tflite",
        "resnet8_int8.tflite",
        "digits_mbv3_qdq.onnx",
        "sww_f32.onnx",
        "k_lstm_int8.tflite",
        "tfm_mnist_lstm_int8.tflite",
        "k_har2_i16x8.tflite",
    ],
)
def test_models(model: str, target: str) -> None:
    assert MODELS is not None
    assert not emitted(MODELS / model, target)[1]


def test_interfaces(tmp_path: Path) -> None:
    """What options add to a library."""
    path = tmp_path / "model.onnx"
    onnx.save(attention(4), path)
    every: list[dict[str, Any]] = [
        {"interfaces": ("positional", "packed", "module", "tvm-ffi")},
        {"params": "external"},
        {"workspace": "caller"},
        {"io": "workspace"},
        {"profile": True},
    ]
    for options in every:
        text, bare = emitted(path, "c", **options)
        assert not bare, options
        public = [d for d in definitions(text) if "static" not in d.head and not d.name.endswith("_metadata")]
        assert public
        assert all(d.opaque for d in public), [d.name for d in public if not d.opaque]


def test_the_check_finds_them() -> None:
    """A loop in a function that its callers see, its own and one that is inlined into it."""
    bare = "static void f(int *x)\n{\n    for (int i = 0; i < 4; ++i) {\n        x[i] = 1;\n    }\n}\n"
    inlined = bare.replace("static", "AOT_MODEL_INLINE") + "static void g(int *x)\n{\n    f(x);\n}\n"
    assert exposed(bare, {}) == ["f"]
    assert exposed(inlined, {}) == ["g"]
    assert exposed(bare.replace("static", "AOT_MODEL_OPAQUE static"), {}) == []
    begun = bare.replace("{\n    for", "{\n    AOT_MODEL_BARRIER;\n    for")
    guarded = begun.replace("}\n}", "}\n    AOT_MODEL_BARRIER;\n}")
    assert exposed(begun, {}) == ["f"]
    assert exposed(guarded, {}) == []
    returns = "if (x[i] == 0) {\n            return;\n        }"
    assert exposed(guarded.replace("x[i] = 1;", returns), {}) == ["f"]
    assert exposed(inlined.replace("AOT_MODEL_INLINE", "AOT_MODEL_OPAQUE static"), {}) == []
