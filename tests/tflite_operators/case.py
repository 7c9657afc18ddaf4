"""One operator (or a few) of TFLite as a model with inputs, and who says what its outputs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tflite_models import BOOL, FLOAT32, INT8, INT16, INT32, INT64, UINT8, G, Op, T, build

RNG = np.random.default_rng(5)
"""Of all modules of cases, in the order in which they are imported."""


@dataclass(frozen=True)
class OpCase:
    """tolerance: of floats, relative to the largest number of the output; integers are equal."""

    name: str
    model: bytes
    inputs: tuple[np.ndarray, ...]
    oracle: str = "litert"
    """litert (its reference kernels), litert-all (its others), tflm, or numpy: `expected` has the outputs."""
    tolerance: float = 1e-6
    expected: tuple[np.ndarray, ...] = ()
    arithmetic: str = "litert-ref"
    dims: dict[str, int] = field(default_factory=dict)

    @property
    def kernels(self) -> str:
        """LiteRT's name of its kernels that are the oracle."""
        return "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if self.oracle == "litert-all" else "BUILTIN_REF"


def draw(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    """Random floats."""
    return np.asarray(RNG.uniform(low, high, shape), np.float32)


def whole(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    """Random integers from low to high."""
    return np.asarray(RNG.integers(low, high, shape, endpoint=True), dtype)


def one(
    name: str,
    kind: str,
    inputs: Sequence[np.ndarray | T],
    outputs: Sequence[T],
    options: str | None = None,
    fields: dict[str, object] | None = None,
    custom: bytes = b"",
    **more: object,
) -> OpCase:
    """A case of one operator. Arrays become inputs of the model, tensors are constants (or inputs, with
    values in `given`).
    """
    tensors: list[T] = []
    fed: list[np.ndarray] = []
    places: list[int] = []
    given = list(more.pop("given", ()))  # type: ignore[call-overload]
    for k, x in enumerate(inputs):
        if isinstance(x, T):
            tensors.append(x)
            if x.data is None:
                places.append(k)
                fed.append(given.pop(0))
        else:
            kind_of = {
                "float32": FLOAT32,
                "int32": INT32,
                "int64": 4,
                "bool": 6,
                "int8": 9,
                "uint8": 3,
                "int16": 7,
            }[str(x.dtype)]
            tensors.append(T(f"x{k}", x.shape, kind_of, scale=()))
            places.append(k)
            fed.append(x)
    first = len(tensors)
    tensors += outputs
    op = Op(kind, tuple(range(first)), tuple(range(first, len(tensors))), options, dict(fields or {}), custom)
    model = build(tensors, [op], places, list(op.outputs))
    return OpCase(name, model, tuple(fed), **more)  # type: ignore[arg-type]


def network(
    name: str,
    tensors: Sequence[T],
    operators: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
    fed: Sequence[np.ndarray],
    *others: G,
    **more: object,
) -> OpCase:
    """A case of several operators."""
    return OpCase(name, build(tensors, operators, inputs, outputs, *others), tuple(fed), **more)  # type: ignore[arg-type]


TYPES = {
    "float32": FLOAT32, "int8": INT8, "uint8": UINT8, "int16": INT16, "int32": INT32, "int64": INT64,
    "bool": BOOL
}  # fmt: skip


def plain(name: str, array: np.ndarray | Sequence[int], type_: int | None = None) -> T:
    """An output of the shape of an array (or of that shape), without quantisation."""
    shape = array.shape if isinstance(array, np.ndarray) else tuple(array)
    return T(name, shape, type_ if type_ is not None else TYPES[str(np.asarray(array).dtype)], scale=())


def quantised(
    kind: str,
    inputs: Sequence[tuple[np.ndarray, float, int]],
    shape: Sequence[int],
    scale: float,
    zero: int,
    options: str | None = None,
    fields: dict[str, object] | None = None,
    constants: Sequence[T] = (),
    oracles: Sequence[str] = ("litert", "tflm"),
    tag: str = "",
) -> list[OpCase]:
    """An operator of int8 or int16 with (values, scale, zero point) of each input, against both engines."""
    type_ = TYPES[str(inputs[0][0].dtype)]
    tensors = [T(f"x{k}", a.shape, type_, (s,), (z,)) for k, (a, s, z) in enumerate(inputs)]
    names = {"litert": "litert-ref", "litert-all": "litert-ref", "tflm": "tflm"}
    return [
        one(
            f"{kind}-{inputs[0][0].dtype}-values{tag}-{oracle}",
            kind,
            [*tensors, *constants],
            [T("y", tuple(shape), type_, (scale,), (zero,))],
            options,
            fields,
            given=[a for a, _, _ in inputs],
            oracle=oracle,
            arithmetic=names[oracle],
        )
        for oracle in oracles
    ]
