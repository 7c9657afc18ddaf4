"""`x[mask] = value` as PyTorch exports it, beside the reference evaluator; what else reads a value that is
repeated as often as data say.
"""

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

ASSIGNED = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[2,3,4] x, {mask}, float[{one}] value) => (float[2,3,4] y)
<int64[1] all = {{-1}}, int64[1] four = {{4}}, int64[2] inner = {{1, 2}}>
{{
    places = NonZero (mask)
    rows = Transpose <perm = [1, 0]> (places)
    counted = Cast <to = 7> (mask)
    flat = Reshape (counted, all)
    is = Cast <to = 9> (flat)
    ones = Cast <to = 7> (is)
    many = ReduceSum <keepdims = 1> (ones)
    {repeat}
    {last}
}}
"""
RANDOM = np.random.default_rng(71)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
SCATTER = "y = ScatterND {} (x, rows, updates)"


EACH = "repeated = Expand (value, many)\n    updates = Reshape (repeated, all)"
ROWS = "size = Concat <axis = 0> (many, four)\n    updates = Expand (value, size)"


def assigned(mask: str, one: str = "1", last: str = SCATTER.format("")) -> onnx.ModelProto:
    repeat = EACH if mask.count(",") == 2 else ROWS
    return onnx.parser.parse_model(ASSIGNED.format(mask=mask, one=one, last=last, repeat=repeat))


@pytest.mark.parametrize("one", ["1", "1,1"])
@pytest.mark.parametrize("kind", ["bool", "int32"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3)])
def test_the_elements_that_a_mask_picks(shape: tuple[int, ...], kind: str, one: str) -> None:
    value = np.full((1,) * len(one.split(",")), 2.5, np.float32)
    model, cases = assigned(f"{kind}[{','.join(map(str, shape))}] mask", one), []
    for share in (0, 0.4, 1):  # none, some, all
        mask = np.asarray(RANDOM.uniform(size=shape) < share)
        given = mask if kind == "bool" else (mask * RANDOM.choice([-7, 1, 256], shape)).astype(np.int32)
        want = ReferenceEvaluator(model).run(None, {"x": X, "mask": given, "value": value})
        np.testing.assert_array_equal(
            want[0], np.where(mask.reshape(*shape, *[1] * (3 - len(shape))), 2.5, X)
        )
        cases.append((Case(f"{kind} {one} {share}", model, (X, given, value)), want))
    for outcome, (case, want) in zip(run_cases([c for c, _ in cases]), cases, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        np.testing.assert_array_equal(outcome.outputs[0], want[0])


@pytest.mark.parametrize("last", ["y = Add (x, updates)", *(
    f"{before}y = ScatterND ({of}, {at}, {what})" for before, of, at, what in (
        ("sums = ReduceSum <keepdims = 0> (counted, inner)\n    keep = Cast <to = 9> (sums)\n    "
         "some = Compress <axis = 0> (x, keep)\n    ", "some", "rows", "updates"),
        ("", "x", "places", "updates"), ("", "updates", "rows", "x")))])  # fmt: skip
def test_other_readers_need_a_size_that_is_known(last: str, tmp_path: Path) -> None:
    onnx.save(assigned("bool[2,3,4] mask", last=last), tmp_path / "m.onnx")
    with pytest.raises(CompileError) as error:
        compile_model(Request(tmp_path / "m.onnx", "m"))
    assert error.value.problems[0].code in ("E203", "E301")


def test_other_readers_of_rows() -> None:
    model = assigned("bool[2,3,4] mask", last=SCATTER.format('<reduction = "add">'))
    model.graph.output.append(onnx.ValueInfoProto(name="updates"))
    mask, value = RANDOM.uniform(size=X.shape) < 0.5, np.float32([2.5])
    want = ReferenceEvaluator(model).run(None, {"x": X, "mask": mask, "value": value})
    (outcome,) = run_cases([Case("added", model, (X, mask, value))])
    assert outcome.status == "ok", outcome.message
    for got, right in zip(outcome.outputs, want, strict=True):
        np.testing.assert_array_equal(got, right)
