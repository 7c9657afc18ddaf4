"""The backend conformance suite of the `onnx` package, run through the compiler: model → C → host compiler →
outputs.

    python tests/conformance/suite.py [-k PATTERN] [--target c] [--results results.json] [--no-sanitize]

Every case of the installed onnx (node, simple, pytorch-converted, pytorch-operator, light) with the suite's
own inputs, outputs and tolerances. A case passes when all its data sets give outputs of the same type, shape
and values.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
import onnx.numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from batch import Case, Outcome, elapsed, run_cases

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@dataclass(frozen=True)
class Test:
    """A case of the suite: the model and its data sets, (inputs, expected outputs) each."""

    name: str
    kind: str
    model: onnx.ModelProto
    folder: Path | None
    data: tuple[tuple[list[Any], list[Any]], ...]
    rtol: float
    atol: float

    @property
    def random(self) -> bool:
        """Whether the outputs of the suite are a draw of its own (the text of its Bernoulli cases says
        so).
        """
        return self.name.startswith("test_bernoulli")

    @property
    def types(self) -> list[str]:
        """Element types of the model's inputs and outputs."""
        kinds = [i.type.tensor_type.elem_type for i in (*self.model.graph.input, *self.model.graph.output)]
        return sorted({onnx.TensorProto.DataType.Name(k).lower() for k in kinds if k})

    @property
    def operators(self) -> list[str]:
        return sorted({f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in self.model.graph.node})


@dataclass(frozen=True)
class Result:
    """status: pass, refused, mismatch, broken, uncompilable, crash."""

    status: str
    message: str = ""


_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def load_tests(pattern: str = "*") -> list[Test]:
    """The cases whose names match."""
    found: dict[str, Test] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for case in load_model_tests(kind=kind):
                if fnmatch.fnmatch(case.name, pattern) and case.name not in found:
                    found[case.name] = _wrapped(_test(case, kind))
    return list(found.values())


def _wrapped(test: Test) -> Test:
    """Floats beyond an integer of less than a byte wrap. The standard leaves them undefined, and results of
    such cases are computed with ml_dtypes when they are loaded, which makes them 0 from version 0.7 on.
    """
    kind = test.model.graph.node[0].op_type if test.model.graph.node else ""
    data = []
    for ins, outs in test.data:
        bits = _BITS.get(str(outs[0].dtype)) if len(outs) == 1 and isinstance(outs[0], np.ndarray) else None
        if kind.startswith("Cast") and bits and ins[0].dtype.kind == "f" and ins[0].shape == outs[0].shape:
            low = 0 if str(outs[0].dtype).startswith("u") else -(1 << bits - 1)
            whole = np.trunc(ins[0].astype(np.float64))
            inside = (whole >= low) & (whole < low + (1 << bits))
            assert (outs[0].astype(np.float64)[inside] == whole[inside]).all(), test.name
            outs = [(((whole.astype(np.int64) - low) % (1 << bits)) + low).astype(outs[0].dtype)]
        data.append((ins, outs))
    return replace(test, data=tuple(data))


def _test(case: Any, kind: str) -> Test:
    if case.url and case.url.startswith("onnx/backend/test/data/light/"):
        return _light(case)
    if case.model is not None and case.data_sets is not None:
        data = tuple(([_array(v) for v in i], [_array(v) for v in o]) for i, o in case.data_sets)
        return Test(case.name, kind, case.model, None, data, case.rtol, case.atol)
    folder = Path(case.model_dir)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    sets = []
    for place in sorted(folder.glob("test_data_set*")):
        ins = [
            _load(place / f"input_{k}.pb", model.graph.input[k].type)
            for k in range(len(list(place.glob("input_*.pb"))))
        ]
        outs = [
            _load(place / f"output_{k}.pb", model.graph.output[k].type)
            for k in range(len(list(place.glob("output_*.pb"))))
        ]
        sets.append((ins, outs))
    return Test(
        case.name, kind, model, folder if _external(model) else None, tuple(sets), case.rtol, case.atol
    )


