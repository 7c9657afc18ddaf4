"""What usually depends on data has a known size where its operands are known: Compress by masks, Unique and
TopK of constants. Compress by masks of many axes, too, whose size does depend on data.

The expected numbers are NumPy's; ONNX Runtime gives the same for masks of many axes, which the reference
evaluator refuses.
"""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from batch import Case, run_cases

MODEL = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[{shape}] x{more}) => (float[{result}] y)
<bool[5] apart = {{1, 0, 0, 1, 1}}, bool[5] together = {{0, 1, 1, 1, 0}}, bool[3] short = {{0, 1, 1}},
 bool[5] none = {{0, 0, 0, 0, 0}}, bool[2,3] table = {{1, 0, 1, 0, 0, 1}}, int64[1] five = {{5}},
 int64[2] ends = {{1, -1}}, bool[2] no = {{0, 0}}, float[1] zero = {{0}}>
{{
    {body}
}}
"""
X8 = np.random.default_rng(7).normal(size=(8, 3)).astype(np.float32)
X = np.random.default_rng(5).normal(size=(2, 5, 3)).astype(np.float32)
KNOWN = {
    "some, behind which layers go on": (
        "2,3,3", "p = Compress <axis = 1> (x, apart)\n y = Relu (p)", np.maximum(X[:, [0, 3, 4]], 0),
    ),
    "neighbours": ("2,3,3", "p = Compress <axis = -2> (x, together)\n y = Neg (p)", -X[:, 1:4]),
    "fewer than there are": ("2,2,3", "p = Compress <axis = 1> (x, short)\n y = Neg (p)", -X[:, 1:3]),
    "a mask that is computed, as tf2onnx crops what it mirrors": (
        "2,3,3",
        "ones = ConstantOfShape <value = bool[1] {1}> (five)\n m = ScatterElements (ones, ends, no)\n"
        "p = Compress <axis = 1> (x, m)\n y = Neg (p)",
        -X[:, [0, 2, 3]],
    ),
    "elements": ("3", "p = Compress (x, short)\n q = Neg (p)\n y = Concat <axis = 0> (q, zero)",
                 np.append(-X.reshape(-1)[1:3], np.float32(0))),
    "elements by a table": ("3", "p = Compress (x, table)\n y = Neg (p)", -X.reshape(-1)[[0, 2, 5]]),
    "none": ("1", "p = Compress (x, none)\n y = Concat <axis = 0> (p, zero)", np.zeros(1, np.float32)),
}  # fmt: skip


def test_compress_by_a_known_mask() -> None:
    cases = [
        Case(
            name,
            onnx.parser.parse_model(MODEL.format(shape="2,5,3", more="", result=result, body=body)),
            (X,),
        )
        for name, (result, body, _) in KNOWN.items()
    ]
    for case, (_, _, expected), outcome in zip(cases, KNOWN.values(), run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        assert not outcome.shapes, f"{case.name}: the size is known"
        np.testing.assert_array_equal(outcome.outputs[0], expected, err_msg=case.name)


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_elements_by_a_mask_of_many_axes(share: float) -> None:
    mask = np.random.default_rng(6).random(X.shape) < share
    text = MODEL.format(shape="2,5,3", more=", bool[2,5,3] m", result="N", body="y = Compress (x, m)")
    (outcome,) = run_cases([Case("many axes", onnx.parser.parse_model(text), (X, mask))])
    assert outcome.status == "ok", outcome.message
    np.testing.assert_array_equal(outcome.outputs[0], X[mask])


def test_an_axis_takes_a_list() -> None:
    text = MODEL.format(shape="2,5,3", more="", result="2,5,3", body="y = Compress <axis = 1> (x, table)")
    (outcome,) = run_cases([Case("a table along an axis", onnx.parser.parse_model(text), (X,))])
    assert outcome.status == "refused" and "should be a list of bools" in outcome.message


SEGMENTS = """
<ir_version: 9, opset_import: ["" : 17]>
g (float[8,3] x) => (float[{shape}] y)
<int64[8] ids = {{2, 0, 1, 1, 2, 0, 2, 2}}, int64[1] all = {{8}}, int64[1] two = {{2}}, float[1] zero = {{0}},
 int64[1] first = {{0}}, int64[1] top = {{1}}>
{{
    {body}
}}
"""
OF_CONSTANTS = {
    "as many rows as there are ids": (
        "3,3",
        "u, f, w, m = Unique (ids)\n n = Shape (u)\n c = Concat <axis = 0> (n, top)\n"
        "z = Expand (zero, c)\n r = Gather (x, f)\n y = Add (r, z)",
    ),
    "as many columns as the most frequent has rows": (
        "3,4",
        "u, f, w, m = Unique <sorted = 0> (ids)\n most = ReduceMax <keepdims = 1> (m)\n n = Shape (u)\n"
        "c = Concat <axis = 0> (n, most)\n r = Gather (x, f)\n s = ReduceSum (r, top)\n y = Expand (s, c)",
    ),
    "sorted rows": (
        "8,3", "v, i = TopK <axis = 0, largest = 0> (ids, all)\n r = Gather (x, i)\n y = Neg (r)",
    ),
    "the best of a constant": (
        "2,3", "v, i = TopK (ids, two)\n c = Concat <axis = 0> (v, i)\n n = ReduceMin <keepdims = 1> (v)\n"
               "s = Slice (x, first, n)\n y = Neg (s)",
    ),
}  # fmt: skip


def test_sizes_of_constants() -> None:
    """Beside the reference evaluator."""
    cases = []
    for name, (shape, body) in OF_CONSTANTS.items():
        cases.append(Case(name, onnx.parser.parse_model(SEGMENTS.format(shape=shape, body=body)), (X8,)))
    for case, outcome in zip(cases, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        (expected,) = ReferenceEvaluator(case.model).run(None, {"x": X8})
        np.testing.assert_allclose(outcome.outputs[0], expected, rtol=1e-6, err_msg=case.name)
