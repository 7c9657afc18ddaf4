"""What is computed from rows whose number depends on data beyond each row alone: sums, shapes, the first
or the best rows, rows of rows, assignments. ONNX Runtime computes the same models.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from batch import Case, run_cases

N = helper.make_node
PICKED = [N("Compress", ["x", "mask"], ["p"], axis=0)]
PLACES = [N("NonZero", ["mask"], ["columns"]), N("Transpose", ["columns"], ["places"], perm=[1, 0])]
CONSTANTS: dict[str, object] = {
    "zero": np.asarray([0]),
    "one": np.asarray([1]),
    "three": np.asarray([3]),
    "many": np.asarray([2**63 - 1]),
    "flat": np.asarray([-1]),
    "pairs": np.asarray([-1, 2]),
    "four": np.asarray([4]),
    "none": np.zeros(0, np.int64),
    "nothing": np.asarray(0),
    "step": np.asarray(1),
    "overlap": np.float32([0.3]),
    "two": np.float32(2),
    "second": np.asarray(2),
}


def _reductions(*kinds: str) -> tuple[list[onnx.NodeProto], list[str]]:
    nodes = [N(f"Reduce{kind}", ["more", "zero"], [kind], keepdims=k % 2) for k, kind in enumerate(kinds)]
    more = N("Add", ["p", "two"], ["more"])  # no zeros behind the last row
    return [*PICKED, more, *nodes, N("ReduceSum", ["more"], ["every"], keepdims=0)], [*kinds, "every"]


def _branch() -> list[onnx.NodeProto]:
    empty = helper.make_graph(
        [N("Constant", [], ["e"], value=numpy_helper.from_array(np.zeros(0, np.int64)))],
        "empty",
        [],
        [helper.make_tensor_value_info("e", TensorProto.INT64, [0])],
    )
    some = helper.make_graph(
        [N("Squeeze", ["places", "one"], ["list"])],
        "some",
        [],
        [helper.make_tensor_value_info("list", TensorProto.INT64, [None])],
    )
    return [
        *PLACES,
        N("Size", ["places"], ["size"]),
        N("Equal", ["size", "nothing"], ["void"]),
        N("If", ["void"], ["rows"], then_branch=empty, else_branch=some),
        N("Gather", ["x", "rows"], ["y"], axis=0),
    ]


CASES: dict[str, tuple[list[onnx.NodeProto], list[str]]] = {
    "sums": _reductions("Sum", "Prod", "L1", "L2", "SumSquare"),
    "extremes": _reductions("Mean", "Max", "Min", "LogSumExp"),
    "places": (
        [*PICKED, N("ArgMax", ["p"], ["at"], axis=0), N("ArgMin", ["p"], ["across"], axis=1),
         N("Softmax", ["p"], ["soft"], axis=0), N("ReduceMax", ["p", "one"], ["wide"])],
        ["at", "across", "soft", "wide"],
    ),
    "the same mask": (
        [*PICKED, N("Compress", ["z", "mask"], ["q"], axis=0), N("Add", ["p", "q"], ["y"])],
        ["y"],
    ),
    "the first rows": (
        [*PICKED, N("Slice", ["p", "zero", "three", "zero"], ["y"]),
         N("Slice", ["p", "zero", "many", "zero"], ["q"]),
         N("Add", ["p", "q"], ["sum"])], ["y", "sum"],
    ),
    "shapes": (
        [*PICKED, N("Shape", ["p"], ["sh"]), N("Shape", ["p"], ["inner"], start=1), N("Size", ["p"], ["n"]),
         N("Gather", ["sh", "nothing"], ["rows"]), N("Range", ["nothing", "rows", "step"], ["r"]),
         N("ConstantOfShape", ["sh"], ["zeros"]), N("Sub", ["zeros", "p"], ["less"]),
         N("Expand", ["one", "sh"], ["ones"]), N("Reshape", ["p", "sh"], ["same"]),
         N("Gather", ["sh", "step"], ["width"]), N("Range", ["nothing", "width", "step"], ["across"]),
         N("Gather", ["sh", "zero"], ["n1"]), N("Add", ["n1", "zero"], ["end"]),
         N("Slice", ["p", "zero", "end", "zero"], ["whole"])],
        ["sh", "inner", "n", "r", "less", "ones", "same", "across", "whole"],
    ),
    "other rows": (
        [*PICKED, N("Reshape", ["p", "flat"], ["f"]), N("Reshape", ["p", "pairs"], ["y"]),
         N("Neg", ["f"], ["g"])],
        ["g", "y"],
    ),
    "rows of rows": (
        [*PICKED, N("Greater", ["p", "two"], ["c"]), N("ReduceMax", ["p", "one"], ["most"], keepdims=0),
         N("Greater", ["most", "two"], ["d"]), N("Compress", ["p", "d"], ["y"], axis=0),
         N("NonZero", ["c"], ["i"])],
        ["y", "i"],
    ),
    "the best rows": (
        [*PLACES, N("Squeeze", ["places", "one"], ["i"]), N("Gather", ["s", "i"], ["w"]),
         N("Neg", ["w"], ["v"]),
         N("Shape", ["v"], ["n"]), N("Concat", ["three", "n"], ["both"], axis=0),
         N("ReduceMin", ["both", "zero"], ["k"]),
         N("TopK", ["v", "k"], ["y", "at"]), N("Gather", ["i", "at"], ["which"])],
        ["y", "which"],
    ),
    "rows behind rows": (
        [*PICKED, N("Less", ["s", "two"], ["other"]), N("Compress", ["z", "other"], ["q"], axis=0),
         N("Concat", ["p", "x", "q"], ["y"], axis=0), N("Concat", ["p", "z", "q"], ["w"], axis=0),
         N("Mul", ["y", "w"], ["v"])], ["v"],
    ),
    "assigned": (
        [*PLACES, N("GatherND", ["x", "places"], ["v"]), N("Tanh", ["v"], ["t"]),
         N("ScatterND", ["z", "places", "t"], ["y"]),
         N("ScatterND", ["z", "places", "t"], ["sum"], reduction="add"),
         N("Shape", ["t"], ["like"]),
         N("Expand", ["places", "like"], ["wide"]), N("ScatterElements", ["z", "wide", "t"], ["w"], axis=0)],
        ["y", "sum", "w"],
    ),
    "as many as a mask has": (
        [*PLACES, N("Shape", ["places"], ["sh"]), N("Gather", ["sh", "zero"], ["n"]),
         N("Slice", ["z", "zero", "n", "zero"], ["v"]), N("ScatterND", ["x", "places", "v"], ["y"])], ["y"],
    ),
    "boxes": (
        [*PICKED, N("Compress", ["s", "mask"], ["q"], axis=0), N("Unsqueeze", ["p", "zero"], ["b"]),
         N("Unsqueeze", ["q", "zero"], ["q1"]), N("Unsqueeze", ["q1", "zero"], ["q2"]),
         N("NonMaxSuppression", ["b", "q2", "many", "overlap"], ["chosen"]),
         N("Gather", ["chosen", "second"], ["k"], axis=1),
         N("Gather", ["p", "k"], ["y"], axis=0)], ["y", "b"],
    ),
    "none or rows": (_branch(), ["y"]),
}  # fmt: skip
GROUPS = (
    ("sums", "the same mask", "the first rows", "shapes", "other rows"),
    ("extremes", "places"),
    ("rows of rows", "rows behind rows", "boxes"),
    ("the best rows", "assigned", "as many as a mask has", "none or rows"),
)
MASKS = {"some": [1, 0, 1, 1, 0, 1, 1], "none": [0] * 7}


def _named(nodes: list[onnx.NodeProto], name: str) -> list[onnx.NodeProto]:
    """With results of names of their own."""
    own, result = {n: f"{name}, {n}" for node in nodes for n in node.output}, []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [own.get(n, n) for n in node.input]
        copy.output[:] = [own[n] for n in node.output]
        for a in copy.attribute:
            for inner in a.g.node:
                inner.input[:] = [own.get(n, n) for n in inner.input]
        result.append(copy)
    return result


def _proto(names: tuple[str, ...]) -> tuple[onnx.ModelProto, list[str]]:
    first, nodes, outputs = [*PICKED, *PLACES], list[onnx.NodeProto](), list[str]()
    for name in names:
        nodes += _named([n for n in CASES[name][0] if n not in first], name)
        outputs += [f"{name}, {n}" for n in CASES[name][1]]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [7, 4]) for n in ("x", "z")]
    infos += [helper.make_tensor_value_info("s", TensorProto.FLOAT, [7])]
    infos += [helper.make_tensor_value_info("mask", TensorProto.BOOL, [7])]
    graph = helper.make_graph(
        [*first, *nodes],
        "g",
        infos,
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in CONSTANTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), outputs


def test_as_onnx_runtime() -> None:
    rng = np.random.default_rng(5)
    corner = rng.uniform(0, 4, (7, 2))
    given = (
        np.concatenate([corner, corner + rng.uniform(1, 4, (7, 2))], 1).astype(np.float32),
        rng.normal(size=(7, 4)).astype(np.float32),
        (rng.permutation(7) * 0.5).astype(np.float32),
    )
    cases, wanted = [], []
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    for names in GROUPS:
        proto, outputs = _proto(names)
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), quiet, providers=["CPUExecutionProvider"]
        )
        for kind, mask in MASKS.items():
            if kind == "none" and "extremes" in names:  # of no rows there are none
                continue
            arrays = (*given, np.asarray(mask, bool))
            feed = dict(zip(("x", "z", "s", "mask"), arrays, strict=True))
            cases.append(Case(f"{names}: {kind}", proto, arrays))
            wanted.append(dict(zip(outputs, session.run(None, feed), strict=True)))
    for case, want, outcome in zip(cases, wanted, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for got, (name, right) in zip(outcome.outputs, want.items(), strict=True):
            np.testing.assert_allclose(got, right, rtol=2e-6, atol=1e-6, err_msg=f"{case.name}, {name}")
