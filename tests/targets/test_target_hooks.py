"""The hooks of a target, one by one: what they may do, and what is said when they fail or return nonsense."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import UNIT, compiled, elementwise, install, lower, outputs, unit

from aot_model.c.function import CFunction
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.ir.graph import Graph
from aot_model.ir.pattern import constant as any_constant
from aot_model.ir.pattern import op, value
from aot_model.ir.program import Buffer, Overlap, Program, Role
from aot_model.ir.values import Value, constant
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Blob, Claim, Source
from aot_model.partition.region import Region
from aot_model.pipeline import write
from graphs import weights
from onnx_models import model, tensor

node = helper.make_node
W = np.zeros(4, np.float32)
X = np.asarray([[1, 2, 3, 4], [0, -1, 2, -3]], np.float32)
Y = np.asarray([[2, 2, 2, 2], [3, 3, 3, 3]], np.float32)


def pair(*kinds: str) -> onnx.ModelProto:
    """x, y -> operators one after the other, each with y as its second operand."""
    nodes, last = [], "x"
    for k, kind in enumerate(kinds):
        out = "z" if k == len(kinds) - 1 else f"t{k}"
        nodes.append(
            node(kind, [last, "y"] if kind in ("Add", "Sub", "Mul") else [last], [out],
                 name=f"{kind.lower()}{k}"))
        last = out
    return model(nodes, [tensor("x", [2, 4]), tensor("y", [2, 4])], [tensor("z", [2, 4])])


def refused(proto: onnx.ModelProto, folder: Path, target: str = "unit,c") -> str:
    """What is said, which is E502 and names the target."""
    with pytest.raises(CompileError) as error:
        compiled(proto, folder, target)
    (problem,) = error.value.problems
    assert problem.code == "E502" and "target 'unit'" in problem.message
    return str(problem)


# --- lower --------------------------------------------------------------------------------------------------


DRIVER = """#include "driver.h"

int calls = 0;

int32_t driver_scale(const float *x, float *y)
{
    ++calls;
    for (int k = 0; k < 8; ++k) {
        y[k] = 2.0f * x[k];
    }
    return calls >= 100 ? 77 : 0;
}
"""
HEADER = "#include <stdint.h>\nextern int calls;\nint32_t driver_scale(const float *x, float *y);\n"


def calls_driver(region: Region, build: RegionSite) -> None:
    for match in region.matches:
        build.external("driver_scale",
                       [Argument("x", match.nodes[0].inputs[0]),
                        written("y", match.nodes[0].outputs[0])],
                       header="driver.h",
                       match=match,
                       fails=True)  # type: ignore[arg-type]


def test_functions_of_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    result = compiled(pair("Relu", "Tanh", "Relu"), tmp_path, "unit,c")
    assert '#include "driver.h"' in result.texts["m.c"] and "static int32_t driver_scale" not in result.texts[
        "m.c"]
    (got,) = outputs(result,
                      tmp_path,
                      X,
                      Y,
                      extra=["driver.c"],
                      texts={"driver.c": DRIVER, "driver.h": HEADER})
    np.testing.assert_allclose(got, 2 * np.tanh(2 * X), rtol=1e-5)


MAIN = """#include "m.h"
#include "driver.h"
int main(void)
{
    static const float x[8], y[8];
    static float z[8];
    const m_inputs in = { x, y };
    const m_outputs out = { z };
    calls = %d;
    if (m_run(&in, &out) != %d) { return 1; }
    return calls == %d ? 0 : 2;
}
"""


@pytest.mark.parametrize(("before", "status", "after"), [(0, 0, 2), (98, 77, 100), (99, 77, 100)])
@pytest.mark.parametrize("profile", [False, True])
def test_the_run_stops_with_the_first_error(profile: bool, before: int, status: int, after: int,
                                            tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    write(compiled(pair("Relu", "Tanh", "Relu"), tmp_path, "unit,c", library=Options(profile=profile)),
          tmp_path)
    for name, text in {"driver.c": DRIVER, "driver.h": HEADER, "main.c": MAIN %
                       (before, status, after)}.items():
        (tmp_path / name).write_text(text)
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "driver.c", "m.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


def test_a_header_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    with pytest.raises(CompileError, match=r"driver\.h") as error:
        outputs(compiled(pair("Relu"), tmp_path, "unit,c"), tmp_path, X, Y)
    assert error.value.problems[0].code == "E601"


def test_a_region_in_a_branch_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The body of an If and its error."""
    branch = [
        helper.make_graph([node(k, ["x"], [f"{k}_out"])], k, [], [tensor(f"{k}_out", [2, 4])])
        for k in ("Relu", "Tanh")
    ]
    proto = model([
        node("ReduceSum", ["y"], ["s"], keepdims=0),
        node("Cast", ["s"], ["c"], to=onnx.TensorProto.BOOL),
        node("If", ["c"], ["z"], then_branch=branch[0], else_branch=branch[1])
    ], [tensor("x", [2, 4]), tensor("y", [2, 4])], [tensor("z", [2, 4])])
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    result = compiled(proto, tmp_path, "unit,c")
    texts = {"driver.c": DRIVER.replace("calls = 0", "calls = 98"), "driver.h": HEADER}
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y, extra=["driver.c"], texts=texts)[0], 2 * X)
    np.testing.assert_allclose(outputs(result, tmp_path, X, 0 * Y, extra=["driver.c"], texts=texts)[0],
                               np.tanh(X),
                               rtol=1e-5)
    texts["driver.c"] = DRIVER.replace("calls = 0", "calls = 99")
    with pytest.raises(CompileError, match="returned 77"):
        outputs(result, tmp_path, X, Y, extra=["driver.c"], texts=texts)


