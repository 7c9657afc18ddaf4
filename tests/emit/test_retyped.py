"""Results that lie over an input of another type have a type that may alias (docs/compilers.md)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from aot_model.c.function import Aliasing, CFunction, alike
from aot_model.installation import include_dir
from aot_model.ir.program import Access, Function, Param
from aot_model.ir.types import DType

TYPES = sorted({t.c_type for t in DType})


def test_which_are_alike() -> None:
    assert alike("int16_t", "uint16_t")
    assert alike("int8_t", "float")
    assert alike("float", "float")
    assert not alike("int16_t", "float")
    assert not alike("bool", "int32_t")
    assert not alike("int32_t", "int64_t")


@pytest.mark.parametrize("kind", ["int16_t", "float", "bool"])
def test_signature(kind: str) -> None:
    dtypes = {"int16_t": DType.INT16, "float": DType.FLOAT32, "bool": DType.BOOL}
    params = (Param("x", DType.INT32, Access.READ), Param("y", dtypes[kind], Access.WRITE))
    aliasing = Aliasing((), frozenset({0, 1}), frozenset({1}))
    f = CFunction("f", Function("f", params, "y[0] = x[0];"), aliasing, [])
    assert f"const int32_t *x, aot_model_any_{kind} *y" in f.signature()
    assert [f.element(k) for k in range(2)] == ["int32_t", f"aot_model_any_{kind}"]


def test_all_of_them_are_declared() -> None:
    """Types that are not alike have a name in the header that may alias."""
    text = Path(include_dir(), "aot_model", "attributes.h").read_text()
    needed = {b for a, b in product(TYPES, repeat=2) if not alike(a, b)}
    assert len(needed) >= 8
    assert not {t for t in needed if f"AOT_MODEL_ANY({t});" not in text}
