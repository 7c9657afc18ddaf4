"""Sums of several tensors of bytes that are rounded: the bytes that floats give, of numpy's, ties and all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.c.rounding import Rounding
from aot_model.c.whole_sums import whole_sum
from aot_model.ir.expr import Call, Const, call, cast, const, leaf
from aot_model.ir.types import DType
from batch import Case, for_any_processor, run_cases
from onnx_models import model, tensor

COUNT = 4099
SCALES = {
    "decimal": (0.0235, 0.0311, 0.0172, 0.027, 0.05),
    "of any size": (0.023517364, 3.1140182e-4, 0.017263913, 0.7703712, 0.15531247),
    "powers of two": (0.25, 0.125, 0.5, 0.25, 0.5),
    "results that are fine": (0.9, 0.0311, 0.7, 0.1, 0.003),
}
ZEROS = ((-128, 127, -128, 127, 127), (5, -7, 0, 33, -128), (0, 0, 0, 0, 0))


def case(
    kind: str, terms: int, scales: str, zeros: tuple[int, ...], unsigned: bool
) -> tuple[Case, np.ndarray]:
    """A network, and what float32 gives."""
    dtype, number = (np.uint8, TensorProto.UINT8) if unsigned else (np.int8, TensorProto.INT8)
    limits, rng = np.iinfo(dtype), np.random.default_rng(terms)
    by = np.float32(SCALES[scales])
    places = [z + 128 * unsigned for z in zeros]
    data = [rng.integers(limits.min, limits.max + 1, COUNT).astype(dtype) for _ in range(terms)]
    for k, x in enumerate(data):  # all together at the ends of their range
        x[: 2**terms] = np.where(np.arange(2**terms) >> k & 1, limits.max, limits.min)
    constants: dict[str, np.ndarray] = {"s": by[-1], "z": np.asarray(places[-1], dtype)}
    nodes, total = [], None
    for k in range(terms):
        constants |= {f"s{k}": by[k], f"z{k}": np.asarray(places[k], dtype)}
        nodes.append(helper.make_node("DequantizeLinear", [f"x{k}", f"s{k}", f"z{k}"], [f"r{k}"]))
        real = (data[k].astype(np.float32) - np.float32(places[k])) * by[k]
        total = real if total is None else total - real if kind == "Sub" else total + real
    assert total is not None
    if kind == "Sum":
        nodes.append(helper.make_node("Sum", [f"r{k}" for k in range(terms)], [f"t{terms - 1}"]))
    else:
        for k in range(1, terms):
            before = f"t{k - 1}" if k > 1 else "r0"
            nodes.append(helper.make_node(kind, [before, f"r{k}"], [f"t{k}"]))
    nodes.append(helper.make_node("QuantizeLinear", [f"t{terms - 1}", "s", "z"], ["y"]))
    inputs = [tensor(f"x{k}", [COUNT], number) for k in range(terms)]
    wanted = np.clip(np.rint(total / by[-1]) + places[-1], limits.min, limits.max).astype(dtype)
    made = model(nodes, inputs, [tensor("y", [COUNT], number)], constants)
    return Case(f"{kind}{terms}", made, tuple(data)), wanted


@pytest.mark.parametrize("board", [None, "m4"])
def test_the_bytes_are_those_of_floats(board: str | None) -> None:
    kinds = [("Sum", 3), ("Sum", 4), ("Add", 3), ("Sub", 4)]
    cases, wanted = zip(
        *(case(*k, s, z, u) for k in kinds for s in SCALES for z in ZEROS for u in (False, True)), strict=True
    )
    make = for_any_processor if board is None else None
    outcomes = run_cases(cases, "cortex-m4", board=board, sanitize=board is None, make=make, per_unit=12)
    assert {(o.status, o.message) for o in outcomes} == {("ok", "")}
    texts = [o.made.source for o in outcomes if o.made is not None]
    assert sum("aot_model_rint_sum(" in text for text in texts) > len(cases) / 2
    for outcome, expected in zip(outcomes, wanted, strict=True):
        assert np.array_equal(outcome.outputs[0], expected)


def test_portable_code_has_floats_which_are_vectors() -> None:
    (outcome,) = run_cases([case("Sum", 3, "decimal", ZEROS[0], False)[0]], "c")
    assert outcome.made is not None and "rint_sum" not in outcome.made.source


@pytest.mark.parametrize("seed", range(20))
def test_what_decides_is_further_from_a_half_than_roundings_reach(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, by = int(rng.integers(2, 7)), np.float32(rng.uniform(0.01, 0.2))
    scales, zeros = rng.uniform(0.001, 0.3, count).astype(np.float32), rng.integers(-128, 128, count)
    values = [leaf(f"x{k}", DType.INT32, -128, 127) for k in range(count)]
    real = None
    for x, scale, zero in zip(values, scales, zeros, strict=True):
        exact = cast(call("sub", x, const(int(zero))), DType.FLOAT32)
        term = call("mul", exact, const(float(scale), DType.FLOAT32))
        real = term if real is None else call("add", real, term)
    assert real is not None
    form = whole_sum(Rounding("quantise_rint", real, float(by), (1.0, 0.0), 3, -128, 127))
    assert form is not None
    offset, factors = form.total, list[int]()
    while isinstance(offset, Call):
        product, offset = offset.args
        assert isinstance(product, Call) and isinstance(product.args[1], Const)
        factors.insert(0, int(product.args[1].value))
    assert isinstance(offset, Const)
    reach = Fraction(0)
    for _ in range(2000):
        x = [int(v) for v in rng.integers(-128, 128, count)]
        total = sum(v * m for v, m in zip(x, factors, strict=True)) + int(offset.value)
        parts = [
            (v - int(z)) * Fraction(float(s)) / Fraction(float(by))
            for v, z, s in zip(x, zeros, scales, strict=True)
        ]
        exactly, roundings = sum(parts) + 3 + Fraction(1, 2), (count + 1) * sum(map(abs, parts)) / 2**24
        reach = max(reach, abs(total))
        if (total << 32 - form.shift) % 2**32 >= form.beside:
            whole = total >> form.shift
            assert whole < exactly - roundings and exactly + roundings < whole + 1
    assert reach < 1 << 31
