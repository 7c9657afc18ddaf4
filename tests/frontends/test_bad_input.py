"""Bad input: one clear message with its code, exit status 1, nothing written, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.installation import include_dir
from onnx_models import model, save, small_cnn, tensor, unary

node = helper.make_node
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]


def compile_(path: Path, out: Path, *more: str) -> int:
    return main(["compile", str(path), "-o", str(out), "--target", "c", "--name", "m", *more])


def rejected(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, *words: str) -> str:
    """The message of a compilation that must fail."""
    out = tmp_path / "out"
    assert compile_(path, out) == 1
    text = capsys.readouterr().err
    assert f"[{code}]" in text and "Traceback" not in text and "internal" not in text
    for word in words:
        assert word in text
    assert len(text) < 20_000
    assert not out.exists() or not list(out.iterdir())
    return text


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "E102"),
        (b"hello world\n" * 50, "E102"),
        (bytes(5000), "E102"),
        (small_cnn().SerializeToString()[:900], "E102"),
        (b"\x08\x08", "E102"),
    ],
)
def test_not_a_model(content: bytes, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    rejected(path, tmp_path, capsys, code, str(path))


def test_missing_file_and_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(tmp_path / "none.onnx", tmp_path, capsys, "E101", "No such file")
    rejected(tmp_path, tmp_path, capsys, "E101", "directory")


def external(location: str, **entries: str) -> onnx.ModelProto:
    """small_cnn with its first weights elsewhere."""
    proto = small_cnn()
    weights = proto.graph.initializer[0]
    weights.data_location = TensorProto.EXTERNAL
    weights.ClearField("raw_data")
    for key, value in {"location": location, **entries}.items():
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    return proto


@pytest.mark.parametrize(
    "location", ["/etc/passwd", "../secret.bin", "link", "", "a\0b", "sub/../../secret.bin"]
)
def test_external_data_leaves_the_folder(
    location: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(1000))
    (folder / "link").symlink_to(tmp_path / "secret.bin")
    rejected(save(external(location), folder / "m.onnx"), tmp_path, capsys, "E103", "'w1'")


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ({}, "E102"),
        ({"offset": "99999999999"}, "E103"),
        ({"length": "-5"}, "E103"),
        ({"offset": "abc"}, "E103"),
    ],
)
def test_external_data_is_damaged(
    entries: dict[str, str], code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.bin").write_bytes(b"12")
    rejected(save(external("short.bin", **entries), tmp_path / "m.onnx"), tmp_path, capsys, code, "'w1'")


def test_external_data_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rejected(save(external("w.bin"), tmp_path / "m.onnx"), tmp_path, capsys, "E103", "w.bin", "missing")


def test_external_data_is_read(tmp_path: Path) -> None:
    weights = small_cnn().graph.initializer[0].raw_data
    (tmp_path / "w.bin").write_bytes(weights)
    assert (
        compile_(
            save(external("w.bin"), tmp_path / "m.onnx"), tmp_path / "a", "--depfile", str(tmp_path / "d")
        )
        == 0
    )
    assert "w.bin" in (tmp_path / "d").read_text()


# --- what a model may not say -------------------------------------------------------------------------------


def _edited(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = small_cnn()
    edit(proto)
    return proto


def _function(name: str, *calls: str, inner: str = "f") -> onnx.FunctionProto:
    steps = [
        node(
            c,
            ["a" if k == 0 else f"t{k}"],
            ["b" if k == len(calls) - 1 else f"t{k + 1}"],
            domain=inner if c[0] == "F" else "",
        )
        for k, c in enumerate(calls)
    ]
    return helper.make_function(
        "f", name, ["a"], ["b"], steps, [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    )


def _called(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    return model(
        [node("F0", ["x"], ["y"], domain="f")],
        [tensor("x", [1])],
        [tensor("y", None)],
        domains={"f": 1},
        functions=functions,
    )


def _two(first: list[onnx.NodeProto], shape: list[int] | None = None) -> onnx.ModelProto:
    return model(
        first,
        [tensor("x", shape or [2])],
        [tensor("y", None)],
        {"w": np.zeros(3, np.float32), "i": np.zeros(2, np.int64)},
    )


WRONG: dict[str, tuple[onnx.ModelProto, str, tuple[str, ...]]] = {
    "unknown operators": (
        _two(
            [
                node("Foo", ["x"], ["a"], name="f1"),
                node("Bar", ["a"], ["b"], domain="com.x", name="b1"),
                node("Foo", ["b"], ["y"], name="f2"),
            ]
        ),
        "E201",
        ("Foo", "com.x.Bar", "'f1', 'f2'", "'b1'"),
    ),
    "dynamic dimensions": (unary("Relu", [1, "width", "height"]), "E203", ("'width'", "--dim width=N")),
    "nameless dynamic dimension": (unary("Relu", [1, None]), "E203", ("--dim x:1=N",)),
    "shapes that do not broadcast": (
        _two([node("Add", ["x", "w"], ["y"], name="add")]),
        "E301",
        ("'add'", "(2,)", "(3,)"),
    ),
    "types that differ": (_two([node("Add", ["x", "i"], ["y"], name="add")]), "E301", ("'add'", "int64")),
    "declared type of an output": (
        model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2], TensorProto.INT8)]),
        "E301",
        ("'y'",),
    ),
    "input twice": (
        model([node("Relu", ["x"], ["y"])], [tensor("x", [2]), tensor("x", [2])], [tensor("y", None)]),
        "E102",
        ("'x'",),
    ),
    "written twice": (_two([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]), "E102", ("'y'",)),
    "too many inputs": (_two([node("Transpose", ["x", "w"], ["y"], name="t")]), "E102", ("'t'", "2 inputs")),
    "too few inputs": (_two([node("Add", ["x"], ["y"], name="add")]), "E102", ("'add'", "1 inputs")),
    "no outputs": (model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], []), "E102", ("no outputs",)),
    "output of nothing": (
        model([node("Relu", ["x"], ["a"])], [tensor("x", [2])], [tensor("y", None)]),
        "E102",
        ("'y'",),
    ),
    "cycle": (
        _two([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
        "E102",
        ("'b'",),
    ),
    "reads itself": (_two([node("Relu", ["y"], ["y"])]), "E102", ("'y'",)),
    "huge input": (unary("Relu", [1, 2**40]), "E202", ("2 GB",)),
    "overflowing input": (unary("Relu", [2**62, 2**62]), "E202", ("2 GB",)),
    "too many dimensions": (unary("Relu", [1] * 3000), "E202", ("3000 dimensions",)),
    "huge Tile": (
        model(
            [node("Tile", ["x", "n"], ["y"])],
            [tensor("x", [1])],
            [tensor("y", None)],
            {"n": np.asarray([2**62])},
        ),
        "E202",
        ("2 GB",),
    ),
    "huge ConstantOfShape": (
        model(
            [node("ConstantOfShape", ["n"], ["y"])],
            [tensor("x", [1])],
            [tensor("y", None)],
            {"n": np.asarray([2**40])},
        ),
        "E202",
        ("2 GB",),
    ),
    "huge constant": (_edited(lambda p: p.graph.initializer[0].dims.append(2**40)), "E102", ("'w1'",)),
    "negative extent": (_edited(lambda p: p.graph.initializer[0].dims.__setitem__(0, -1)), "E102", ("'w1'",)),
    "damaged constant": (
        _edited(lambda p: setattr(p.graph.initializer[0], "raw_data", b"123")),
        "E102",
        ("'w1'",),
    ),
    "no opset": (_edited(lambda p: p.ClearField("opset_import")), "E102", ("opset",)),
    "opset of the future": (_edited(lambda p: setattr(p.opset_import[0], "version", 999)), "E202", ("999",)),
    "opset 0": (_edited(lambda p: setattr(p.opset_import[0], "version", 0)), "E102", ("opset",)),
    "arithmetic on strings": (
        model([node("Neg", ["x"], ["y"])], [tensor("x", [1], TensorProto.STRING)], [tensor("y", None)]),
        "E301",
        ("string",),
    ),
    "complex numbers": (
        model(
            [node("Identity", ["x"], ["y"])], [tensor("x", [1], TensorProto.COMPLEX64)], [tensor("y", None)]
        ),
        "E202",
        ("COMPLEX64",),
    ),
    "sequence": (
        model(
            [node("Relu", ["x"], ["y"])],
            [helper.make_tensor_sequence_value_info("x", 1, [1])],
            [tensor("y", None)],
        ),
        "E202",
        ("sequence",),
    ),
    "input without a type": (_edited(lambda p: p.graph.input[0].ClearField("type")), "E202", ("'x'",)),
    "input without a shape": (
        _edited(lambda p: p.graph.input[0].type.tensor_type.ClearField("shape")),
        "E203",
        ("'x'",),
    ),
    "unknown attribute": (unary("Relu", foo=3), "E202", ("'foo'",)),
    "attribute of a wrong type": (unary("LeakyRelu", alpha="abc"), "E301", ("'alpha'", "'abc'")),
    "unknown element type": (unary("Cast", to=99), "E202", ("99",)),
    "update of another rank": (
        model(
            [node("TensorScatter", ["x", "u"], ["y"])],
            [tensor("x", [1, 4, 3]), tensor("u", [4])],
            [tensor("y", None)],
            opset=24,
        ),
        "E301",
        ("axis 1",),
    ),
    "axis out of range": (unary("Softmax", axis=99), "E301", ("axis 99",)),
    "shape known at run time": (
        model(
            [node("Reshape", ["x", "s"], ["y"])],
            [tensor("x", [1, 4]), tensor("s", [2], TensorProto.INT64)],
            [tensor("y", None)],
        ),
        "E203",
        ("'s'",),
    ),
    "function of itself": (_called(_function("F0", "F0")), "E102", ("functions",)),
    "functions without measure": (
        _called(*(_function(f"F{k}", *([f"F{k + 1}"] * 2 if k < 40 else ["Relu"])) for k in range(41))),
        "E102",
        ("functions",),
    ),
    "functions too deep": (
        _called(*(_function(f"F{k}", f"F{k + 1}" if k < 3000 else "Relu") for k in range(3001))),
        "E102",
        ("functions",),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_model(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto, code, words = WRONG[case]
    rejected(save(proto, tmp_path / "m.onnx"), tmp_path, capsys, code, *words)


def test_all_problems_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model(
        [node("Softmax", ["x"], ["a"], axis=9, name="n1"), node("Relu", ["x"], ["b"], foo=1, name="n2")],
        [tensor("x", [2, 2])],
        [tensor("a", None)],
    )
    text = rejected(save(proto, tmp_path / "m.onnx"), tmp_path, capsys, "E301", "'n1'", "'n2'")
    assert "[E202]" in text


def test_a_dimension_behind_one_that_is_refused_is_not_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(unary("Relu", [1, None, "width"]), tmp_path / "m.onnx")
    assert compile_(path, tmp_path / "out", "--dim", "width=4") == 1
    said = capsys.readouterr().err
    assert "--dim x:1=N" in said and "unknown" not in said


# --- names --------------------------------------------------------------------------------------------------

NAMES = [
    "a/b:0",
    "int",
    '"; system("x")',
    " ",
    "n" * 4096,
    "*/ int x; /*",
    "abc\\\nint y;\\",
    "what??/\nfoo???/",
    "*\\",
    "/\\*",
    "a\nb",
    "é中\u202e",
    "a\0b",
    "linux",
    "workspace",
    "none",
    "NAN",
    "INT8_MAX",
    "0",
    "_",
    "%s%n",
    "{{ m }}",
    "main",
    "errno",
    "AOT_MODEL_OK",
]


def _named(name: str) -> onnx.ModelProto:
    nodes = [
        node("Relu", [name], [f"{name}_out"], name=name),
        node("Softmax", [name], [f"{name}2"], name=name),
        node("Add", [f"{name}2", f"{name}w"], [f"{name}3"]),
    ]
    constants = {f"{name}w": np.asarray([1, 2, 3, 4], np.float32)}
    proto = model(
        nodes, [tensor(name, [1, 4])], [tensor(f"{name}_out", None), tensor(f"{name}3", None)], constants
    )
    proto.graph.name = name
    return proto


def builds(folder: Path, name: str = "m") -> None:
    """The C is clean under strict flags, in GNU mode too, and C++ takes the header."""
    for command in (
        ["gcc", *STRICT, "-O1", "-c", f"{name}.c", "-o", "strict.o"],
        ["gcc", "-std=gnu11", "-Wall", "-Werror", "-O0", "-c", f"{name}.c", "-o", "gnu.o"],
        ["g++", "-std=gnu++11", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-fsyntax-only", f"{name}.h"],
    ):
        done = subprocess.run(
            [*command, f"-I{include_dir()}"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES, ids=[repr(n[:16]) for n in NAMES])
def test_names_of_a_model(name: str, tmp_path: Path) -> None:
    assert compile_(save(_named(name), tmp_path / "m.onnx"), tmp_path / "out", "--metadata", "full") == 0
    builds(tmp_path / "out")


def test_names_that_collide(tmp_path: Path) -> None:
    nodes = [node("Relu", ["a.b"], ["a/b"]), node("Relu", ["a:b"], ["a_b"])]
    proto = model(
        nodes,
        [tensor("a.b", [2]), tensor("a:b", [2]), tensor("A_b", [2]), tensor("a_b_output", [2])],
        [tensor("a/b", None), tensor("a_b", None)],
    )
    assert compile_(save(proto, tmp_path / "m.onnx"), tmp_path / "out") == 0
    builds(tmp_path / "out")


@pytest.mark.parametrize("stem", ["int", "7", "math", "a b", "ü", "String", ".hidden", "x" * 200])
def test_name_from_the_file(stem: str, tmp_path: Path) -> None:
    path = save(small_cnn(), tmp_path / f"{stem}.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--target", "c"]) == 0
    (header,) = (tmp_path / "out").glob("*.h")
    assert header.stem.isidentifier() and header.stem.isascii()
    builds(tmp_path / "out", header.stem)


@pytest.mark.parametrize(
    "name", ["", "a b", "1x", "ü", "../x", "a/b", "x" * 201, "aot_model", "math", "stdio", 'a"', "-x"]
)
def test_name_that_cannot_be(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(small_cnn(), tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), f"--name={name}"]) == 1
    assert "[E501]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- places that cannot be written --------------------------------------------------------------------------


def test_output_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("mine")
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), tmp_path / "out") == 1
    assert "[E105]" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_is_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    (out / "m.h").mkdir(parents=True)
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), out) == 1
    assert "[E105]" in capsys.readouterr().err
    assert [p.name for p in out.iterdir()] == ["m.h"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_write_permission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    assert compile_(save(small_cnn(), tmp_path / "m.onnx"), out) == 1
    assert "[E105]" in capsys.readouterr().err


def test_disk_full(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk; what was there before stays."""
    path, out = save(small_cnn(), tmp_path / "m.onnx"), tmp_path / "out"
    out.mkdir()
    (out / "m.c").write_text("old")
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000));"
        "from aot_model.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "compile", str(path), "-o", str(out), "--name", "m"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "[E105]" in done.stderr and "Traceback" not in done.stderr
    assert [(p.name, p.read_text()) for p in out.iterdir()] == [("m.c", "old")]