def test_regions_with_every_placement_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs and outputs in the workspace of the caller: the code compiles, and the region's buffers are
    among the rest.
    """
    install(monkeypatch, unit(merge=False))
    for io in ("caller", "workspace"):
        for workspace in ("static", "caller"):
            write(
                compiled(pair("Add", "Tanh", "Mul"),
                         tmp_path,
                         "unit,c",
                         library=Options(workspace, io, params="external")), tmp_path)
            subprocess.run(["cc", *STRICT, "-c", f"-I{include_dir()}", "m.c"], cwd=tmp_path, check=True)


WRONG_CALLS: dict[str, tuple[Any, str]] = {
    "nothing is written": (lambda region, build: None, "no call writes the output 'z'"),
    "no output": (lambda region, build: build.call("f", "", [Argument("x", region.graph.inputs[0])]),
                  "'f' writes nothing"),
    "function": (lambda region, build: build.call("a-b", "", [written("y", region.graph.outputs[0])]),
                 "'a-b' is not a C identifier"),
    "parameter": (lambda region, build: build.call("f", "", [written("2", region.graph.outputs[0])]),
                  "a parameter of 'f', '2' is not a C identifier"),
    "same name": (lambda region, build: build.call(
        "f", "", [Argument("y", region.graph.inputs[0]),
                  written("y", region.graph.outputs[0])]), "one name"),
    "input written": (lambda region, build: build.call("f", "", [written("x", region.graph.inputs[0])]),
                      "writes 'x', which is an input or a constant"),
    "not of the region": (lambda region, build: build.call(
        "f", "", [Argument("x",
                           weights("w", 2).__class__("v", region.graph.inputs[0].type))]),
                          "value 'v' is not one of the region"),
    "not an argument": (lambda region, build: build.call("f", "", [Argument("x", 5)]),
                        "an argument is a int"),  # type: ignore[arg-type]
    "header": (lambda region, build: build.external("f", [written("y", region.graph.outputs[0])],
                                                    header='x.h"\n#error'), "not the name of a header"),
    "size": (lambda region, build: build.call("f", "", [Argument("s", Scratch("s", -4))]),
             "-4 is not a number of bytes"),
    "alignment": (lambda region, build: build.call("f", "", [Argument("p", Packed("p", W, 24))]),
                  "24 is not an alignment"),
    "overlap": (lambda region, build: build.call(
        "f", "", [written("y", region.graph.outputs[0])], overlaps=(Overlap(0, 5, 0),)),
                "parameters that it does not have",
                ),
    "raises": (lambda region, build: region.matches[7], "failed: IndexError: tuple index out of range"),
    "read before written": (lambda region, build: build.call(
        "f", "", [Argument("x", region.nodes[0].outputs[0]),
                  written("y", region.graph.outputs[0])]), "before anything writes it",
                            ),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook, said = WRONG_CALLS[case]
    install(monkeypatch, unit(patterns=(elementwise("Add"), elementwise("Relu")), lower=hook))
    message = refused(pair("Add", "Relu"), tmp_path)
    assert said in message and "region unit_0" in message


def test_a_target_without_a_way_to_lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(lower=None))
    assert "neither lower nor compile_region" in refused(pair("Add"), tmp_path)


# --- patterns -----------------------------------------------------------------------------------------------


def raising(*arguments: object) -> Any:
    raise ValueError("out of order")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (Claim("add", op("Add", where=raising)), "pattern 'add' failed: ValueError: out of order"),
        (Claim("add", op("Add"), raising), "check of pattern 'add' failed: ValueError: out of order"),
        (Claim("add", op("Add"), lambda match, target: 7),
         "check of pattern 'add': returned a int, not a str"),  # type: ignore[arg-type, return-value]
        (Claim("add", op("Add"), lambda match, target: match.value("nowhere")),
         "check of pattern 'add' failed: KeyError: 'nowhere'"),  # type: ignore[arg-type, return-value]
    ])  # fmt: skip
def test_wrong_patterns(claim: Claim, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(claim,)))
    assert said in refused(pair("Add"), tmp_path)


def softmax(region: Region, build: RegionSite) -> None:
    x, y = region.graph.inputs[0], region.graph.outputs[0]
    build.call("softmax", "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + 100.0f;\n    }",
               [Argument("x", x), written("y", y)])


@pytest.mark.parametrize("accept", [True, False])
def test_operators_are_kept_whole_for_a_target(accept: bool, tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """A softmax is one node for the target that asks for it, and what it always was when the target does not
    take it.
    """
    claim = Claim("softmax", op("Softmax"), lambda match, target: None if accept else "not today")
    install(monkeypatch, unit(patterns=(claim,), keep=frozenset({"Softmax"}), lower=softmax))
    result = compiled(pair("Softmax"), tmp_path, "unit,c")
    assert [(a.operator, a.pattern) for a in result.assignments] == [("Softmax", "softmax" if accept else "")]
    e = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(outputs(result, tmp_path, X, Y)[0],
                               X + 100 if accept else e / e.sum(1, keepdims=True),
                               rtol=1e-5)


# --- passes -------------------------------------------------------------------------------------------------


def test_passes_see_what_their_target_lowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(phase: str) -> Any:
        def see(graph: Graph) -> bool:
            seen.append(f"{phase} {graph.name} {[n.kind for n in graph.nodes]}")
            return False

        return see

    def program_pass(program: Program) -> None:
        seen.append(f"program {[c.op for c in program.calls()]}")

    hooks = {p: (note(p),) for p in ("before-partition", "after-partition")}
    install(
        monkeypatch,
        replace(UNIT,
                graph_passes=hooks,
                program_passes={"after-lowering": (program_pass,), "after-planning": (program_pass,)}))
    compiled(pair("Add", "Tanh", "Mul"), tmp_path, "unit,c")
    assert seen == [
        "before-partition test ['Add', 'Tanh', 'Mul']", "after-partition unit_0 ['Add']",
        "after-partition unit_1 ['Mul']", *["program ['unit:add', 'Tanh', 'unit:mul']"] * 2
    ]


def test_a_pass_before_the_partition_makes_what_patterns_take(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtraction becomes addition of the negative, which the unit has."""
    from aot_model.ir.graph import Node
    from aot_model.ops.elementwise import op as operator_named

    def negate(graph: Graph) -> bool:
        nodes = []
        for n in graph.nodes:
            if n.kind == "Sub" and n.inputs[1] is not None:
                negative = Value(f"{n.name}.negative", n.inputs[1].type)
                nodes.append(Node(operator_named("Neg"), [n.inputs[1]], [negative], n.name))
                n = Node(operator_named("Add"), [n.inputs[0], negative], n.outputs, n.name)
            nodes.append(n)
        graph.nodes = nodes
        return True

    install(monkeypatch,
            replace(unit(patterns=(elementwise("Add"),)), graph_passes={"before-partition": (negate,)}))
    result = compiled(pair("Sub"), tmp_path, "unit,c")
    assert [a.pattern for a in result.assignments] == ["", "add"]
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y)[0], X - Y)


