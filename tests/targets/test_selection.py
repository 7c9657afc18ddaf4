"""Choosing targets: several on the command line, plug-in files and packages, what `check` tells, what is
recognisable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from vector_unit import UNIT, compiled, elementwise, install, unit

from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.kernels.target import Attribute
from aot_model.pipeline import Request, compile_model
from aot_model.targets import registry
from aot_model.targets.registry import parse_target, targets
from corpus import MODELS, REASON
from onnx_models import model, save, tensor

ROOT = Path(__file__).resolve().parents[2]
node = helper.make_node

PLUGIN = '''"""A target in one file: it adds."""

from aot_model.kernels.arguments import Argument, written
from aot_model.ir.pattern import op, value
from aot_model.partition.offload import Claim, Offload
from aot_model.kernels.target import Attribute, Target


def lower(region, build):
    for match in region.matches:
        n = match.result.outputs[0].type.elements
        body = f"    for (int32_t i = 0; i < {n}; ++i) {{\\n        y[i] = a[i] + b[i];\\n    }}"
        build.call("add", body, [Argument("a", match.value("a")), Argument("b", match.value("b")), written("y", match.value("y"))], match=match)


def check(match, target):
    return None if match.value("a").shape == match.value("b").shape else "operands differ in shape"


ADD = Claim("add", op("Add", value("a"), value("b"), name="y"), check)
TARGETS = [Target("adder", "adds", attributes={"lanes": Attribute(4, "at a time")}, offload=Offload((ADD,), lower))]
'''  # noqa: E501


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "adder.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    nodes = [
        node("Add", ["x", "y"], ["s"], name="sum"),
        node("Relu", ["s"], ["r"], name="relu"),
        node("Add", ["r", "one"], ["z"], name="more"),
    ]
    return save(
        model(
            nodes,
            [tensor("x", [2, 2]), tensor("y", [2, 2])],
            [tensor("z", [2, 2])],
            {"one": np.ones(1, np.float32)},
        ),
        tmp_path / "sums.onnx",
    )


# --- names --------------------------------------------------------------------------------------------------


def test_settings_belong_to_the_name_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT, unit("second"))
    target = parse_target("unit,elements=5,second,cortex-m4,optimize=size")
    assert (
        target.label == "unit,second,cortex-m4" and target.specification == "unit,elements=5,second,cortex-m4"
    )
    assert [t.option("elements") for t in target.before] == [5, 1 << 20] and target.option(
        "optimize"
    ) == "size"
    assert [t.name for t in target.asked()] == ["unit", "second"]


def test_options_go_to_whoever_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT)
    target = parse_target("unit,c", {"elements": "7", "optimize": "speed"})
    assert target.before[0].option("elements") == 7 and target.option("optimize") == "speed"
    assert parse_target("unit,elements=3,c", {"elements": "7"}).before[0].option("elements") == 7
    with pytest.raises(CompileError, match="has no option 'nope'"):
        parse_target("unit,c", {"nope": "1"})


@pytest.mark.parametrize("text", ["1 true on yes TRUE", "0 false off no Off"])
def test_spellings_of_switches(text: str) -> None:
    switch = Attribute(False, "")
    assert {switch.parse("x", word) for word in text.split()} == {text.startswith("1")}
    with pytest.raises(CompileError, match="option 'x' takes true or false, not 'maybe'"):
        switch.parse("x", "maybe")


@pytest.mark.parametrize(("text", "said"), [("unit", "name what computes the rest: 'unit,cortex-m4'"),
                                            ("cortex-m4,unit", "it can only be the last one"),
                                            ("unit,unit,c", "named twice"), ("uni,c", "did you mean 'unit'"),
                                            ("unit,elements,c", "options are of the form key=value"),
                                            ("c,cortex-m4", "takes over no parts of a model"),
                                            ("lanes=4,c", "unknown target 'lanes=4'"),
                                            ("", "unknown target ''"),
                                            ("unit,,c", "unknown target ''")])  # fmt: skip
def test_wrong_combinations(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT)
    with pytest.raises(CompileError, match=said) as error:
        parse_target(text)
    assert error.value.problems[0].code == "E501"


def test_parameters_of_a_retrained_model_need_the_same_targets(
    plugin: Path, sums: Path, tmp_path: Path
) -> None:
    """The .json says which, with the options given to them."""
    out = str(tmp_path / "out")
    chosen = ["--target-plugin", str(plugin)]
    assert (
        main(["compile", str(sums), "-o", out, "--target=adder,lanes=8,c", "--params=external", *chosen]) == 0
    )
    assert json.loads((tmp_path / "out" / "sums.json").read_text())["target"] == "adder,lanes=8,c"
    assert main(["params", str(sums), "--for", f"{out}/sums.json", "-o", f"{out}/again.params", *chosen]) == 0
    assert (tmp_path / "out/again.params").read_bytes() == (tmp_path / "out/sums.params").read_bytes()
    assert main(["params", str(sums), "--for", f"{out}/sums.json", "-o", f"{out}/again.params"]) == 1


# --- plug-ins -----------------------------------------------------------------------------------------------


def test_a_plug_in_file(plugin: Path, sums: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "compile",
        str(sums),
        "-o",
        str(tmp_path / "out"),
        "--target=adder,c",
        "--target-plugin",
        str(plugin),
        "--depfile",
        str(tmp_path / "d"),
        "-q",
    ]
    assert main(arguments) == 0
    assert "(adder:add)" in (tmp_path / "out" / "sums.c").read_text()
    assert str(plugin) in (tmp_path / "d").read_text(), "a change of the plug-in is a reason to compile again"
    assert main(["targets", "--target-plugin", str(plugin), "--json"]) == 0
    found = next(t for t in json.loads(capsys.readouterr().out) if t["target"] == "adder")
    assert found["takes over"] == ["add"] and found["options"] == ["lanes=4"]
    assert main(["compile", str(sums), "-o", str(tmp_path / "out"), "--target=adder,c"]) == 1, (
        "known to whom it was given to only"
    )


@pytest.mark.parametrize(("text", "said"),
                         [("TARGETS = 5", "TypeError"), ("x = 1", "AttributeError"),
                          ("TARGETS = [5]", "has a int, not a Target"), ("def", "SyntaxError"),
                          ("1 / 0", "ZeroDivisionError"),
                          ("from aot_model.kernels.target import Target\nTARGETS = [Target('c', '')]",
                           "there is a target 'c' already"),
                          ("from aot_model.kernels.target import Target\nTARGETS = [Target('a b', '')]",
                           "'a b' cannot be the name of a target")])  # fmt: skip
def test_wrong_plug_ins(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(CompileError, match=said) as error:
        targets((file,))
    assert error.value.problems[0].code == "E502" and "bad.py" in str(error.value)


def test_names_that_a_plug_in_spells_wrongly(tmp_path: Path) -> None:
    """All at once: a pass of a phase, or a kernel of an operator, that does not exist would never run."""
    file = tmp_path / "bad.py"
    file.write_text("""\
