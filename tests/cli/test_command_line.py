"""The command line: what each subcommand prints and returns, and how fast it starts."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model import __version__
from aot_model.cli import main
from aot_model.cli.arguments import parser
from onnx_models import model, save, small_cnn, tensor, unary

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def cnn(tmp_path: Path) -> Path:
    return save(small_cnn(), tmp_path / "cnn.onnx")


def expected(count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of small_cnn and the outputs of the reference evaluator, stacked."""
    from onnx.reference import ReferenceEvaluator

    x = np.asarray(np.random.default_rng(5).normal(size=(count, 1, 2, 6, 6)), np.float32)
    session = ReferenceEvaluator(small_cnn())
    return x, np.stack([session.run(None, {"x": v})[0] for v in x])


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    x, y = expected()
    np.savez(tmp_path / "v.npz", in_0=x, out_0=y)
    return tmp_path / "v.npz"


# --- about the installation ---------------------------------------------------------------------------------


def answered(arguments: list[str], capsys: Captured) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    return capsys.readouterr().out.strip()


def test_version(capsys: Captured) -> None:
    assert answered(["--version"], capsys) == f"aot-model {__version__}"
    for order in (["--version", "--json"], ["--json", "--version"]):
        facts = json.loads(answered(order, capsys))
        assert facts["version"] == __version__ and facts["missing"] == []


def test_every_command_has_help() -> None:
    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert f"aot-model {name}".replace("quantize", "quantise") in command.format_help()
    assert "0.5%" in commands.choices["compile"].format_help()


def test_folders(capsys: Captured) -> None:
    assert (Path(answered(["--include-dir"], capsys)) / "aot_model" / "model.h").is_file()
    assert (Path(answered(["--cmake-dir"], capsys)) / "AotModelConfig.cmake").is_file()


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["compile"], ["compile", "m.onnx"], ["compile", "m.onnx", "-o", "x", "--nonsense"],
     ["compile", "m.onnx", "-o", "x", "--work", "static"], ["compile", "m.onnx", "-o", "x", "--dim", "N"],
     ["compile", "m.onnx", "-o", "x", "--dim", "N=0"], ["compile", "m.onnx", "-o", "x", "--max-ram", "-1"],
     ["compile", "m.onnx", "-o", "x", "--max-ram", "12q"],
     ["compile", "m.onnx", "-o", "x", "--pool", "a b:1"], ["compile", "m.onnx", "-o", "x", "--pool", "a:1:3"],
     ["verify", "m.onnx", "--vectors", "v", "--rtol", "-1"],
     ["verify", "m.onnx", "--vectors", "v", "--max-lsb", "x"],
     ["compile", "m.onnx", "-o", "x", "--metadata", "some"], ["targets", "--json", "--markdown"]],
)  # fmt: skip
def test_mistyped_options_are_usage_errors(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert re.match(
        r"aot-model( \w+)?: error: .*\n  hint: see aot-model( \w+)? --help\n$", capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["--version"], ["--include-dir"], ["--version", "--json"]])