def _external(model: onnx.ModelProto) -> bool:
    return any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer)


def _light(case: Any) -> Test:
    """A model of the light kind: weights without values, the suite's dummy input, the output that comes with
    it.
    """
    path = Path(onnx.__file__).parent.parent / case.url
    model = onnx.load(str(path))
    known = {i.name for i in model.graph.initializer}
    inputs = [
        Runner.generate_dummy_data(x, seed=0, name=case.model_name, random=False)
        for x in model.graph.input
        if x.name not in known
    ]
    files = [path.with_name(f"{path.stem}_output_{k}.pb") for k in range(len(model.graph.output))]
    outputs = (
        [_load(f, o.type) for f, o in zip(files, model.graph.output, strict=True)]
        if all(f.exists() for f in files)
        else []
    )
    return Test(case.name, "light", model, None, ((inputs, outputs),), case.rtol, case.atol)


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return [_array(v) for v in value] if isinstance(value, list) else value


def _load(path: Path, kind: onnx.TypeProto) -> Any:
    data = path.read_bytes()
    which = kind.WhichOneof("value")
    if which == "sequence_type":
        return list(onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
    if which == "optional_type":
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def cases_of(test: Test) -> list[Case]:
    """One case for each data set. Sequences and optionals are given item by item, their lengths with
    --dim.
    """
    initial = {t.name for t in test.model.graph.initializer}
    formals = [i for i in test.model.graph.input if i.name not in initial]
    result = []
    for inputs, _ in test.data:
        arrays: list[np.ndarray] = []
        dims: dict[str, int] = {}
        for formal, value in zip(formals, inputs, strict=False):
            arrays += _flat(formal, value, dims)
        result.append(Case(test.name, test.model, tuple(arrays), dims, test.folder))
    return result


def _flat(formal: onnx.ValueInfoProto, value: Any, dims: dict[str, int]) -> Iterator[np.ndarray]:
    if value is None or isinstance(value, list):
        items = value or []
        dims[f"{formal.name}:length"] = len(items)
        for k, item in enumerate(items):
            dims.update({f"{formal.name}:{k}:{d}": n for d, n in enumerate(np.shape(item))})
            yield np.asarray(item)
        return
    if formal.type.WhichOneof("value") == "optional_type":
        dims[f"{formal.name}:length"] = 1
    array = np.asarray(value)
    if formal.type.WhichOneof("value") == "tensor_type":
        for d, (declared, n) in enumerate(zip(formal.type.tensor_type.shape.dim, array.shape, strict=False)):
            if not declared.HasField("dim_value"):
                dims[f"{formal.name}:{d}"] = n
    yield array


def bound(case: Case, widest: int, floats: bool) -> Case | None:
    """The case with small inputs as constants: shapes, axes, sizes that the suite feeds at run time
    (--constant).
    """
    initial = {t.name for t in case.model.graph.initializer}
    given = iter(case.inputs)
    rest: list[np.ndarray] = []
    constants: dict[str, tuple[float, ...]] = {}
    for formal in case.model.graph.input:
        if formal.name in initial:
            continue
        if formal.type.WhichOneof("value") != "tensor_type":
            rest += [next(given) for _ in range(case.dims.get(f"{formal.name}:length", 0))]
            continue
        array = next(given)
        shape_like = array.dtype.kind in "ib" or (floats and array.dtype.kind in "fV")
        if shape_like and array.ndim <= 1 and array.size <= widest:
            constants[formal.name] = tuple(
                array.reshape(-1).astype(object if array.dtype.kind in "ib" else float)
            )
        else:
            rest.append(array)
    return replace(case, constants=constants, inputs=tuple(rest)) if constants else None


def judge(test: Test, expected: Sequence[Any], outcome: Outcome) -> Result:
    """Whether a data set's outputs are those of the suite."""
    if outcome.status != "ok":
        return Result(outcome.status, outcome.message)
    wanted = [
        np.asarray(w) for e in expected for w in (e if isinstance(e, list) else [] if e is None else [e])
    ]
    if len(wanted) != len(outcome.outputs) and wanted:
        return Result("mismatch", f"{len(outcome.outputs)} outputs, {len(wanted)} expected")
    for k, (want, got) in enumerate(zip(wanted, outcome.outputs, strict=False)):
        want = want.astype(object) if want.dtype.kind in "SU" else want
        if want.dtype != got.dtype or want.shape != got.shape:
            return Result(
                "mismatch", f"output {k} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
            )
        try:
            if test.random:
                assert set(np.unique(got)) <= {0, 1}, f"drawn: {np.unique(got)}"
            elif want.dtype.kind == "O":
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(
                    got.astype(np.float64), want.astype(np.float64), rtol=test.rtol, atol=test.atol
                )
        except AssertionError as error:
            return Result("mismatch", f"output {k}: " + " ".join(str(error).split())[:300])
    return Result("pass", "a draw: type, shape and possible values are compared" if test.random else "")


def run_tests(
    tests: Sequence[Test],
    target: str = "c",
    sanitize: bool = True,
    flags: Sequence[str] = ("-O1",),
    board: str | None = None,
) -> dict[str, Result]:
    """The result of each case by name."""
    flat = [
        (t, case, expected) for t in tests for case, (_, expected) in zip(cases_of(t), t.data, strict=True)
    ]
    cases = [case for _, case, _ in flat]
    outcomes = run_cases(cases, target, sanitize=sanitize, flags=flags, board=board)
    how = [""] * len(cases)
    for widest, floats in ((16, False), (16, True)):
        again = {
            k: bound(cases[k], widest, floats)
            for k, o in enumerate(outcomes)
            if o.status == "refused" and "[E203]" in o.message
        }
        retried = {k: case for k, case in again.items() if case is not None}
        for k, outcome in zip(
            retried,
            run_cases(list(retried.values()), target, sanitize=sanitize, flags=flags, board=board),
            strict=True,
        ):
            if outcome.status != "refused":
                outcomes[k], how[k] = outcome, "shape operands are constants"
            else:
                outcomes[k] = outcome
    results: dict[str, Result] = {}
    for (test, _, expected), outcome, note in zip(flat, outcomes, how, strict=True):
        verdict = judge(test, expected, outcome)
        verdict = replace(verdict, message=note) if verdict.status == "pass" and note else verdict
        if results.get(test.name, Result("pass")).status == "pass":
            results[test.name] = verdict
    return results


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-k", default="*", metavar="PATTERN", help="shell pattern of case names")
    parser.add_argument("--target", default="c")
    parser.add_argument("--results", type=Path, help="write all results as JSON")
    parser.add_argument("--no-sanitize", action="store_true")
    parser.add_argument("-v", action="store_true", help="print what does not pass")
    options = parser.parse_args()
    start = time.time()
    tests = load_tests(options.k)
    flags = ("-O1", "-march=native") if options.target == "host" else ("-O1",)
    results = run_tests(tests, options.target, not options.no_sanitize, flags)
    counts = Counter(r.status for r in results.values())
    if options.v:
        for test in tests:
            r = results[test.name]
            if r.status != "pass":
                print(f"{test.name}: {r.status}: {r.message.splitlines()[0][:250] if r.message else ''}")
    print(f"{counts['pass']} of {len(results)} pass in {elapsed(start)}; {dict(counts)}")
    if options.results:
        rows = {
            t.name: {
                "kind": t.kind,
                "operators": t.operators,
                "types": t.types,
                "status": results[t.name].status,
                "message": results[t.name].message[:500],
            }
            for t in tests
        }
        options.results.write_text(
            json.dumps(
                {"onnx": onnx.__version__, "target": options.target, "cases": rows}, indent=1, sort_keys=True
            )
            + "\n"
        )
    return 0 if counts["pass"] == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
