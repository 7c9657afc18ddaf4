"""Property test: random graphs of element-wise, movement and reduction operators against the reference
evaluator.

Fusion substitutes expressions into each other; whatever graph it is given, the generated C must compute what
the operators compute one by one. AOT_MODEL_RANDOM_GRAPHS sets the number of graphs (2 000 before a release).
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.reference
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from onnx.reference.op_run import OpRun

from batch import Case, run_cases

COUNT = int(os.environ.get("AOT_MODEL_RANDOM_GRAPHS", "48"))

UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Floor", "Softsign", "HardSigmoid", "LeakyRelu", "Identity")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceSumSquare")
MOVES = (
    "Transpose",
    "Reshape",
    "Slice",
    "Concat",
    "Pad",
    "Gather",
    "Expand",
    "Tile",
    "Split",
    "Flatten",
    "Unsqueeze",
)


class Softsign(OpRun):
    """The reference evaluator's own fails on tensors without axes."""

    op_domain = ""

    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        return (np.asarray(x / (1 + np.abs(x)), x.dtype),)


Node = onnx.NodeProto
Shape = tuple[int, ...]


class Maker:
    """Adds random nodes to a graph; `draw` decides everything."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.nodes: list[Node] = []
        self.constants: list[onnx.TensorProto] = []
        self.shapes: dict[str, Shape] = {}

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, options: tuple[str, ...] | list[str]) -> str:
        return self.draw(st.sampled_from(list(options)))

    def constant(self, values: object, dtype: type = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def node(
        self, kind: str, inputs: list[str], shape: Shape, outputs: int = 1, **attributes: object
    ) -> None:
        names = [f"v{len(self.shapes) + k}" for k in range(outputs)]
        self.nodes.append(onnx.helper.make_node(kind, inputs, names, **attributes))
        for name in names:
            self.shapes[name] = shape

    def step(self) -> None:
        """One more node."""
        x = self.pick(list(self.shapes))
        shape = self.shapes[x]
        family = self.number(0, 5)
        if family <= 1:
            self.node(self.pick(UNARY), [x], shape)
        elif family <= 3:
            self._binary(x, shape)
        elif family == 4 and shape:
            axes = sorted({self.number(0, len(shape) - 1) for _ in range(self.number(1, 2))})
            keep = self.number(0, 1)
            left = tuple(1 if k in axes else d for k, d in enumerate(shape) if keep or k not in axes)
            self.node(self.pick(REDUCTIONS), [x, self.constant(axes)], left, keepdims=keep)
        else:
            self._move(self.pick(MOVES), x, shape)

    def _binary(self, x: str, shape: Shape) -> None:
        fitting = [n for n, s in self.shapes.items() if _broadcasts(s, shape)]
        if fitting and self.number(0, 2):
            y = self.pick(fitting)
            self.node(self.pick(BINARY), [x, y], tuple(np.broadcast_shapes(shape, self.shapes[y])))
            return
        other = tuple(d if self.number(0, 1) else 1 for d in shape)[
            self.number(0, len(shape)) if shape else 0 :
        ]
        values = np.random.default_rng(self.number(0, 99)).uniform(-2, 2, other)
        self.node(self.pick(BINARY), [x, self.constant(values, np.float32)], shape)

    def _move(self, kind: str, x: str, shape: Shape) -> None:
        rank, size = len(shape), int(np.prod(shape, dtype=np.int64))
        axis = self.number(0, max(rank - 1, 0))
        if kind == "Transpose" and rank:
            perm = self.draw(st.permutations(range(rank)))
            self.node(kind, [x], tuple(shape[p] for p in perm), perm=list(perm))
        elif kind == "Reshape":
            divisors = [d for d in range(1, size + 1) if size % d == 0]
            first = self.draw(st.sampled_from(divisors))
            self.node(kind, [x, self.constant([first, size // first])], (first, size // first))
        elif kind == "Slice" and rank:
            begin = self.number(0, shape[axis] - 1)
            end = self.number(begin + 1, shape[axis])
            step = self.number(1, 2)
            if self.number(0, 3) == 0:
                ends = [self.constant([v]) for v in (-1, -(2**60), axis, -1)]
                self.node(kind, [x, *ends], shape)
                return
            names = [self.constant([v]) for v in (begin, end, axis, step)]
            self.node(kind, [x, *names], (*shape[:axis], -(-(end - begin) // step), *shape[axis + 1 :]))
        elif kind == "Concat" and rank and size <= 300:
            same = [
                n
                for n, s in self.shapes.items()
                if len(s) == rank and s[:axis] + s[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
            ]
            other = self.pick(same)
            self.node(
                kind,
                [x, other],
                (*shape[:axis], shape[axis] + self.shapes[other][axis], *shape[axis + 1 :]),
                axis=axis,
            )
        elif kind == "Pad" and rank and size <= 300:
            pads = [self.number(0, 2) for _ in range(2 * rank)]
            self.node(
                kind,
                [x, self.constant(pads)],
                tuple(d + pads[k] + pads[rank + k] for k, d in enumerate(shape)),
                mode=self.pick(("constant", "edge")),
            )
        elif kind == "Gather" and rank:
            picked = [self.number(-shape[axis], shape[axis] - 1) for _ in range(self.number(1, 3))]
            self.node(
                kind, [x, self.constant(picked)], (*shape[:axis], len(picked), *shape[axis + 1 :]), axis=axis
            )
        elif kind == "Expand" and size <= 100:
            wanted = (self.number(1, 3), *(d if d > 1 else self.number(1, 3) for d in shape))
            self.node(kind, [x, self.constant(wanted)], wanted)
        elif kind == "Tile" and rank and size <= 100:
            repeats = [self.number(1, 2) for _ in shape]
            self.node(
                kind, [x, self.constant(repeats)], tuple(d * r for d, r in zip(shape, repeats, strict=True))
            )
        elif kind == "Split" and rank and shape[axis] % 2 == 0:
            self.node(
                kind,
                [x],
                (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :]),
                outputs=2,
                axis=axis,
                num_outputs=2,
            )
        elif kind == "Flatten" and rank:
            self.node(
                kind,
                [x],
                (int(np.prod(shape[:axis], dtype=np.int64)), int(np.prod(shape[axis:], dtype=np.int64))),
                axis=axis,
            )
        else:
            self.node("Unsqueeze", [x, self.constant([axis])], (*shape[:axis], 1, *shape[axis:]))


def _broadcasts(a: Shape, b: Shape) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a, b), dtype=np.int64)) <= 1000
    except ValueError:
        return False


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    """A model with one or two inputs, 2 to 12 nodes, and everything that nothing reads as outputs."""
    maker = Maker(draw)
    inputs = []
    for k in range(maker.number(1, 2)):
        shape = tuple(maker.number(1, 5) for _ in range(maker.number(1, 3)))
        inputs.append(onnx.helper.make_tensor_value_info(f"x{k}", onnx.TensorProto.FLOAT, shape))
        maker.shapes[f"x{k}"] = shape
    for _ in range(maker.number(2, 12)):
        maker.step()
    read = {n for node in maker.nodes for n in node.input}
    ends = [n for n in maker.shapes if n not in read and not n.startswith("x")]
    outputs = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, maker.shapes[n]) for n in ends]
    graph = onnx.helper.make_graph(maker.nodes, "random", inputs, outputs, maker.constants)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10)


def generated(count: int) -> list[onnx.ModelProto]:
    """So many random models; always the same ones."""
    found: list[onnx.ModelProto] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(models())
    def collect(model: onnx.ModelProto) -> None:
        found.append(model)

    collect()
    return found


@pytest.mark.parametrize("target", ["c", "host"])
def test_random_graphs(target: str) -> None:
    tested = generated(COUNT)
    rng = np.random.default_rng(1)
    cases = []
    for k, model in enumerate(tested):
        feeds = tuple(
            np.asarray(rng.uniform(-2, 2, [d.dim_value for d in i.type.tensor_type.shape.dim]), np.float32)
            for i in model.graph.input
        )
        cases.append(Case(f"graph {k}", model, feeds))
    flags = ("-O1", "-march=native") if target == "host" else ("-O1",)
    wrong = []
    for case, outcome in zip(cases, run_cases(cases, target, flags=flags), strict=True):
        if outcome.status != "ok":
            wrong.append(
                f"{case.name}: {outcome.status}: {outcome.message[:1500]}\n{onnx.printer.to_text(case.model)}"
            )
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = onnx.reference.ReferenceEvaluator(case.model, new_ops=[Softsign]).run(
                None, {i.name: x for i, x in zip(case.model.graph.input, case.inputs, strict=True)}
            )
        for info, got, want in zip(case.model.graph.output, outcome.outputs, expected, strict=True):
            scale = max(float(np.max(np.abs(want), initial=0.0)), 1.0)
            if got.shape != want.shape or not np.allclose(
                got, want, rtol=1e-4, atol=1e-5 * scale, equal_nan=True
            ):
                wrong.append(
                    f"{case.name}: output {info.name} differs\n{onnx.printer.to_text(case.model)}\ngot "
                    f"{got}\nwant {want}"
                )
                break
    assert not wrong, f"{len(wrong)} of {len(cases)} graphs\n" + "\n\n".join(wrong[:3])