def test_answers_import_no_packages(arguments: list[str]) -> None:
    program = (
        "import sys; from aot_model.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: "
        "pass\nprint([m for m in ('numpy', 'onnx', 'jinja2') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip().endswith("[]")


def test_compiling_imports_what_the_format_needs(tmp_path: Path) -> None:
    """Start-up is most of the time of a small model: the other formats' packages stay out."""
    program = (
        "import sys; from aot_model.cli import main\nassert main(sys.argv[1:]) == 0\nprint(*(m for m "
        "in ('onnx_ir', 'tflite', 'flatbuffers', 'onnxruntime') if m in sys.modules))"
    )
    model = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
    done = subprocess.run(
        [sys.executable, "-c", program, "compile", str(model), "-q", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


# --- compile and check --------------------------------------------------------------------------------------


def test_compile_writes_three_files(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert (
        main(
            [
                "compile",
                str(cnn),
                "-q",
                "-o",
                str(tmp_path / "out"),
                "--report",
                str(tmp_path / "r.txt"),
                "--depfile",
                str(tmp_path / "d"),
            ]
        )
        == 0
    )
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["cnn.c", "cnn.h", "cnn.json"]
    assert "conv1" in (tmp_path / "r.txt").read_text()
    depfile = (tmp_path / "d").read_text()
    assert (
        depfile.startswith(str(tmp_path / "out" / "cnn.c"))
        and str(cnn) in depfile
        and "model.c.j2" in depfile
    )
    assert capsys.readouterr().out == ""


def test_unchanged_files_keep_their_time(cnn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    before = {p: p.stat().st_mtime_ns for p in out.iterdir()}
    assert main(["compile", str(cnn), "-o", str(out), "--keep-unchanged"]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.iterdir()} == before
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.iterdir()} != before


def test_symbolic_dimensions(tmp_path: Path, capsys: Captured) -> None:
    path = save(unary("Relu", ["N", "width"]), tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "o"), "--dim", "width=7"]) == 0
    assert "'N'" in capsys.readouterr().err
    assert json.loads((tmp_path / "o" / "m.json").read_text())["inputs"][0]["shape"] == [1, 7]
    assert (
        main(
            [
                "compile",
                str(path),
                "-o",
                str(tmp_path / "o"),
                "--dim",
                "width=7",
                "--dim",
                "N=3",
                "--dim",
                "depth=2",
            ]
        )
        == 1
    )
    assert "depth" in capsys.readouterr().err


def test_constant_inputs(tmp_path: Path, capsys: Captured) -> None:
    """A shape that is an input is known when --constant says it; the C function does not take it."""
    inputs = [
        helper.make_tensor_value_info(n, t, s)
        for n, t, s in (("x", TensorProto.FLOAT, [2, 3]), ("shape", TensorProto.INT64, [2]))
    ]
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])]
    )
    path = save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
        tmp_path / "m.onnx",
    )
    compiling = ["compile", str(path), "-o", str(tmp_path / "o")]
    assert main(compiling) == 1
    assert "--constant" in capsys.readouterr().err
    assert main([*compiling, "--constant", "shape=3,-1"]) == 0
    facts = json.loads((tmp_path / "o" / "m.json").read_text())
    assert [i["name"] for i in facts["inputs"]] == ["x"] and facts["outputs"][0]["shape"] == [3, 2]
    for wrong in ("shape=1,2,3", "nothing=1"):
        assert main([*compiling, "--constant", "shape=6", "--constant", wrong]) == 1
        assert "[E203]" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*compiling, "--constant", "shape=a"])


def test_bounds(tmp_path: Path, capsys: Captured) -> None:
    """A range with limits of run time has room for as many numbers as --bound says, and its shape is an
    output.
    """
    inputs = [tensor(n, [], TensorProto.INT32) for n in ("start", "limit", "delta")]
    path = save(
        model(
            [helper.make_node("Range", ["start", "limit", "delta"], ["r"])],
            inputs,
            [tensor("r", None, TensorProto.INT32)],
        ),
        tmp_path / "m.onnx",
    )
    compiling = ["compile", str(path), "-o", str(tmp_path / "o")]
    assert main([*compiling, "--bound", "r=10"]) == 0
    assert [
        (o["name"], o["shape"]) for o in json.loads((tmp_path / "o" / "m.json").read_text())["outputs"]
    ] == [("r", [10]), ("r.shape", [1])]
    assert main(compiling) == 1 and main([*compiling, "--bound", "s=10"]) == 1
    assert "[E203]" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "limit"), [("--max-ram", "1"), ("--max-flash", "10")])
def test_budgets(option: str, limit: str, cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), option, limit]) == 1
    text = capsys.readouterr().err
    assert "[E402]" in text and "conv1" in text and not (tmp_path / "o").exists()
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), option, "1m"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--target", "cortex-m5"],
        ["--target", "c,nonsense=1"],
        ["--target", "c", "--option", "optimize=much"],
        ["--dump-after", "nonsense"],
        ["--explain", "x"],
    ],
)
def test_unknown_targets_options_and_passes(
    arguments: list[str], cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), *arguments]) == 1
    assert "[E501]" in capsys.readouterr().err


