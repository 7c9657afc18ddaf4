"""Attributes that a model leaves out have the values that the standard says."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

import onnx
import onnx.defs
import pytest
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from rows import RUNTIME, label_of, last_version

from aot_model.ir.operator import Operator
from aot_model.ir.types import DType
from aot_model.ops.quantised_linear import _ONNX_FLOATS, _ONNX_TYPES
from aot_model.ops.registry import OPERATORS

# activations: empty means those of the standard, as many as the directions need
KINDS = [k for _, k in sorted(OPERATORS.items()) if k.domain != "aot" and onnx.defs.has(k.name, k.domain)]


WITHOUT_ONE = {"n_targets": 1}
"""Defaults of attributes for which the standard has none, where they are not that of nothing."""


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, DType):
        return helper.np_dtype_to_tensor_dtype(value.numpy)
    return list(value) if isinstance(value, tuple) else value


def _differences(kind: type[Operator]) -> list[str]:
    schema = onnx.defs.get_schema(kind.name, last_version(kind.domain, kind.name), kind.domain)
    found = []
    for f in fields(kind):  # type: ignore[arg-type]
        attribute = schema.attributes.get(f.name)
        if (
            attribute is None
            or f.name == "activations"
            or attribute.required
            or (f.default is MISSING and f.default_factory is MISSING)
        ):
            continue
        if attribute.default_value.type == 0:
            if f.default not in ((WITHOUT_ONE[f.name],) if f.name in WITHOUT_ONE else (None, (), "", 0)):
                found.append(f"{f.name}: {f.default!r}, and the standard has none")
            continue
        standard = helper.get_attribute_value(attribute.default_value)
        ours = f.default if f.default_factory is MISSING else f.default_factory()
        if _plain(ours) != _plain(standard) and not (
            isinstance(ours, float) and abs(ours - standard) <= 1e-6 * abs(ours)
        ):
            found.append(f"{f.name}: {ours!r}, not {standard!r}")
    return found


@pytest.mark.parametrize("kind", KINDS, ids=label_of)
def test_defaults(kind: type[Operator]) -> None:
    assert not _differences(kind)


MICROSOFT = {s.name: s for s in get_all_operator_schema() if s.domain == RUNTIME}
"""What ONNX Runtime says of its own operators."""


def _plainly(attribute: Any) -> Any:
    value = onnx.AttributeProto.FromString(attribute._default_value)
    return _plain(helper.get_attribute_value(value)) if value.type else None


@pytest.mark.parametrize("name", [n for d, n in sorted(OPERATORS) if d == RUNTIME and n in MICROSOFT])
def test_defaults_of_onnx_runtime(name: str) -> None:
    """What it requires has none here, and what has none there is what is like nothing here."""
    ours = {f.name: f for f in fields(OPERATORS[RUNTIME, name])}  # type: ignore[arg-type]
    for key, attribute in MICROSOFT[name].attributes.items():
        if key not in ours:
            continue  # refused
        default, theirs = ours[key].default, _plainly(attribute)
        assert attribute.required == (default is MISSING), key
        if theirs is not None:
            assert _plain(default) == pytest.approx(theirs), key
        elif not attribute.required:
            assert default in (None, (), "", 0) or default == OF_NOTHING[key], key


OF_NOTHING = {"mask_filter_value": -10000.0, "axis": 1, "scale": 1.0}
"""Values of attributes that say nothing, of which ONNX Runtime's code has the default."""


def test_types_have_the_numbers_of_the_standard() -> None:
    for number, dtype in (*_ONNX_TYPES.items(), *_ONNX_FLOATS.items()):
        name = onnx.TensorProto.DataType.Name(number or onnx.TensorProto.UINT8)
        assert {"FLOAT": "FLOAT32"}.get(name, name) == dtype.name, number


def test_every_type_that_can_be_quantised_to_has_a_number() -> None:
    schema = onnx.defs.get_schema("QuantizeLinear")
    (allowed,) = (c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == "T3")
    ours = {f"tensor({dtype.name.lower()})" for dtype in _ONNX_TYPES.values()}
    assert ours == {t for t in allowed if "float6" not in t}  # which numpy does not have


def test_every_operator_says_all_that_its_base_class_asks_for() -> None:
    assert not [k for k, kind in OPERATORS.items() if inspect.isabstract(kind)]
