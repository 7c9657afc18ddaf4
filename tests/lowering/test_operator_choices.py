"""What operators choose where every choice gives the same numbers, and what they refuse: each by what it
means.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

import red_zones
from aot_model.ir.expr import Call, Expr, const, leaf, walk
from aot_model.ir.index import index_variables
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import _pow
from aot_model.ops.lookup import FindKey
from aot_model.ops.registry import OPERATORS, load_all
from aot_model.ops.resample import Resize, _source
from batch import Case, run_cases
from emit_models import model, node, tensor

load_all()


AXES = {"strides", "pads", "dilations", "kernel_shape", "kernel", "output_padding"}


@pytest.mark.parametrize(
    ("exponent", "products"), [(1.0, 0), (2.0, 1), (3.0, 2), (4.0, 2), (8.0, 3), (0.5, 0), (4.1, 0), (9.0, 0)]
)
def test_small_powers_are_products(exponent: float, products: int) -> None:
    x = leaf("x", DType.FLOAT32)
    calls = [n.op for n in walk(_pow(x, const(exponent, DType.FLOAT32))) if isinstance(n, Call)]
    assert ("pow" in calls) == (exponent in (4.1, 9.0)) and ("sqrt" in calls) == (exponent == 0.5)
    # equal expressions are one: x * x is in both
    assert calls.count("mul") == products


@pytest.mark.parametrize("factor", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("repeated", [True, False])
def test_even_positions_need_no_table(factor: int, count: int, repeated: bool) -> None:
    """Each element several times, or each of so many."""
    places = np.arange(count * factor) // factor if repeated else np.arange(count) * factor
    table = Value("table", TensorType(DType.INT32, places.shape), data=places.astype(np.int32))
    read = []

    def at(value: Value, index: tuple[Expr, ...]) -> Expr:
        read.append(value)
        return const(0)

    _source(at, table, index_variables((len(places),))[0])
    assert not read
    odd = np.append(places, places[-1] + 2 * factor + 1)
    if len(set(np.diff(odd))) > 1:
        _source(at, Value("t", TensorType(DType.INT32, odd.shape), data=odd), index_variables((len(odd),))[0])
        assert read


@pytest.mark.parametrize(("n", "m"), [(4, 8), (8, 4), (5, 3), (7, 1), (1, 3), (6, 6)])
@pytest.mark.parametrize(
    "mode",
    [
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "half_pixel_symmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ],
)
def test_positions_of_a_resize_are_those_of_the_standard(mode: str, n: int, m: int) -> None:
    """Element by element, with sizes that the scale gives exactly and with one that it does not."""
    start, end = 0.25, 0.75
    for scale in (m / n, m / n + 0.02):

        def place(i: int, s: float = scale) -> float:
            length = s * n
            return {
                "half_pixel": (i + 0.5) / s - 0.5,
                "pytorch_half_pixel": (i + 0.5) / s - 0.5 if m > 1 else 0.0,
                "align_corners": i * (n - 1) / (length - 1) if length != 1 else 0.0,
                "asymmetric": i / s,
                "half_pixel_symmetric": n / 2 * (1 - m / length) + (i + 0.5) / s - 0.5,
                "tf_half_pixel_for_nn": (i + 0.5) / s,
                "tf_crop_and_resize": start * (n - 1) + i * (end - start) * (n - 1) / (length - 1)
                                      if length != 1 else 0.5 * (start + end) * (n - 1),
            }[mode]  # fmt: skip

        found = Resize(coordinate_transformation_mode=mode)._positions(n, m, scale, (start, end))
        np.testing.assert_allclose(found, [place(i) for i in range(m)], rtol=1e-6, atol=1e-6)  # of float32


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize(("n", "scale"), [(4, 2.0), (8, 0.5), (9, 1 / 3), (5, 1.0), (6, 1.5)])
def test_taps_that_weigh_nothing_are_left_out(mode: str, n: int, scale: float) -> None:
    """At either end; what remains sums to one."""
    resize = Resize(mode=mode)
    at = resize._positions(n, int(n * scale), scale, (0.0, 1.0))
    positions, weights = resize._taps(at, n, scale)
    assert positions.shape == weights.shape and (weights[:, [0, -1]] != 0).any(axis=0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT16, DType.INT32])
def test_keys_have_the_type_of_the_elements_where_they_fit(dtype: DType) -> None:
    low, high = (int(v) for v in dtype.limits)
    for keys, fits in (((low, high), True), ((low, high + 1), False), ((low - 1, high), False)):
        assert FindKey(keys=keys)._table(dtype).dtype == (dtype.numpy if fits else np.int64)


@pytest.mark.parametrize("extra", range(6, 10))
def test_integer_lstms_have_no_peepholes_normalisation_or_projection(extra: int) -> None:
    """Any one of these inputs alone."""
    kind = OPERATORS["aot", "SequenceLstm"]
    sample = next(s for s in kind.samples() if s.attributes.get("scales") is not None)
    operator = kind(**sample.attributes)
    inputs: list[Value | None] = [
        None if a is None else Value(f"i{k}", TensorType(DType.of(a.dtype), a.shape), data=a)
        for k, a in enumerate(map(np.asarray, sample.inputs))
    ][:6]
    assert operator.infer(inputs)
    units, out = 5, 5
    shape = {6: (3, units), 7: (4, units), 8: (out, units), 9: (out,)}[extra]
    more: list[Value | None] = [None] * 4
    more[extra - 6] = Value("more", TensorType(DType.INT16, shape), data=np.zeros(shape, np.int16))
    with pytest.raises(OperatorError, match="integer LSTMs are not supported"):
        operator.infer([*inputs, *more])


WINDOWS = sorted(
    {
        key
        for key, kind in OPERATORS.items()
        if {"strides", "pads"} & {f.name for f in fields(kind)}
        and any(len(np.shape(s.inputs[0])) > 2 for s in kind.samples())
        and key != ("aot", "MaximumPlace")
    }
)
"""MaximumPlace is made for a MaxPool alone, which refuses."""


@pytest.mark.parametrize(("domain", "kind"), WINDOWS)
def test_windows_need_an_axis(domain: str, kind: str) -> None:
    """Batch and channels alone are none, whatever the lists of strides say."""
    operator = OPERATORS[domain, kind]
    sample = max(operator.samples(), key=lambda s: len(np.shape(s.inputs[0])))
    none = {f.name: () for f in fields(operator) if f.name in AXES}
    inputs = [
        None if a is None else Value(f"i{k}", TensorType(DType.of(np.asarray(a).dtype), (4, 4)[: np.ndim(a)]))
        for k, a in enumerate(sample.inputs)
    ]
    with pytest.raises(OperatorError):
        operator(**{**sample.attributes, **none}).infer(inputs)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_whose_sequence_nobody_reads_keep_to_their_memory(kind: str) -> None:
    """Two rows of hidden state instead of the sequence; wide enough that fewer would be too few."""
    rng = np.random.default_rng(3)
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 7
    constants = {
        n: rng.uniform(-1, 1, s).astype(np.float32)
        for n, s in (("w", (1, gates * hidden, 3)), ("r", (1, gates * hidden, hidden)))
    }
    cases = []
    for names in (["", "h"], ["y", "h"]):
        outputs = [tensor(n, [1, 2, hidden] if n == "h" else [5, 1, 2, hidden]) for n in names if n]
        proto = model(
            [node(kind, ["x", "w", "r"], names, name="layer", hidden_size=hidden)],
            [tensor("x", [5, 2, 3])],
            outputs,
            constants,
        )
        cases.append(Case(f"{kind} {names}", proto, (rng.uniform(-1, 1, (5, 2, 3)).astype(np.float32),)))
    cases = [cases[0], replace(cases[1], inputs=cases[0].inputs)]
    alone, both = run_cases(cases, "c", flags=("-O0",), jobs=1, make=red_zones.generate_guarded)
    assert alone.status == "ok" and both.status in ("ok", "same"), (alone, both)
    if both.status == "ok":
        np.testing.assert_array_equal(alone.outputs[0], both.outputs[1])