def test_dumps_and_explanations(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert (
        main(
            [
                "compile",
                str(cnn),
                "-o",
                str(tmp_path / "o"),
                "--dump-after",
                "expand",
                "--explain",
                "move_transposes",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "; after expand" in out and "Convolution(" in out and "; move_transposes: changed the graph" in out


def test_check_tells_everything_and_writes_nothing(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["check", str(cnn), "--target", "cortex-m4"]) == 0
    assert "no problems" in capsys.readouterr().out
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=9, name="n1"),
        helper.make_node("Relu", ["x"], ["b"], foo=1, name="n2"),
    ]
    bad = save(model(nodes, [tensor("x", [2, 2])], [tensor("a", None)]), tmp_path / "bad.onnx")
    assert main(["check", str(bad), "--target", "c"]) == 1
    captured = capsys.readouterr()
    assert "'n1'" in captured.err and "'n2'" in captured.err and "2 problems" in captured.out
    assert main(["check", str(bad), "--json"]) == 1
    assert [p["code"] for p in json.loads(capsys.readouterr().out)["problems"]] == ["E301", "E202"]


# --- inspect, run, verify -----------------------------------------------------------------------------------


def test_inspect(cnn: Path, capsys: Captured) -> None:
    assert main(["inspect", str(cnn)]) == 0
    text = capsys.readouterr().out
    for word in ("Conv", "Softmax", "float32[1, 2, 6, 6]", "multiply-accumulate", "lower bound", "*|###"):
        assert word in text
    assert main(["inspect", str(cnn), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["operators"]["Conv"] == 2 and facts["macs"] == 36 * 4 * 9 * (2 + 4) + 36 * 5
    assert max(s["bytes"] for s in facts["memory_over_time"]) <= facts["workspace"]["pools"][0]["bytes"]
    assert facts["inputs"][0]["name"] == "x"


def test_run_by_name_and_stacked(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    np.savez(tmp_path / "one.npz", x=x[0])
    assert (
        main(["run", str(cnn), "--inputs", str(tmp_path / "one.npz"), "--outputs", str(tmp_path / "o.npz")])
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], y[0], rtol=1e-4, atol=1e-5)
    np.savez(tmp_path / "all.npz", in_0=x)
    assert (
        main(
            [
                "run",
                str(cnn),
                "--inputs",
                str(tmp_path / "all.npz"),
                "--outputs",
                str(tmp_path / "o.npz"),
                "--target",
                "c",
                "--sanitize",
            ]
        )
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["out_0"], y, rtol=1e-4, atol=1e-5)
    assert main(["run", str(cnn), "--inputs", str(tmp_path / "one.npz")]) == 0
    assert "y: float32[1, 5]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"z": np.zeros(3)},
        {"x": np.zeros((1, 2, 6, 6))},
        {"x": np.zeros((2, 6, 6), np.float32)},
        {"in_0": np.zeros((3, 2, 6, 6), np.float32)},
    ],
)
def test_run_with_wrong_inputs(
    arrays: dict[str, np.ndarray], cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    np.savez(tmp_path / "i.npz", **arrays)
    assert main(["run", str(cnn), "--inputs", str(tmp_path / "i.npz")]) == 1
    assert "[E104]" in capsys.readouterr().err


def test_inputs_that_cannot_be_read(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "i.npz").write_bytes(b"PK\x03\x04 nonsense")
    for name in ("i.npz", "none.npz"):
        assert main(["run", str(cnn), "--inputs", str(tmp_path / name)]) == 1
        assert "[E104]" in capsys.readouterr().err


def test_run_on_a_single_array(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    np.save(tmp_path / "x.npy", x[0])
    assert (
        main(["run", str(cnn), "--inputs", str(tmp_path / "x.npy"), "--outputs", str(tmp_path / "o.npz")])
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], y[0], rtol=1e-4, atol=1e-5)
    two = save(
        model(
            [helper.make_node("Add", ["a", "b"], ["c"])],
            [tensor("a", [2]), tensor("b", [2])],
            [tensor("c", [2])],
        ),
        tmp_path / "two.onnx",
    )
    assert main(["run", str(two), "--inputs", str(tmp_path / "x.npy")]) == 1
    error = capsys.readouterr().err
    assert "[E104]" in error and "the model has 2 inputs: a, b" in error and ".npz" in error


def _npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "No such file"), (b"", "neither .npy nor .npz"), (b"nonsense", "neither .npy nor .npz"),
     (b"\x80\x04N.", "neither .npy nor .npz"), (np.array([{}], dtype=object), "Python objects"),
     (np.zeros((2, 6, 6), np.float32), "is float32[2, 6, 6], not float32[1, 2, 6, 6]"),
     (np.zeros((1, 2, 6, 6)), "is float64"),
     (np.zeros((1, 2, 6, 6), [("a", "<f4")]), "not float32[1, 2, 6, 6]"),
     (np.zeros((), np.float32), "is float32[], not float32"), (_npy(b""), "cannot be read"),
     (b"\x93NUMPY", "cannot be read"),
     (_npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,)}\n"), "cannot be read"),
     (_npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}\n") + b"12345", "cannot be read"),
     (_npy(b"((((" * 900 + b"\n"), "cannot be read")])  # fmt: skip