def test_a_pass_that_breaks_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> bool:
        graph.nodes.reverse()
        return True

    for phase in ("before-partition", "after-partition"):
        install(monkeypatch, replace(UNIT, graph_passes={phase: (broken,)}))
        said = refused(pair("Add", "Relu"), tmp_path)
        assert f"pass 'broken' ({phase})" in said and "read before it is written" in said


def test_a_pass_that_changes_the_border_of_a_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(graph: Graph) -> bool:
        graph.outputs.pop()
        return True

    install(monkeypatch, replace(UNIT, graph_passes={"after-partition": (drop,)}))
    assert "changes the inputs or outputs of region unit_0" in refused(pair("Add", "Relu"), tmp_path)


def no_arguments(program: Program) -> None:
    for call in program.calls():
        call.arguments = ()


def no_calls(program: Program) -> None:
    program.body.clear()


def another_buffer(program: Program) -> None:
    call = next(program.calls())
    call.arguments = (Buffer("new", call.arguments[0].type, Role.WORKSPACE), *call.arguments[1:])


@pytest.mark.parametrize(("hook", "phase", "said"),
                         [(no_arguments, "after-lowering", "'add' takes 3 arguments, not 0"),
                          (no_calls, "after-lowering", "output 'z' is never written"),
                          (another_buffer, "after-planning", "'add' has 'new', which the plan does not know"),
                          (raising, "after-planning", "out of order")])  # fmt: skip
