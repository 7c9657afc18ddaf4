"""A small accelerator for tests: element-wise float operators, and products with a bias and an activation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph
from aot_model.ir.pattern import constant, op, value
from aot_model.ir.types import DType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.target import Attribute, Target
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Claim, Offload
from aot_model.partition.partition import Partition, partition
from aot_model.partition.region import Match, Region
from aot_model.pipeline import Compiled, Request, compile_model
from aot_model.targets import registry
from aot_model.targets.builtin import BUILTIN
from onnx_models import model, save, tensor
from sanitizers import sanitized

W = np.zeros(4, np.float32)
X = np.asarray([[1, 2, 3, 4], [0, -1, 2, -3]], np.float32)
Y = np.asarray([[2, 2, 2, 2], [3, 3, 3, 3]], np.float32)
_BODIES = {
    "Add": "a[i] + b[i]",
    "Sub": "a[i] - b[i]",
    "Mul": "a[i] * b[i]",
    "Relu": "a[i] > 0.0f ? a[i] : 0.0f",
}


def same_shape(match: Match, target: Target) -> str | None:
    """Why the unit does not compute an element-wise operator."""
    node = match.result
    if any(
        v is not None and (v.shape != node.outputs[0].shape or v.dtype is not DType.FLOAT32)
        for v in node.inputs
    ):
        return "its inputs are not floats of one shape"
    if node.outputs[0].type.elements > target.option("elements"):
        return f"{node.outputs[0].type.elements} elements are more than {target.option('elements')}"
    return None


def lower(region: Region, build: RegionSite) -> None:
    """Loops over elements, and over rows and columns."""
    for match in region.matches:
        node, out = match.result, match.result.outputs[0]
        if match.pattern == "dense":
            m, k, n = match.value("x").shape[0], *match.value("w").shape
            body = f"""    for (int32_t r = 0; r < {m}; ++r) {{
        for (int32_t c = 0; c < {n}; ++c) {{
            float sum = bias[c];
            for (int32_t i = 0; i < {k}; ++i) {{
                sum += x[r * {k} + i] * w[i * {n} + c];
            }}
            y[r * {n} + c] = {"sum > 0.0f ? sum : 0.0f" if match.has("relu") else "sum"};
        }}
    }}"""
            arguments = [
                Argument("x", match.value("x")),
                Argument("w", match.value("w")),
                Argument("bias", match.value("bias")),
                written("y", out),
            ]
        else:
            body = (
                f"    for (int32_t i = 0; i < {out.type.elements}; ++i) {{\n        y[i] = "
                f"{_BODIES[node.kind]};\n    }}"
            )
            inputs = [v for v in node.inputs if v is not None]
            arguments = [*(Argument("ab"[k], v) for k, v in enumerate(inputs)), written("y", out)]
        build.call(match.pattern, body, arguments, match=match)


def dense_pattern(relu: bool = True) -> Claim:
    """x · w + bias, with an activation where there is one."""
    product = op("MatMul", value("x", rank=2), constant("w", rank=2), name="product")
    whole = op("Add", product, constant("bias", rank=1), name="sum")
    return Claim("dense", whole.optional(lambda p: op("Relu", p, name="relu")) if relu else whole)


def elementwise(kind: str) -> Claim:
    return Claim(kind.lower(), op(kind), same_shape)


OFFLOAD = Offload((dense_pattern(), *(elementwise(k) for k in _BODIES)), lower=lower)
UNIT = Target(
    "unit",
    "for tests",
    attributes={"elements": Attribute(1 << 20, "most elements of a tensor")},
    offload=OFFLOAD,
)


def unit(name: str = "unit", **changes: Any) -> Target:
    """The accelerator with some of its hooks changed."""
    return replace(UNIT, name=name, offload=replace(OFFLOAD, **changes))


def install(monkeypatch: pytest.MonkeyPatch, *targets: Target) -> None:
    """Let targets be known as those of packages are."""
    known = {t.name: t for t in (*BUILTIN, *targets)}
    monkeypatch.setattr(registry, "targets", lambda: known)


def compiled(proto: onnx.ModelProto, folder: Path, target: str, name: str = "m", **request: Any) -> Compiled:
    return compile_model(Request(save(proto, folder / f"{name}.onnx"), name, target, **request))


def outputs(
    result: Compiled,
    folder: Path,
    *inputs: np.ndarray,
    extra: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> list[np.ndarray]:
    """What the generated C computes, under sanitizers."""
    program = sanitized(
        result.view,
        {**result.texts, **(texts or {})},
        folder / "build",
        *(str(folder / "build" / file) for file in extra),
    )
    return program.run([list(inputs)])[0]


def split(graph: Graph, *targets: Target) -> Partition:
    """The partition of a graph; what is left of it is in its nodes."""
    return partition(graph, targets)


def pair(*kinds: str) -> onnx.ModelProto:
    """x, y -> operators one after the other, each with y as its second operand."""
    nodes, last = [], "x"
    for k, kind in enumerate(kinds):
        out = "z" if k == len(kinds) - 1 else f"t{k}"
        nodes.append(
            helper.make_node(
                kind,
                [last, "y"] if kind in ("Add", "Sub", "Mul") else [last],
                [out],
                name=f"{kind.lower()}{k}",
            )
        )
        last = out
    return model(nodes, [tensor("x", [2, 4]), tensor("y", [2, 4])], [tensor("z", [2, 4])])


def refused(proto: onnx.ModelProto, folder: Path, target: str = "unit,c") -> str:
    """What is said, which is E502 and names the target."""
    with pytest.raises(CompileError) as error:
        compiled(proto, folder, target)
    (problem,) = error.value.problems
    assert problem.code == "E502" and "target 'unit'" in problem.message
    return str(problem)


def raising(*arguments: object) -> Any:
    raise ValueError("out of order")


def on(*operators: str, name: str = "unit", **more: object):  # type: ignore[no-untyped-def]
    """A target that takes these operators one by one."""
    return unit(name, patterns=tuple(Claim(k.lower(), op(k)) for k in operators), **more)


def reasons(g: Graph, *targets: object) -> dict[str, list[str]]:
    return {
        a.node: [why for _, pattern, why in a.refused if pattern] for a in partition(g, targets).assignments
    }  # type: ignore[arg-type]