# --- models that grow ---------------------------------------------------------------------------------------


def _chain(
    count: int,
    step: Callable[[int, str, str], list[onnx.NodeProto]],
    shape: list[int],
    **constants: np.ndarray,
) -> onnx.ModelProto:
    nodes = [n for k in range(count) for n in step(k, f"v{k}", f"v{k + 1}")]
    return model(nodes, [tensor("v0", shape)], [tensor(f"v{count}", None)], constants)


CHAINS: dict[str, onnx.ModelProto] = {
    "10 000 element-wise": _chain(10_000, lambda k, x, y: [node(("Relu", "Neg")[k % 2], [x], [y])], [4]),
    "x + x, 60 times": _chain(60, lambda k, x, y: [node("Add", [x, x], [y])], [4]),
    "3000 transposes": _chain(3000, lambda k, x, y: [node("Transpose", [x], [y], perm=[1, 2, 0])], [2, 3, 4]),
    "1000 reshapes": _chain(
        1000,
        lambda k, x, y: [node("Reshape", [x, f"s{k % 2}"], [y])],
        [2, 3, 4],
        s0=np.asarray([6, 4]),
        s1=np.asarray([4, 6]),
    ),
    "300 gathers": _chain(
        300, lambda k, x, y: [node("Gather", [x, "i"], [y])], [4], i=np.asarray([3, 1, 0, 2])
    ),
    "concatenated with itself": _chain(16, lambda k, x, y: [node("Concat", [x, x], [y], axis=0)], [4]),
    "halves swapped": _chain(
        40,
        lambda k, x, y: [
            node("Slice", [x, "a", "b"], [f"{y}s"]),
            node("Slice", [x, "b", "c"], [f"{y}t"]),
            node("Concat", [f"{y}t", f"{y}s"], [y], axis=0),
        ],
        [8],
        a=np.asarray([0]),
        b=np.asarray([4]),
        c=np.asarray([8]),
    ),
    "plus its transpose": _chain(
        30, lambda k, x, y: [node("Transpose", [x], [f"{y}t"]), node("Add", [x, f"{y}t"], [y])], [4, 4]
    ),
    "200 convolutions": _chain(
        200, lambda k, x, y: [node("Conv", [x, "w"], [y])], [1, 2, 3, 3], w=np.ones((2, 2, 1, 1), np.float32)
    ),
}


@pytest.mark.parametrize("case", CHAINS)
def test_long_chains(case: str, tmp_path: Path) -> None:
    """No recursion, no growth out of hand: within a minute on a slow machine, and C of a sane size."""
    path = save(CHAINS[case], tmp_path / "m.onnx")
    subprocess.run(
        [sys.executable, "-m", "aot_model", "compile", str(path), "-o", str(tmp_path / "out"), "--name", "m"],
        check=True,
        timeout=60,
    )
    assert (tmp_path / "out" / "m.c").stat().st_size < 4_000_000
