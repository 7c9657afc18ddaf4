"""What a target compiles by itself, and the constants and scratch memory of its functions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import (
    UNIT,
    X,
    Y,
    compiled,
    elementwise,
    install,
    lower,
    outputs,
    pair,
    raising,
    refused,
    unit,
)

from aot_model.emit.view import Options
from aot_model.ir.pattern import constant as any_constant
from aot_model.ir.pattern import op, value
from aot_model.ir.values import Value, constant
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Blob, Claim, Source
from aot_model.partition.region import Region
from onnx_models import model, tensor

node = helper.make_node


def as_source(region: Region) -> Source:
    text = f"""static void {region.name}_all(const float *x, const float *y, float *z, uint8_t *scratch)
{{
    memcpy(scratch, x, 32);
    for (int k = 0; k < 8; ++k) {{
        z[k] = x[k] + y[k];
    }}
}}"""
    return Source(text, f"{region.name}_all", includes=("string.h",), scratch=32, align=8)


def test_a_region_as_c_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(lower=None, compile_region=as_source, patterns=(elementwise("Add"),)))
    result = compiled(pair("Add", "Tanh", "Add"), tmp_path, "unit,c")
    np.testing.assert_allclose(outputs(result, tmp_path, X, Y)[0], np.tanh(X + Y) + Y, rtol=1e-5)
    assert result.view.workspace_size == 64, "the scratch is planned beside the value between the regions"


INTERPRETER = """#include <stddef.h>
#include <stdint.h>
#include <string.h>
static inline int32_t interpret(const uint8_t *blob, uint32_t size, const void *const *inputs, void *const *outputs, uint8_t *scratch)
{
    const float *const x = (const float *)inputs[0], *const y = (const float *)inputs[1];
    float *const z = (float *)outputs[0];
    float factor;
    if (size != 4u || scratch == NULL || ((uintptr_t)blob & 15u) != 0u) { return 9; }
    memcpy(&factor, blob, 4);
    for (int k = 0; k < 8; ++k) { z[k] = x[k] + factor * y[k]; }
    return 0;
}
"""  # noqa: E501


@pytest.mark.parametrize("params", ["linked", "external"])
def test_a_region_as_bytes_and_their_interpreter(
    params: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serialise(region: Region) -> Blob:
        return Blob(np.float32(3).tobytes(), "interpret", "interpreter.h", scratch=16)

    install(monkeypatch, unit(lower=None, compile_region=serialise, patterns=(elementwise("Add"),)))
    result = compiled(pair("Add"), tmp_path, "unit,c", library=Options(params=params))
    if params == "external":
        # what is interpreted is program: no file may replace it
        assert np.float32(3).tobytes() not in result.binaries["m.params"]
        assert "0, 0, 64, 64" in result.texts["m.c"]
        return
    np.testing.assert_array_equal(
        outputs(result, tmp_path, X, Y, texts={"interpreter.h": INTERPRETER})[0], X + 3 * Y
    )


@pytest.mark.parametrize(("hook", "said"), [
    (lambda region: None, "compile_region of region unit_0 (add0): returned None"),
    (lambda region: b"", "returned a bytes, not a Source or a Blob"),
    (raising, "compile_region of region unit_0 (add0) failed: ValueError: out of order"),
    (lambda region: Blob(b"1", "inter pret", "i.h"), "'inter pret' is not a C identifier"),
    (lambda region: Source("", "f"), "text does not define 'f'"),
    (lambda region: Blob(b"", "interpret", "i.h"), "the blob is empty"),
    (lambda region: Blob(b"1", "interpret", "i.h", scratch=-1), "-1 is not a number of bytes"),
    (lambda region: Source("void f(void);", "f", align=3), "3 is not an alignment"),
])  # fmt: skip
def test_wrong_artifacts(hook: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(lower=None, compile_region=hook, patterns=(elementwise("Add"),)))
    assert said in refused(pair("Add"), tmp_path)


def biased() -> onnx.ModelProto:
    return model(
        [node("Add", ["x", "b"], ["z"], name="add")], [tensor("x", [2, 4])], [tensor("z", [2, 4])], {"b": Y}
    )


BIASED = (Claim("add", op("Add", value("x"), any_constant("b"))),)


def test_constants_are_packed_and_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows of equal numbers become two numbers."""

    def pack(region: Region) -> Mapping[Value, Value | None]:
        (old,) = region.constant_values()
        assert old.data is not None
        return {old: constant("packed_bias", old.data[:, 0].astype(np.float64))}

    def add_rows(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        b = build.constant(m.value("b"))
        body = "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + (float)b[k / 4];\n    }"
        build.call(
            "add_rows",
            body,
            [Argument("x", m.value("x")), Argument("b", b), written("y", m.result.outputs[0])],
        )

    install(monkeypatch, unit(patterns=BIASED, lower=add_rows, update_constants=pack))
    result = compiled(biased(), tmp_path, "unit,c")
    assert "double m_c_packed_bias[2]" in result.texts["m.c"] and result.view.constant_bytes == 16
    np.testing.assert_array_equal(outputs(result, tmp_path, X)[0], X + Y)


@pytest.mark.parametrize(("hook", "said"), [
    (raising, "update_constants of region unit_0 failed: ValueError: out of order"),
    (lambda region: 5, "update_constants of region unit_0 failed: TypeError"),
    (lambda region: {region.graph.inputs[0]: None}, "replaces 'x', which is not a constant of the region"),
    (lambda region: {region.constant_values()[0]: region.graph.inputs[0]},
     "for 'b', which is not a constant"),
    (lambda region: {region.constant_values()[0]: None}, "constant 'b' was taken over by update_constants"),
])  # fmt: skip
def test_wrong_constants(hook: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def uses(region: Region, build: RegionSite) -> None:
        build.call(
            "f", "", [Argument("b", region.matches[0].value("b")), written("y", region.graph.outputs[0])]
        )

    install(monkeypatch, unit(patterns=BIASED, lower=uses, update_constants=hook))
    assert said in refused(biased(), tmp_path)


def test_external_parameters_are_those_that_the_target_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def packed(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        data = m.value("b").data
        assert data is not None
        body = "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + b[7 - k];\n    }"
        build.call(
            "add",
            body,
            [
                Argument("x", m.value("x")),
                Argument("b", Packed("b", data.reshape(-1)[::-1], 64)),
                written("y", m.result.outputs[0]),
            ],
            fails=False,
        )

    install(monkeypatch, unit(patterns=BIASED, lower=packed))
    result = compiled(biased(), tmp_path, "unit,c", library=Options(params="external"))
    assert Y.reshape(-1)[::-1].tobytes() in result.binaries["m.params"]
    assert json.loads(result.texts["m.json"])["parameters"]["align"] == 64


def test_scratch_is_aligned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lower_aligned(region: Region, build: RegionSite) -> None:
        m = region.matches[0]
        body = (
            "    if (((uintptr_t)s & 127u) != 0u) {\n        return 5;\n    }\n    memcpy(s, x, 32);\n   "
            " memcpy(y, s, 32);\n    return 0;"
        )
        build.call(
            "copy",
            body,
            [
                Argument("x", region.graph.inputs[0]),
                Argument("s", Scratch("s", 32, 128, "uint8_t")),
                written("y", m.result.outputs[0]),
            ],
            includes=["string.h"],
            fails=True,
        )

    install(monkeypatch, unit(patterns=(elementwise("Relu"),), lower=lower_aligned))
    np.testing.assert_array_equal(outputs(compiled(pair("Relu"), tmp_path, "unit,c"), tmp_path, X, Y)[0], X)


def test_lower_of_the_unit_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target derives from another and takes its hooks."""
    from aot_model.kernels.target import Target

    install(monkeypatch, UNIT, Target("unit2", "the next generation", UNIT))
    assert lower is not None
    result = compiled(pair("Add"), tmp_path, "unit2,elements=8,c")
    assert result.assignments[0].target == "unit2"
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y)[0], X + Y)