from aot_model.ir.pattern import op
from aot_model.kernels.target import Kernel, Target
from aot_model.partition.offload import Claim, Offload

own = Offload((Claim("sum", op("Relu", op("Addd"))),), keep=frozenset({"SoftMax"}), emit=lambda functions: "")
TARGETS = [Target("a", "", graph_passes={"before-partitoin": (list.sort,)}, program_passes={"late": (print,)},
                  kernels=(Kernel("product", "Matmul", print), Kernel("sum", "Add", print)), offload=own)]
""")
    with pytest.raises(CompileError) as error:
        targets((file,))
    said = [(p.code, p.message.split("names the ")[1], p.hint) for p in error.value.problems]
    assert said == [
        (
            "E502",
            "phase of graph passes 'before-partitoin', which does not exist",
            "did you mean 'before-partition'?",
        ),
        (
            "E502",
            "phase of program passes 'late', which does not exist",
            "there are: after-lowering, after-planning",
        ),
        ("E502", "operator 'Matmul', which does not exist", "did you mean 'MatMul'?"),
        ("E502", "operator 'Addd', which does not exist", "did you mean 'Add'?"),
        ("E502", "operator 'SoftMax', which does not exist", "did you mean 'Softmax'?"),
    ]


def test_a_plug_in_that_is_not_there(tmp_path: Path, sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sums), "--target-plugin", str(tmp_path / "none.py")]) == 1
    assert "none.py" in capsys.readouterr().err


def test_targets_of_packages(tmp_path: Path, plugin: Path, sums: Path) -> None:
    """An installed package registers its targets; its files are in the depfile; an entry that fails is
    named.
    """
    package = tmp_path / "site"
    info = package / "adder-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "adderpkg.py").write_text(PLUGIN + "ADDER = TARGETS[0]\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\nadder = adderpkg:ADDER\n")
    run = [
        sys.executable,
        "-m",
        "aot_model",
        "compile",
        str(sums),
        "-o",
        str(tmp_path / "out"),
        "--target=adder,c",
        "--depfile",
        str(tmp_path / "d"),
    ]
    environment = {
        "PYTHONPATH": f"{ROOT / 'compiler'}:{package}",
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "adderpkg.py" in (tmp_path / "d").read_text()
    for target, said in (
        ("adderpkg:NONE", "cannot be loaded"),
        ("adderpkg:ADD", "has a Claim, not a Target"),
    ):
        (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\nadder = {target}\n")
        done = subprocess.run(run, env=environment, capture_output=True, text=True)
        assert (
            done.returncode == 1
            and f"target plug-in 'adder' ({target})" in done.stderr
            and said in done.stderr
            and "E502" in done.stderr
        )


# --- check --------------------------------------------------------------------------------------------------


def test_check_tells_who_takes_what_and_why_not(
    plugin: Path, sums: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(sums), "--target=adder,c", "--target-plugin", str(plugin)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[2:6] == [
        "sum Add adder:add",
        "relu Relu - adder: it has no pattern for Relu",
        "more Add - adder:add: operands differ in shape",
        "1 of 3 nodes are taken over",
    ]
    assert main(["check", str(sums), "--target=adder,c", "--target-plugin", str(plugin), "--json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [n["target"] for n in nodes] == ["adder", "", ""] and nodes[2]["refused"] == [
        ["adder", "add", "operands differ in shape"]
    ]


def test_the_partition_is_dumped_and_explained_like_a_pass(
    plugin: Path, sums: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [
        "--target=adder,c",
        "--target-plugin",
        str(plugin),
        "--dump-after=partition",
        "--explain=partition",
    ]
    assert main(["compile", str(sums), "-o", str(tmp_path / "out"), *more]) == 0
    said = capsys.readouterr().out
    assert "; partition: 1 regions" in said and "Add 'more': adder:add: operands differ in shape" in said
    assert "graph adder_0(" in said and "Region(%x, %y)" in said


def test_two_targets_that_claim_one_node(tmp_path: Path, sums: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order on the command line decides, and check tells."""
    install(
        monkeypatch,
        unit("one", patterns=(elementwise("Add"),)),
        unit("two", patterns=(elementwise("Add"), elementwise("Relu"))),
    )
    for order, expected in (("one,two", ["one", "two", ""]), ("two,one", ["two", "two", ""])):
        found = compile_model(Request(sums, "m", f"{order},c"))
        assert [a.target for a in found.assignments] == expected


