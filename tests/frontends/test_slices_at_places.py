"""Slices at places that are computed, of lengths that are known, beside the reference evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

MODEL = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[3,8,5] x, int64 i, int64 j) => (float[{shape}] y)
<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}},
 int64[1] under = {{-2}}, int64[1] most = {{99}}, int64[2] some = {{3, 2}}, int64[2] last = {{1, 2}},
 int64[3] all = {{1, 0, -1}}, int64[3] by = {{1, 2, 1}}>
{{
    a = Unsqueeze (i, zero)
    b = Reshape (j, one)
    {body}
}}
"""
X = np.random.default_rng(72).normal(size=(3, 8, 5)).astype(np.float32)
BODIES = {
    "the end is the start and a constant": ("3,3,5", "e = Add (a, three)\n y = Slice (x, a, e, one)"),
    "the constant comes first": ("3,3,5", "e = Add (three, a)\n y = Slice (x, a, e, under)"),
    "what is added to the start, too": (
        "3,2,5", "s = Sub (a, one)\n e = Add (one, a)\n y = Slice (x, s, e, one)",
    ),
    "computed before its rank": (
        "3,1,5",
        "k = Cast <to = 6> (i)\n c = Constant <value = int32 {1}> ()\n l = Add (k, c)\n"
        "s = Cast <to = 7> (k)\n t = Cast <to = 7> (l)\n"
        "f = Unsqueeze (s, zero)\n e = Unsqueeze (t, zero)\n y = Slice (x, f, e, one)",
    ),
    "two axes": (
        "3,3,2", "s = Concat <axis = 0> (a, b)\n e = Add (s, some)\n y = Slice (x, s, e, last)",
    ),
    "known axes beside it": (
        "2,3,5",
        "s = Concat <axis = 0> (a, one, under)\n n = Add (a, three)\n m = Identity (n)\n"
        "e = Concat <axis = 0> (m, most, most)\n y0 = Slice (x, s, e, all, by)\n"
        "w = Concat <axis = 2> (y0, y0, y0)\n y = Slice (w, zero, three, two)",
    ),
}  # fmt: skip


def model(shape: str, body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(MODEL.format(shape=shape, body=body))


def test_slices_of_known_length() -> None:
    cases = []
    for name, (shape, body) in BODIES.items():
        for i, j in ((2, 1), (4, 3), (-4, -3)):
            given = (X, np.asarray(i, np.int64), np.asarray(j, np.int64))
            want = ReferenceEvaluator(model(shape, body)).run(None, dict(zip("xij", given, strict=True)))
            cases.append((Case(f"{name} {i} {j}", model(shape, body), given), want))
    for outcome, (case, want) in zip(run_cases([c for c, _ in cases]), cases, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        np.testing.assert_array_equal(outcome.outputs[0], want[0], case.name)


LOOP = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[1,12,8] x, float limit) => (float[1,8] h, int64 turns)
<int64 many = {9223372036854775807}, bool yes = {1}, float[1,8] none = {0,0,0,0,0,0,0,0}, int64 start = {0}>
{
    h, turns = Loop (many, yes, none, start) <body = turn (int64 t, bool go, float[1,8] was, int64 i)
        => (bool again, float[1,8] now, int64 next)
        {
            axis = Constant <value_ints = [0]> ()
            length = Constant <value_ints = [1]> ()
            along = Constant <value_ints = [1]> ()
            step = Constant <value_int = 1> ()
            twelve = Constant <value_int = 12> ()
            s = Unsqueeze (i, axis)
            e = Add (s, length)
            piece = Slice (x, s, e, along)
            row = Squeeze (piece, along)
            sum = Add (was, row)
            now = Tanh (sum)
            next = Add (i, step)
            total = ReduceSum <keepdims = 0> (now)
            small = Less (total, limit)
            more = Less (next, twelve)
            again = And (small, more)
        }>
}
"""


def test_a_loop_that_reads_a_row_a_turn() -> None:
    loop, cases = onnx.parser.parse_model(LOOP), []
    x = np.random.default_rng(73).normal(size=(1, 12, 8)).astype(np.float32)
    for limit in (0.5, 2.0, 100.0):
        given = {"x": x, "limit": np.float32(limit)}
        want = ReferenceEvaluator(loop).run(None, given)
        cases.append((Case(str(limit), loop, tuple(given.values())), want))
    assert len({int(want[1]) for _, want in cases}) > 1
    for outcome, (case, want) in zip(run_cases([c for c, _ in cases]), cases, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        np.testing.assert_allclose(outcome.outputs[0], want[0], rtol=1e-5, atol=1e-6)
        assert int(outcome.outputs[1]) == int(want[1])


@pytest.mark.parametrize(
    "body",
    [
        "y = Slice (x, a, b, one)",  # of any length
        "e = Add (a, b)\n y = Slice (x, a, e, one)",
        "e = Mul (a, three)\n y = Slice (x, a, e, one)",
        "e = Add (b, three)\n y = Slice (x, a, e, one)",
        "y = Slice (x, a, most, one)",  # to the end
        "e = Sub (three, a)\n y = Slice (x, a, e, one)",
        "e = Add (a, most)\n y = Slice (x, a, e, one)",  # longer than the tensor
        "e = Sub (a, three)\n y = Slice (x, a, e, one)",
        "e = Add (a, three)\n y = Slice (x, a, e, one, two)",
        "e = Concat <axis = 0> (b, a)\n s = Concat <axis = 0> (a, b)\n y = Slice (x, s, e, last)",
    ],
)
def test_what_has_no_length_is_refused(body: str, tmp_path: Path) -> None:
    onnx.save(model("a,b,c", body), tmp_path / "net.onnx")
    with pytest.raises(CompileError) as error:
        compile_model(Request(tmp_path / "net.onnx", "net", "c"))
    assert "E203" in {p.code for p in error.value.problems}


def test_a_start_that_is_computed_again_and_again_takes_no_time(tmp_path: Path) -> None:
    """2^200 ways, were each sum looked at anew; 2000 calls, were none too many."""
    sums = "\n".join(f"a{k + 1} = Add (a{k}, a{k})" for k in range(200))
    steps = "\n".join(f"b{k + 1} = Identity (b{k})" for k in range(2000))
    for name, body in {
        "sums": f"a0 = Identity (a)\n{sums}\n y = Slice (x, a, a200, one)",
        "steps": f"b0 = Identity (a)\n{steps}\n e = Add (b2000, three)\n y = Slice (x, a, e, one)",
    }.items():
        onnx.save(model("a,b,c", body), tmp_path / f"{name}.onnx")
        with pytest.raises(CompileError):
            compile_model(Request(tmp_path / f"{name}.onnx", "net", "c"))