def test_wrong_program_passes(hook: Any, phase: str, said: str, tmp_path: Path,
                              monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, replace(UNIT, program_passes={phase: (hook,)}))
    message = refused(pair("Add"), tmp_path)
    assert said in message and f"pass '{hook.__name__}' ({phase})" in message


# --- emit ---------------------------------------------------------------------------------------------------


def test_a_target_writes_its_functions_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text shows that it ran: subtractions are multiplications."""

    def emit(functions: Sequence[CFunction]) -> str:
        return "\n\n".join(
            f"{f.signature()}\n{{\n{f.function.body.replace(' - ', ' * ')}\n}}" for f in functions)

    install(monkeypatch, unit(emit=emit))
    result = compiled(pair("Sub", "Tanh", "Sub"), tmp_path, "unit,c")
    assert result.texts["m.c"].count("/* ---- written by target unit ---- */") == 1
    np.testing.assert_allclose(outputs(result, tmp_path, X, Y)[0], np.tanh(X * Y) * Y, rtol=1e-5)


@pytest.mark.parametrize(("hook", "said"), [
    (lambda functions: "", "emit: gives no text of m_00_add"),
    (lambda functions: None, "emit: gives no text of m_00_add"),
    (lambda functions: 5, "emit: returned a int, not a str"),
    (raising, "emit failed: ValueError: out of order"),
])  # fmt: skip
def test_wrong_texts(hook: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(emit=hook))
    assert said in refused(pair("Add"), tmp_path)


# --- compile_region -----------------------------------------------------------------------------------------


def as_source(region: Region) -> Source:
    text = f"""static void {region.name}_all(const float *x, const float *y, float *z, uint8_t *scratch)
{{
    memcpy(scratch, x, 32);
    for (int k = 0; k < 8; ++k) {{
        z[k] = x[k] + y[k];
    }}
}}"""
    return Source(text, f"{region.name}_all", includes=("string.h",), scratch=32, align=8)


def test_a_region_as_c_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(lower=None, compile_region=as_source, patterns=(elementwise("Add"),)))
    result = compiled(pair("Add", "Tanh", "Add"), tmp_path, "unit,c")
    np.testing.assert_allclose(outputs(result, tmp_path, X, Y)[0], np.tanh(X + Y) + Y, rtol=1e-5)
    assert result.view.workspace_size == 64, "the scratch is planned beside the value between the regions"


INTERPRETER = """#include <stddef.h>
#include <stdint.h>
#include <string.h>
static inline int32_t interpret(const uint8_t *blob, uint32_t size, const void *const *inputs, void *const *outputs, uint8_t *scratch)
{
    const float *const x = (const float *)inputs[0], *const y = (const float *)inputs[1];
    float *const z = (float *)outputs[0];
    float factor;
    if (size != 4u || scratch == NULL || ((uintptr_t)blob & 15u) != 0u) { return 9; }
    memcpy(&factor, blob, 4);
    for (int k = 0; k < 8; ++k) { z[k] = x[k] + factor * y[k]; }
    return 0;
}
"""  # noqa: E501


@pytest.mark.parametrize("params", ["linked", "external"])
def test_a_region_as_bytes_and_their_interpreter(params: str, tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    def serialise(region: Region) -> Blob:
        return Blob(np.float32(3).tobytes(), "interpret", "interpreter.h", scratch=16)

    install(monkeypatch, unit(lower=None, compile_region=serialise, patterns=(elementwise("Add"),)))
    result = compiled(pair("Add"), tmp_path, "unit,c", library=Options(params=params))
    if params == "external":
        # what is interpreted is program: no file may replace it
        assert np.float32(3).tobytes() not in result.binaries["m.params"]
        assert "0, 0, 64, 64" in result.texts["m.c"]
        return
    np.testing.assert_array_equal(
        outputs(result, tmp_path, X, Y, texts={"interpreter.h": INTERPRETER})[0], X + 3 * Y)


@pytest.mark.parametrize(("hook", "said"), [
    (lambda region: None, "compile_region of region unit_0 (add0): returned None"),
    (lambda region: b"", "returned a bytes, not a Source or a Blob"),
    (raising, "compile_region of region unit_0 (add0) failed: ValueError: out of order"),
    (lambda region: Blob(b"1", "inter pret", "i.h"), "'inter pret' is not a C identifier"),
    (lambda region: Source("", "f"), "text does not define 'f'"),
    (lambda region: Blob(b"", "interpret", "i.h"), "the blob is empty"),
    (lambda region: Blob(b"1", "interpret", "i.h", scratch=-1), "-1 is not a number of bytes"),
    (lambda region: Source("void f(void);", "f", align=3), "3 is not an alignment"),
])  # fmt: skip
def test_wrong_artifacts(hook: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(lower=None, compile_region=hook, patterns=(elementwise("Add"),)))
    assert said in refused(pair("Add"), tmp_path)


# --- constants ----------------------------------------------------------------------------------------------


def biased() -> onnx.ModelProto:
    return model([node("Add", ["x", "b"], ["z"], name="add")], [tensor("x", [2, 4])], [tensor("z", [2, 4])],
                 {"b": Y})


BIASED = (Claim("add", op("Add", value("x"), any_constant("b"))),)


def test_constants_are_packed_and_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of equal numbers become two numbers."""

    def pack(region: Region) -> Mapping[Value, Value | None]:
        (old,) = region.constant_values()
        assert old.data is not None
        return {old: constant("packed_bias", old.data[:, 0].astype(np.float64))}

    def add_rows(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        b = build.constant(m.value("b"))
        body = "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + (float)b[k / 4];\n    }"
        build.call("add_rows", body,
                   [Argument("x", m.value("x")),
                    Argument("b", b),
                    written("y", m.result.outputs[0])])

    install(monkeypatch, unit(patterns=BIASED, lower=add_rows, update_constants=pack))
    result = compiled(biased(), tmp_path, "unit,c")
    assert "double m_c_packed_bias[2]" in result.texts["m.c"] and result.view.constant_bytes == 16
    np.testing.assert_array_equal(outputs(result, tmp_path, X)[0], X + Y)


@pytest.mark.parametrize(("hook", "said"), [
    (raising, "update_constants of region unit_0 failed: ValueError: out of order"),
    (lambda region: 5, "update_constants of region unit_0 failed: TypeError"),
    (lambda region: {region.graph.inputs[0]: None}, "replaces 'x', which is not a constant of the region"),
    (lambda region: {region.constant_values()[0]: region.graph.inputs[0]},
     "for 'b', which is not a constant"),
    (lambda region: {region.constant_values()[0]: None}, "constant 'b' was taken over by update_constants"),
])  # fmt: skip
def test_wrong_constants(hook: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def uses(region: Region, build: RegionSite) -> None:
        build.call("f", "",
                   [Argument("b", region.matches[0].value("b")),
                    written("y", region.graph.outputs[0])])

    install(monkeypatch, unit(patterns=BIASED, lower=uses, update_constants=hook))
    assert said in refused(biased(), tmp_path)


def test_external_parameters_are_those_that_the_target_packed(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    def packed(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        data = m.value("b").data
        assert data is not None
        body = "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + b[7 - k];\n    }"
        build.call("add",
                   body, [
                       Argument("x", m.value("x")),
                       Argument("b", Packed("b",
                                            data.reshape(-1)[::-1], 64)),
                       written("y", m.result.outputs[0])
                   ],
                   fails=False)

    install(monkeypatch, unit(patterns=BIASED, lower=packed))
    result = compiled(biased(), tmp_path, "unit,c", library=Options(params="external"))
    assert Y.reshape(-1)[::-1].tobytes() in result.binaries["m.params"]
    assert json.loads(result.texts["m.json"])["parameters"]["align"] == 64


def test_scratch_is_aligned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lower_aligned(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        body = ("    if (((uintptr_t)s & 127u) != 0u) {\n        return 5;\n    }\n    memcpy(s, x, 32);\n   "
                " memcpy(y, s, 32);\n    return 0;")
        build.call("copy",
                   body, [
                       Argument("x", region.graph.inputs[0]),
                       Argument("s", Scratch("s", 32, 128, "uint8_t")),
                       written("y", m.result.outputs[0])
                   ],
                   includes=["string.h"],
                   fails=True)

    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=lower_aligned))
    np.testing.assert_array_equal(outputs(compiled(pair("Relu"), tmp_path, "unit,c"), tmp_path, X, Y)[0], X)


def test_lower_of_the_unit_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target derives from another and takes its hooks."""
    from aot_model.kernels.target import Target

    install(monkeypatch, UNIT, Target("unit2", "the next generation", UNIT))
    assert lower is not None
    result = compiled(pair("Add"), tmp_path, "unit2,elements=8,c")
    assert result.assignments[0].target == "unit2"
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y)[0], X + Y)