# --- what patterns see --------------------------------------------------------------------------------------


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("name", ["kws_int8.tflite", "kws_qdq.onnx", "kws_tfqdq.onnx"])
def test_integer_layers_are_one_shape_whatever_the_format(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TFLite and QDQ networks: every convolution is a Convolution, its bias and a Requantise with constant
    parameters.
    """
    from aot_model.ir.pattern import constant, op, value
    from aot_model.partition.offload import Claim

    assert MODELS is not None
    biased = op("Add", op("Convolution", value("x"), constant("weights"), name="conv"), constant("bias"))
    layer = op("Requantise", biased, constant("multiplier"), constant("shift"), name="out")
    install(monkeypatch, unit(patterns=(Claim("conv", layer, lambda match, target: "only looking"),)))
    found = compile_model(Request(MODELS / name, "m", "unit,c")).assignments
    convolutions = [a for a in found if a.operator == "Convolution"]
    layers = [a for a in convolutions if a.refused == (("unit", "conv", "only looking"),)]
    assert len(layers) == 9  # what else is one is an average pool, which has no bias


def test_float_convolutions_of_onnx_are_channels_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aot_model.ir.pattern import constant, op, value
    from aot_model.partition.offload import Claim
    from onnx_models import small_cnn

    shapes = []

    def look(match, target):  # type: ignore[no-untyped-def]
        shapes.append((match.value("x").shape, match.value("weights").shape))
        return "only looking"

    install(
        monkeypatch, unit(patterns=(Claim("conv", op("Convolution", value("x"), constant("weights")), look),))
    )
    compiled(small_cnn(), tmp_path, "unit,c")
    assert shapes and all(x[-1] == w[-1] for x, w in shapes)
