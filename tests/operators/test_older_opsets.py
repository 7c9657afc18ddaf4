"""Every operator in the forms that older opsets have: attributes that became inputs, other defaults, other
meanings of the same words. Beside ONNX Runtime, which has a kernel for most; beside the reference evaluator
where it has none, which takes most for their newest form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
import onnxruntime
import pytest
from onnx import TensorProto, helper
from oracles import ONNX_RUNTIME, expected
from rows import Row, label_of, last_version, registry_rows
from verdict import ERRS, verdict

from aot_model.errors import CompileError
from aot_model.ir.operator import Sample
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

Schema = onnx.defs.OpSchema
FORMS = 4
"""Samples of an operator in each of its forms."""
BECAME = {"k": "K", "value": "constant_value"}
"""Attributes whose input has another name."""
WITHOUT_MEANING: dict[str, Any] = {"consumed_inputs": [0], "is_test": 1, "output_sequence": 1, "spatial": 1}
"""What files of old opsets say besides."""
NOT_COMPARED = {
    ("AveragePool", 6): "the evaluator counts padding, which that opset excludes",
    ("Dropout", 11): "ONNX Runtime gives a mask of false, the evaluator one of true",
}
ORACLE = {("Resize", 10): ONNX_RUNTIME}
"""Where the other takes the meaning of the newest form."""
REFUSED = {
    ("PRelu", 5): "the samples' slopes are not those of channels",
    ("ai.onnx.ml.LabelEncoder", 1): "the samples' keys became attributes of other names",
}


@cache
def _schemas(domain: str, name: str) -> list[Schema]:
    """Oldest first, up to the one that the other tests are about."""
    newest = last_version(domain, name)
    history = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == (domain, name)]
    return sorted((s for s in history if s.since_version <= newest), key=lambda s: int(s.since_version))


def _form(schema: Schema) -> tuple[Any, ...]:
    """What a file of the operator may look like."""
    attributes = schema.attributes.items()
    return (
        {n: (str(a.type), a.required, a.default_value.SerializeToString()) for n, a in attributes},
        [(i.name, i.option) for i in schema.inputs],
        len(schema.outputs),
    )


def _older(row: Row, schema: Schema, newest: Schema) -> Sample | None:
    """A sample in the words of an older schema; None where it has none for it."""
    sample = row.sample
    attributes = {k: v for k, v in WITHOUT_MEANING.items() if k in schema.attributes}
    attributes |= {k: v for k, v in sample.attributes.items() if k in schema.attributes}
    names = [i.name for i in newest.inputs]
    for name, attribute in schema.attributes.items():
        at = names.index(BECAME.get(name, name)) if BECAME.get(name, name) in names else len(names)
        if at < len(sample.inputs) and sample.inputs[at] is not None and at in sample.constants:
            values = np.ravel(sample.inputs[at]).tolist()
            if not values:
                return None
            several = attribute.type in (Schema.AttrType.INTS, Schema.AttrType.FLOATS)
            attributes[name] = values if several else values[0]
    if any(a.required and n not in attributes for n, a in schema.attributes.items()):
        return None
    places: list[int | None] = list(range(len(sample.inputs)))
    if not schema.inputs or schema.inputs[-1].option != Schema.FormalParameterOption.Variadic:
        there = {n: k for k, n in enumerate(names[: len(sample.inputs)])}
        places = [there.get(i.name) for i in schema.inputs]
    inputs = [None if k is None else sample.inputs[k] for k in places]
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(inputs) < schema.min_input or sample.outputs > schema.max_output:
        return None
    if not all(_fits(x, schema.inputs[min(k, len(schema.inputs) - 1)]) for k, x in enumerate(inputs)):
        return None
    constants = frozenset(n for n, k in enumerate(places) if k in sample.constants)
    return replace(sample, attributes=attributes, inputs=tuple(inputs), constants=constants)


def _fits(x: Any, formal: Schema.FormalParameter) -> bool:
    if x is None:
        return bool(formal.option != Schema.FormalParameterOption.Single)
    code = helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype)
    return f"tensor({TensorProto.DataType.Name(code).lower()})" in formal.types


def older_rows() -> Iterator[Row]:
    """Of versions with other words or defaults than the one after."""
    taken: Counter[tuple[str, int]] = Counter()
    for row in registry_rows():
        if not row.in_onnx or row.has_bodies or not onnx.defs.has(row.kind.name, row.kind.domain):
            continue
        schemas = _schemas(row.kind.domain, row.kind.name)
        for schema, after in pairwise(schemas):
            version = after.since_version - 1
            key = label_of(row.kind), version
            if schema.deprecated or _form(schema) == _form(after) or taken[key] >= FORMS:
                continue
            sample = _older(row, schema, schemas[-1])
            if sample is not None:
                taken[key] += 1
                yield Row(f"{row.label} of opset {version}", row.kind, row.number, sample, version)


def test_older_forms() -> None:
    rows = [row for row in older_rows() if (label_of(row.kind), row.version) not in NOT_COMPARED]
    outcomes = run_cases([row.case for row in rows], "c", flags=("-O0",), sanitize=False)
    wrong, refused, compared = [], set(), set()
    for row, outcome in zip(rows, outcomes, strict=True):
        key = label_of(row.kind), row.version
        if outcome.status == "refused":
            refused.add(key)
            continue
        with np.errstate(all="ignore"):
            known = expected(row)
        trusted = [o for o in known.outputs if (o, label_of(row.kind)) not in ERRS]
        oracle = ORACLE.get(key, ONNX_RUNTIME if ONNX_RUNTIME in trusted else (*trusted, "")[0])
        if oracle not in known.outputs:
            continue
        known = replace(known, outputs={oracle: known.outputs[oracle]})
        compared.add(key)
        problem = verdict(row, outcome, known)
        wrong += [f"{row.label}: {problem}"] if problem else []
    assert not wrong, "\n".join(wrong)
    assert refused == set(REFUSED)
    assert len(compared) > 80, len(compared)


# --- forms that no sample of the newest one has -------------------------------------------------------------

RNG = np.random.default_rng(11)
IMAGE = np.arange(1, 41, dtype=np.float32).reshape(1, 2, 4, 5)
UNEVEN = np.asarray([np.inf, -np.inf, np.finfo(np.float32).max, -3, 0, 2], np.float32)


def _node(opset: int, operator: str, x: np.ndarray, *constants: Any, **attributes: Any) -> onnx.ModelProto:
    held = {f"c{k}": np.asarray(c) for k, c in enumerate(constants)}
    node = helper.make_node(operator, ["x", *held], ["y"], name="node", **attributes)
    return model([node], [tensor("x", x.shape)], [onnx.ValueInfoProto(name="y")], held, opset=opset)


def _ours(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (outcome,) = run_cases([Case("old", proto, (x,))], "c", flags=("-O0",), sanitize=False)
    assert outcome.status == "ok", outcome.message
    return np.asarray(outcome.outputs[0])


def _theirs(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


def _by_onnx_runtime() -> dict[str, tuple[onnx.ModelProto, np.ndarray]]:
    found = {}
    for mode in ("nearest", "linear"):
        for height, width in ((0.6, 0.6), (0.75, 2.5), (3, 0.4), (0.5, 1), (1, 1), (2, 1.5)):
            scales = [1.0, 1.0, height, width]
            given = np.asarray(scales, np.float32)
            found[f"Resize {mode} {scales}"] = _node(10, "Resize", IMAGE, given, mode=mode), IMAGE
            if min(scales) >= 1:
                found[f"Upsample 9 {mode} {scales}"] = _node(9, "Upsample", IMAGE, given, mode=mode), IMAGE
                found[f"Upsample 7 {mode} {scales}"] = (
                    _node(7, "Upsample", IMAGE, mode=mode, scales=scales),
                    IMAGE,
                )
    for opset in (17, 19):  # by default along axis 1
        signal = IMAGE.reshape(1, 4, 5, 2)
        found[f"DFT {opset}"] = _node(opset, "DFT", signal), signal
        found[f"DFT {opset} of 3"] = _node(opset, "DFT", signal, np.asarray(3), axis=2), signal
    found["MeanVariance"] = _node(8, "MeanVarianceNormalization", IMAGE), IMAGE
    found["Dropout 11"] = _node(11, "Dropout", IMAGE, ratio=0.5), IMAGE
    found["Selu 6"] = _node(6, "Selu", UNEVEN[3:]), UNEVEN[3:]
    for opset, limits in ((6, {}), (10, {"min": -1.0}), (9, {"max": 1.0})):
        found[f"Clip {opset} {limits}"] = _node(opset, "Clip", UNEVEN, **limits), UNEVEN
    for across in (0, 1):
        attributes = {"across_channels": across, "normalize_variance": 1}
        found[f"MeanVariance {across}"] = _node(8, "MeanVarianceNormalization", IMAGE, **attributes), IMAGE
    for opset in (7, 8):
        each = [RNG.uniform(0.5, 2, IMAGE.shape[1:]).astype(np.float32) for _ in range(4)]
        found[f"BatchNormalization {opset} of elements"] = (
            _node(opset, "BatchNormalization", IMAGE, *each, spatial=0),
            IMAGE,
        )
    return found


def test_old_forms_beside_onnx_runtime() -> None:
    for label, (proto, x) in _by_onnx_runtime().items():
        np.testing.assert_allclose(_ours(proto, x), _theirs(proto, x), rtol=1e-5, atol=1e-5, err_msg=label)


def test_old_forms_that_no_runtime_has() -> None:
    """By what the changelog of ONNX says of them."""
    x = RNG.uniform(-1, 1, (2, 3)).astype(np.float32)
    tiles = [np.asarray([n], np.float32) for n in (3, -1)]
    np.testing.assert_array_equal(_ours(_node(5, "Tile", x, *tiles), x), np.tile(x, (1, 3)))
    grown = _ours(_node(6, "Upsample", IMAGE, height_scale=2.0, width_scale=3.0), IMAGE)
    np.testing.assert_array_equal(grown, IMAGE.repeat(2, 2).repeat(3, 3))
    for to in ("INT32", "int32"):
        cast = _ours(_node(5, "Cast", 9 * x, to=to), 9 * x)
        np.testing.assert_array_equal(cast, (9 * x).astype(np.int32))
    np.testing.assert_array_equal(_ours(_node(5, "Clip", UNEVEN), UNEVEN), UNEVEN)
    low = np.full((1, 4), -1000, np.float32)
    np.testing.assert_allclose(_ours(_node(5, "Selu", low), low), -1.6732 * 1.0507 + 0 * low, rtol=2e-7)
    for operator, combined in (("Add", np.add), ("Sub", np.subtract), ("Div", np.divide), ("Pow", np.power)):
        for axis, shape in ((1, (2,)), (-3, (2,)), (1, (2, 4)), (0, (1, 2)), (2, (4, 5)), (None, (5,))):
            at = {} if axis is None else {"axis": axis}
            where = (1,) * ((axis or 0) % 4) + shape + (1,) * (4 - (axis or 0) % 4 - len(shape))
            second = RNG.uniform(0.5, 2, shape).astype(np.float32)
            want = combined(IMAGE, second.reshape(shape if axis is None else where))
            got = _ours(_node(6, operator, IMAGE, second, broadcast=1, **at), IMAGE)
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{operator} {axis} {shape}")
    second = np.asarray([3, -1], np.float32)
    nodes = [helper.make_node("Mul", ["x", "b"], ["y"], broadcast=1, axis=1)]
    inputs = [tensor("x", IMAGE.shape), tensor("b", (2,))]
    both = model(nodes, inputs, [tensor("y", IMAGE.shape)], opset=6)
    (outcome,) = run_cases([Case("old", both, (IMAGE, second))], "c", flags=("-O0",), sanitize=False)
    np.testing.assert_array_equal(outcome.outputs[0], IMAGE * second.reshape(2, 1, 1))
    joined = _ours(_node(3, "Concat", x, x), x)
    np.testing.assert_array_equal(joined, np.concatenate([x, x], 1))
    matrix, row = RNG.uniform(-1, 1, (3, 4)).astype(np.float32), np.float32([1, 2, 3, 4])
    gemm = _ours(_node(6, "Gemm", x, matrix, row, broadcast=1, beta=0.5), x)
    np.testing.assert_allclose(gemm, x @ matrix + row / 2, rtol=1e-5)
    norm = _ours(_node(1, "GlobalLpPool", IMAGE, p=3.0), IMAGE).ravel()
    np.testing.assert_allclose(norm, (IMAGE.astype(np.float64) ** 3).sum((0, 2, 3)) ** (1 / 3), rtol=1e-6)


@pytest.mark.parametrize(
    ("proto", "said"),
    [
        (_node(9, "Upsample", IMAGE, np.asarray([1, 1, 0.5, 2], np.float32)), "a scale is less than 1"),
        (_node(8, "MeanVarianceNormalization", IMAGE, normalize_variance=0), "normalize_variance=0"),
        (_node(1, "LpPool", IMAGE, p=2.5, kernel_shape=[2, 2]), "attribute 'p' is 2.5"),
        (
            _node(
                10, "Resize", IMAGE, np.ones(4, np.float32), coordinate_transformation_mode="align_corners"
            ),
            "'coordinate_transformation_mode' came with opset 11",
        ),
        (
            _node(9, "Upsample", IMAGE, np.ones(4, np.float32), nearest_mode="ceil"),
            "'nearest_mode' came with opset 11",
        ),
        (_node(9, "Slice", IMAGE, axes=[1]), "starts or ends is missing"),
        (_node(5, "Cast", IMAGE, to="NUMBER"), "names the element type NUMBER"),
        (_node(5, "Tile", IMAGE, *[np.asarray([1, 2], np.float32)] * 2), "tiles and axis are not constant"),
        (
            _node(8, "BatchNormalization", IMAGE, *[np.ones((1, 2, 1, 1), np.float32)] * 4),
            "no number for each channel",
        ),
        (_node(17, "BatchNormalization", IMAGE, *[np.ones(5, np.float32)] * 4), "no number for each channel"),
    ],
)
def test_old_forms_that_are_refused(proto: onnx.ModelProto, said: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=said):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