def test_a_single_array_that_does_not_fit(
    data: bytes | np.ndarray | None, said: str, cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.npy"
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif data is not None:
        np.save(path, data, allow_pickle=True)
    assert main(["run", str(cnn), "--inputs", str(path)]) == 1
    error = capsys.readouterr().err
    assert "[E104]" in error and said in error and "allow_pickle" not in error


@pytest.mark.parametrize("more", [[], ["--target", "c"], ["--sanitize"], ["--sequence"]])
def test_verify_agrees(more: list[str], cnn: Path, vectors: Path, capsys: Captured) -> None:
    assert main(["verify", str(cnn), "--vectors", str(vectors), *more]) == 0
    assert "3 vectors" in (text := capsys.readouterr().out) and " ok" in text


def test_verify_finds_a_difference(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    y[1, 0, 2] += 0.01
    np.savez(tmp_path / "v.npz", in_0=x, out_0=y)
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "v.npz")]) == 1
    captured = capsys.readouterr()
    assert "[E602]" in captured.err and "differs" in captured.out
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "v.npz"), "--atol", "0.02"]) == 0


def test_verify_on_onnx_test_data(cnn: Path, tmp_path: Path) -> None:
    x, y = expected(2)
    for k in range(2):
        folder = tmp_path / "data" / f"test_data_set_{k}"
        folder.mkdir(parents=True)
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(x[k]).SerializeToString())
        (folder / "output_0.pb").write_bytes(numpy_helper.from_array(y[k]).SerializeToString())
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "data")]) == 0


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
@pytest.mark.parametrize(("command", "word"), [("targets", "cortex-m55"), ("ops", "Conv")])
def test_lists(command: str, word: str, form: list[str], capsys: Captured) -> None:
    assert main([command, *form]) == 0
    text = capsys.readouterr().out
    assert word in text
    if form == ["--json"]:
        assert len(json.loads(text)) > 5


def test_a_reader_that_goes_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m aot_model ops | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


# --- programs around a library ------------------------------------------------------------------------------


def test_programs(cnn: Path, vectors: Path, tmp_path: Path) -> None:
    from aot_model.installation import include_dir

    out = tmp_path / "out"
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    assert (
        main(
            [
                "test-main",
                str(out / "cnn.json"),
                "--vectors",
                str(vectors),
                "-o",
                str(out / "test.c"),
                "--depfile",
                str(out / "test.d"),
            ]
        )
        == 0
    )
    assert main(["benchmark-main", str(out / "cnn.json"), "-o", str(out / "bench.c"), "--runs", "3"]) == 0
    assert str(vectors) in (out / "test.d").read_text()
    for name in ("test", "bench"):
        subprocess.run(
            ["gcc", "-O1", "-march=native", f"-I{include_dir()}", f"{name}.c", "cnn.c", "-lm", "-o", name],
            cwd=out,
            check=True,
        )
        subprocess.run([f"./{name}"], cwd=out, check=True, capture_output=True)
