"""The hooks of a target that write code, one by one: what they may do, and what is said when they fail or
return nonsense.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import W, X, Y, compiled, elementwise, install, outputs, pair, raising, refused, unit

from aot_model.c.function import CFunction
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.ir.program import Overlap
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.partition.lower import RegionSite
from aot_model.partition.region import Region
from aot_model.pipeline import write
from graphs import weights
from onnx_models import model, tensor

node = helper.make_node


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
        build.external(
            "driver_scale",
            [Argument("x", match.nodes[0].inputs[0]), written("y", match.nodes[0].outputs[0])],
            header="driver.h",
            match=match,
            fails=True,
        )  # type: ignore[arg-type]


def test_functions_of_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    result = compiled(pair("Relu", "Tanh", "Relu"), tmp_path, "unit,c")
    assert (
        '#include "driver.h"' in result.texts["m.c"]
        and "static int32_t driver_scale" not in result.texts["m.c"]
    )
    (got,) = outputs(
        result, tmp_path, X, Y, extra=["driver.c"], texts={"driver.c": DRIVER, "driver.h": HEADER}
    )
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
def test_the_run_stops_with_the_first_error(
    profile: bool, before: int, status: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    write(
        compiled(pair("Relu", "Tanh", "Relu"), tmp_path, "unit,c", library=Options(profile=profile)), tmp_path
    )
    for name, text in {
        "driver.c": DRIVER,
        "driver.h": HEADER,
        "main.c": MAIN % (before, status, after),
    }.items():
        (tmp_path / name).write_text(text)
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "driver.c", "m.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
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
    proto = model(
        [
            node("ReduceSum", ["y"], ["s"], keepdims=0),
            node("Cast", ["s"], ["c"], to=onnx.TensorProto.BOOL),
            node("If", ["c"], ["z"], then_branch=branch[0], else_branch=branch[1]),
        ],
        [tensor("x", [2, 4]), tensor("y", [2, 4])],
        [tensor("z", [2, 4])],
    )
    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=calls_driver))
    result = compiled(proto, tmp_path, "unit,c")
    texts = {"driver.c": DRIVER.replace("calls = 0", "calls = 98"), "driver.h": HEADER}
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y, extra=["driver.c"], texts=texts)[0], 2 * X)
    np.testing.assert_allclose(
        outputs(result, tmp_path, X, 0 * Y, extra=["driver.c"], texts=texts)[0], np.tanh(X), rtol=1e-5
    )
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
                compiled(
                    pair("Add", "Tanh", "Mul"),
                    tmp_path,
                    "unit,c",
                    library=Options(workspace, io, params="external"),
                ),
                tmp_path,
            )
            subprocess.run(["cc", *STRICT, "-c", f"-I{include_dir()}", "m.c"], cwd=tmp_path, check=True)


WRONG_CALLS: dict[str, tuple[Any, str]] = {
    "nothing is written": (lambda region, build: None, "no call writes the output 'z'"),
    "no output": (
        lambda region, build: build.call("f", "", [Argument("x", region.graph.inputs[0])]),
        "'f' writes nothing",
    ),
    "function": (
        lambda region, build: build.call("a-b", "", [written("y", region.graph.outputs[0])]),
        "'a-b' is not a C identifier",
    ),
    "parameter": (
        lambda region, build: build.call("f", "", [written("2", region.graph.outputs[0])]),
        "a parameter of 'f', '2' is not a C identifier",
    ),
    "same name": (
        lambda region, build: build.call(
            "f", "", [Argument("y", region.graph.inputs[0]), written("y", region.graph.outputs[0])]
        ),
        "one name",
    ),
    "input written": (
        lambda region, build: build.call("f", "", [written("x", region.graph.inputs[0])]),
        "writes 'x', which is an input or a constant",
    ),
    "not of the region": (
        lambda region, build: build.call(
            "f", "", [Argument("x", weights("w", 2).__class__("v", region.graph.inputs[0].type))]
        ),
        "value 'v' is not one of the region",
    ),
    "not an argument": (
        lambda region, build: build.call("f", "", [Argument("x", 5)]),
        "an argument is a int",
    ),  # type: ignore[arg-type]
    "header": (
        lambda region, build: build.external(
            "f", [written("y", region.graph.outputs[0])], header='x.h"\n#error'
        ),
        "not the name of a header",
    ),
    "size": (
        lambda region, build: build.call("f", "", [Argument("s", Scratch("s", -4))]),
        "-4 is not a number of bytes",
    ),
    "alignment": (
        lambda region, build: build.call("f", "", [Argument("p", Packed("p", W, 24))]),
        "24 is not an alignment",
    ),
    "overlap": (
        lambda region, build: build.call(
            "f", "", [written("y", region.graph.outputs[0])], overlaps=(Overlap(0, 5, 0),)
        ),
        "parameters that it does not have",
    ),
    "raises": (lambda region, build: region.matches[7], "failed: IndexError: tuple index out of range"),
    "read before written": (
        lambda region, build: build.call(
            "f", "", [Argument("x", region.nodes[0].outputs[0]), written("y", region.graph.outputs[0])]
        ),
        "before anything writes it",
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


def test_a_target_writes_its_functions_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text shows that it ran: subtractions are multiplications."""

    def emit(functions: Sequence[CFunction]) -> str:
        return "\n\n".join(
            f"{f.signature()}\n{{\n{f.function.body.replace(' - ', ' * ')}\n}}" for f in functions
        )

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
