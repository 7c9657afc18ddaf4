"""External data wherever a model may have it: in functions and bodies of control flow too, from the model's
folder alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.frontends.onnx_file import external_locations
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

node = helper.make_node
RIGHT, WRONG = np.asarray([1.5, 2.5], np.float32), np.asarray([7.5, 8.5], np.float32)


def elsewhere(name: str, location: str = "w.bin") -> onnx.TensorProto:
    """Two floats of which the values are in a file."""
    proto = numpy_helper.from_array(RIGHT, name)
    proto.ClearField("raw_data")
    proto.data_location = TensorProto.EXTERNAL
    entry = proto.external_data.add()
    entry.key, entry.value = "location", location
    return proto


def branch(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [tensor("c", [2])])


def in_a_function(body: list[onnx.NodeProto]) -> onnx.ModelProto:
    """y = x + c, where the body computes c from the formal `flag`."""
    opsets = [helper.make_opsetid("", 18)]
    function = helper.make_function(
        "f", "Biased", ["a", "flag"], ["b"], [*body, node("Add", ["a", "c"], ["b"])], opsets
    )
    inputs = [tensor("x", [2]), tensor("flag", [], TensorProto.BOOL)]
    return model(
        [node("Biased", ["x", "flag"], ["y"], domain="f")],
        inputs,
        [tensor("y", [2])],
        domains={"f": 1},
        functions=[function],
    )


CONSTANT = [node("Constant", [], ["c"], value=elsewhere("w"))]
BRANCHES = [
    node(
        "If",
        ["flag"],
        ["c"],
        then_branch=branch(CONSTANT),
        else_branch=branch([node("Constant", [], ["c"], value=numpy_helper.from_array(WRONG, "n"))]),
    )
]
INNER = helper.make_graph(
    [node("Identity", ["w"], ["c"])], "branch", [], [tensor("c", [2])], [elsewhere("w")]
)
INITIALISER = [node("If", ["flag"], ["c"], then_branch=INNER, else_branch=INNER)]
PLACES = {"constant": CONSTANT, "constant in a branch": BRANCHES, "initialiser of a branch": INITIALISER}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder, with its data; the current directory is another, with other data of the same
    name.
    """
    for name, data in (("model", RIGHT), ("current", WRONG)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w.bin").write_bytes(data.tobytes())
    monkeypatch.chdir(tmp_path / "current")
    return tmp_path / "model"


@pytest.mark.parametrize("place", PLACES)
def test_functions(place: str, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = in_a_function(PLACES[place])
    path = save(proto, folders / "m.onnx")
    assert external_locations(proto) == ["w.bin"]
    assert main(["inputs", str(path)]) == 0
    assert (folders / "w.bin").as_posix() in capsys.readouterr().out
    assert main(["compile", str(path), "-o", "out", "--name", "m", "--target", "c", "--depfile", "d"]) == 0
    text = Path("out/m.c").read_text()
    assert "1.5f" in text and ("7.5f" in text) == (place == "constant in a branch")
    assert str(folders / "w.bin") in Path("d").read_text()


@pytest.mark.parametrize("place", PLACES)
def test_the_cache_sees_them(place: str, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AOT_MODEL_CACHE_DIR", str(folders / "cache"))
    path = save(in_a_function(PLACES[place]), folders / "m.onnx")
    for data, text in ((RIGHT, "1.5f"), (np.asarray([3.25, 1], np.float32), "3.25f"), (RIGHT, "1.5f")):
        (folders / "w.bin").write_bytes(data.tobytes())
        for file in (path, folders / "w.bin"):
            os.utime(file, (1, 1))  # files that change while they are read are not kept
        assert main(["compile", str(path), "-o", "out", "--name", "m", "--target", "c"]) == 0
        assert text in Path("out/m.c").read_text()


def test_without_a_length_a_tensor_takes_what_it_needs(folders: Path) -> None:
    """As ONNX Runtime does: two constants of one file, of which only the places are said."""
    (folders / "w.bin").write_bytes(RIGHT.tobytes() + WRONG.tobytes())
    nodes = [node("Add", ["x", "v"], ["s"]), node("Add", ["s", "w"], ["y"])]
    proto = model(nodes, [tensor("x", [2])], [tensor("y", [2])])
    proto.graph.initializer.extend([elsewhere("v"), elsewhere("w")])
    entry = proto.graph.initializer[1].external_data.add()
    entry.key, entry.value = "offset", "8"
    path = save(proto, folders / "m.onnx")
    x = np.asarray([1, 2], np.float32)
    (want,) = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    compiled = compile_model(Request(path, "m", "c"))
    ((got,),) = sanitized(compiled.view, compiled.texts, folders).run([[x]])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(want, x + RIGHT + WRONG)


def test_data_that_were_not_read_are_never_taken_from_the_current_directory(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(in_a_function(CONSTANT), folders / "m.onnx")
    monkeypatch.setattr("aot_model.frontends.onnx_complete.load_external", lambda proto, where: [])
    with pytest.raises(CompileError, match="was not read"):
        compile_model(Request(path, "m", "c"))


LOCATIONS = {
    "long": b"a" * 300,
    "deep": b"/".join([b"a" * 200] * 30),
    "circle": b"circle",
    "through a circle": b"circle/x",
    "not UTF-8": b"w\xff\xfe.bin",
    "line break": b"w\n.bin",
    "escape": b"\x1b[2J",
}


@pytest.mark.parametrize("case", LOCATIONS)
def test_locations_that_name_no_file(case: str, folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folders / "circle").symlink_to("circle")
    proto = model([node("Add", ["x", "w"], ["y"])], [tensor("x", [2])], [tensor("y", [2])])
    proto.graph.initializer.append(elsewhere("w", "LOCATION"))
    content = proto.SerializeToString()
    length = len(LOCATIONS[case])
    entry = proto.graph.initializer[0].external_data[0]
    entry.value = "x" * length
    content = proto.SerializeToString().replace(b"x" * length, LOCATIONS[case], 1) if length > 1 else content
    (folders / "m.onnx").write_bytes(content)
    assert main(["compile", str(folders / "m.onnx"), "-o", "out", "--name", "m", "--target", "c"]) == 1
    said = capsys.readouterr().err
    assert "[E10" in said and "internal" not in said and len(said) < 1000
    assert all(c.isprintable() or c == "\n" for c in said)
    assert main(["inputs", str(folders / "m.onnx")]) == 0, "the build system asks before anything else"
