"""A graph as text that says all that a pass decides, and what it computes, node by node in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from zlib import crc32

import numpy as np

from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build
from aot_model.passes.fold_constants import compute

SHOWN = 8
"""Constants of more elements are told by a checksum, floats by their sum."""


def graph_text(graph: Graph) -> str:
    """Nodes with their attributes, types and constants. Names that passes make up are left out."""
    names = {v: f"%{v.name}" for v in graph.inputs}

    def name(value: Value | None) -> str:
        if value is None:
            return "_"
        if value.data is not None and value not in names:
            return f"{value.type} {_numbers(value.data)}"
        return names.setdefault(value, f"%{len(names)}")

    lines = []
    for node in graph.nodes:
        inputs = ", ".join(map(name, node.inputs))
        given = {f.name: getattr(node.op, f.name) for f in fields(node.op)}
        bodies = list(subgraphs(node))
        words = [
            f"{k}={v.label if isinstance(v, DType) else repr(v)}"
            for k, v in given.items()
            if not isinstance(v, Graph) and k in _told(node)
        ]
        outputs = ", ".join(f"{name(v)}: {v.type}" for v in node.outputs)
        lines.append(" ".join((f"{outputs} = {node.kind}({inputs})", *words)))
        lines += [f"  {line}" for body in bodies for line in graph_text(body).splitlines()]
    return "\n".join([*lines, f"return {', '.join(map(name, graph.outputs))}"])


def _told(node: Node) -> set[str]:
    """Attributes that are not their defaults; tables are long: those are constants of other cases."""
    return {
        f.name
        for f in fields(node.op)
        if repr(getattr(node.op, f.name)) != repr(f.default) and len(repr(getattr(node.op, f.name))) < 300
    }


def _numbers(data: np.ndarray) -> str:
    flat = data.reshape(-1)
    if data.dtype.kind not in "iub":
        short = (
            flat[:1]
            if flat.size and (flat == flat[0]).all()
            else flat[:SHOWN]
            if flat.size <= SHOWN
            else flat.astype(np.float64).sum(keepdims=True)
        )
        return "{" + ", ".join(f"{float(v):.4g}" for v in short) + "}"
    return (
        "{" + ", ".join(str(int(v)) for v in flat) + "}"
        if flat.size <= SHOWN
        else f"#{crc32(np.ascontiguousarray(data).tobytes()):08x}"
    )


def run_graph(graph: Graph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a graph by the definition of each operator."""
    known: dict[Value, Value] = {v: constant(v.name, a) for v, a in zip(graph.inputs, inputs, strict=True)}
    _run(graph.nodes, known)
    return [known.get(v, v).data for v in graph.outputs]  # type: ignore[misc]


def _run(nodes: Sequence[Node], known: dict[Value, Value]) -> None:
    for node in nodes:
        now = [None if v is None else known.get(v, v) for v in node.inputs]
        here = Node(node.op, now, node.outputs, node.name)
        if node.kind == "If":
            assert now[0] is not None and now[0].data is not None
            body = list(subgraphs(node))[0 if now[0].data else 1]
            _run(body.nodes, known)
            arrays = [known.get(v, v).data for v in body.outputs]
        elif node.op.has("expand"):
            inner: list[Node] = []
            results = [known.get(v, v) for v in _expanded(here, inner)]
            _run(inner, known)
            arrays = [known.get(v, v).data for v in results]
        else:
            arrays = list(compute(here) or [])
        assert arrays and all(a is not None for a in arrays), f"{node} cannot be computed"
        known.update(
            (v, constant(v.name, a)) for v, a in zip(node.outputs, arrays, strict=False) if a is not None
        )


def _expanded(node: Node, inner: list[Node]) -> list[Value]:
    return list(node.op.expand(Build(inner, node.name), node.inputs))


SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    65504.0,
    -65520.0,
    3.4e38,
    -3.4e38,
    1e-45,
    1e-38,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.1,
    1 / 3,
    1e5,
)


def hostile(graph: Graph, seed: int, special: bool) -> list[list[np.ndarray]]:
    """Inputs: random ones; ends of the type's range, zero and their neighbours; `special`: what floats
    have beyond
    numbers."""
    rng = np.random.default_rng(seed)
    return [
        [_random(rng, v.dtype, v.shape) for v in graph.inputs],
        *([_ends(rng, v.dtype, v.shape, special) for v in graph.inputs] for _ in range(2)),
    ]


def _random(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype is DType.BOOL:
        return rng.random(shape) < 0.5
    if dtype.is_float:
        return np.asarray(rng.normal(size=shape), np.float32).astype(dtype.numpy)
    low, high = (max(dtype.limits[0], -(2**40)), min(dtype.limits[1], 2**40))
    return np.asarray(rng.integers(low, high + 1, shape), dtype.numpy)


def _ends(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], special: bool) -> np.ndarray:
    if dtype is DType.BOOL:
        return np.zeros(shape, bool)
    if dtype.is_float:
        with np.errstate(over="ignore"):  # of float16
            return np.asarray(
                rng.choice(SPECIAL[: len(SPECIAL) if special else 8], shape), np.float32
            ).astype(dtype.numpy)
    low, high = dtype.limits
    return np.asarray(
        rng.choice(
            [low, low + 1, high - 1, high, min(max(0, low), high), (low + high) // 2, (low + high) // 2 + 1],
            shape,
        ),
        dtype.numpy,
    )
