"""Values of which the number of rows depends on data, in bodies of branches and loops: what is known of them
in one body is not known in another. ONNX Runtime computes the same models.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnxruntime
import pytest

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

HEAD = '<ir_version: 9, opset_import: ["" : 18]>'
BODIES = {
    "branches": """g (float[5,3] x, bool[5] mask, float[3] s) => (float[3] y) <int64[1] zero = {0}>
        {
            sum = ReduceSum <keepdims = 0> (s)
            is = Cast <to = 9> (sum)
            y = If (is) <then_branch = some () => (float[3] a)
                {
                    p = Compress <axis = 0> (x, mask)
                    a = ReduceSum <keepdims = 0> (p, zero)
                }, else_branch = other () => (float[3] b)
                {
                    q = Compress <axis = 0> (x, mask)
                    b = ReduceProd <keepdims = 0> (q, zero)
                }>
        }""",
    "loop, then graph": """g (float[5,3] x, bool[5] mask, float[3] s) => (float[3] y, float[3] z)
        <int64[1] zero = {0}, int64 n = {3}>
        {
            y = Loop (n, , s) <body = turn (int64 i, bool on, float[3] v) => (bool on, float[3] w)
                {
                    p = Compress <axis = 0> (x, mask)
                    a = ReduceSum <keepdims = 0> (p, zero)
                    w = Add (a, v)
                }>
            q = Compress <axis = 0> (x, mask)
            z = ReduceProd <keepdims = 0> (q, zero)
        }""",
    "growing loop, then graph": """g (float[5,3] x, bool[5] mask, float[3] s) => (float[k] y, float[3] z)
        <int64[1] zero = {0}, int64 n = {3}>
        {
            y = Loop (n, , s) <body = turn (int64 i, bool on, float[a] v) => (bool on, float[b] w)
                {
                    p = Compress <axis = 0> (x, mask)
                    a = ReduceSum <keepdims = 0> (p, zero)
                    w = Concat <axis = 0> (a, v)
                }>
            q = Compress <axis = 0> (x, mask)
            z = ReduceProd <keepdims = 0> (q, zero)
        }""",
    "the first rows of others": """g (float[5,3] x, bool[5] mask, float[3] s) => (float[3] y, float[3] z)
        <int64[1] zero = {0}, int64[1] two = {2}, int64 n = {3}>
        {
            p = Compress <axis = 0> (x, mask)
            y = Loop (n, , s) <body = turn (int64 i, bool on, float[3] v) => (bool on, float[3] w)
                {
                    first = Slice (p, zero, two, zero)
                    a = ReduceSum <keepdims = 0> (first, zero)
                    w = Add (a, v)
                }>
            q = Slice (p, zero, two, zero)
            z = ReduceProd <keepdims = 0> (q, zero)
        }""",
}


def test_bodies() -> None:
    x = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    mask = np.asarray([1, 0, 1, 1, 0], bool)
    cases, wanted = [], []
    for name, text in BODIES.items():
        net = onnx.parser.parse_model(f"{HEAD}\n{text}")
        session = onnxruntime.InferenceSession(net.SerializeToString())
        for s in (np.zeros(3, np.float32), np.ones(3, np.float32)):
            cases.append(Case(name, net, (x, mask, s)))
            wanted.append(session.run(None, {"x": x, "mask": mask, "s": s}))
    for case, want, outcome in zip(cases, wanted, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for got, right in zip(outcome.outputs, want, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-6, err_msg=case.name)


@pytest.mark.parametrize("kind", ["BOOL", "UINT8"])
def test_a_number_of_rows_in_a_type_that_may_not_hold_it(kind: str, tmp_path: Path) -> None:
    """A shape of it is none that is known; as an output, such a value is refused like others."""
    text = f"""g (float[5,3] x, bool[5] mask) => (float[k] y) <float[1] one = {{1}}>
        {{
            p = Compress <axis = 0> (x, mask)
            shape = Shape <end = 1> (p)
            narrow = Cast <to = {onnx.TensorProto.DataType.Value(kind)}> (shape)
            wide = Cast <to = 7> (narrow)
            y = Expand (one, wide)
        }}"""
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(f"{HEAD}\n{text}").SerializeToString())
    with pytest.raises(CompileError, match=r"output 'y': the shape \('wide'\) must be known"):
        compile_model(Request(path, "m"))
