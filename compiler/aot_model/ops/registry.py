"""The registry of operators. One class is one operator: attributes, type rule, meaning, samples.

A class is declared with @operator and is one of three kinds:

* an expression: `express` says what one element of the output is; it fuses with its neighbours;
* a composite: `expand` rewrites it into other operators;
* a kernel: `lower` asks the target for a kernel (convolution, matrix product, pooling, recurrent cells).

Class names and attributes of operators that ONNX has are those of ONNX at its newest opset, so that the
frontend needs no table. Operators of our own (domain "aot") are what the others expand into.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        """PEP 681, for type checkers alone."""
        return lambda function: function


from aot_model.ir.expr import Index
from aot_model.ir.operator import MANY, Inputs, Operator, OperatorError

OPERATORS: dict[tuple[str, str], type[Operator]] = {}
Op = TypeVar("Op", bound=Operator)


@dataclass_transform(frozen_default=True)
def operator(
    name: str, domain: str = "", inputs: int = MANY, **marks: bool
) -> Callable[[type[Op]], type[Op]]:
    """Class decorator: register the operator under (domain, name).

    inputs: how many it takes at most; com.microsoft's must say it, as no package does that a user installs.
    marks: elementwise, movement, effects.
    """

    def register(cls: type[Op]) -> type[Op]:
        # else it is the dataclass that its base is, and making another takes most of the time to load it
        if get_annotations(cls):
            cls = dataclass(frozen=True)(cls)
        cls.name, cls.domain, cls.most_inputs = name, domain, inputs
        for mark, value in marks.items():
            assert hasattr(Operator, mark), f"there is no mark '{mark}'"
            setattr(cls, mark, value)
        assert (domain, name) not in OPERATORS, f"{domain}::{name} is registered twice"
        OPERATORS[domain, name] = cls
        return cls

    return register


FORMER_DOMAINS = {
    "onnx.brevitas": "qonnx.custom_op.general",
    "finn.custom_op.general": "qonnx.custom_op.general",
}
"""Domains that operators had before: Brevitas' and QKeras' converters wrote them."""


def operator_of(domain: str, name: str) -> type[Operator] | None:
    """The operator that a file names, by a former domain, too; None when it is not known."""
    return OPERATORS.get((FORMER_DOMAINS.get(domain, domain), name))


@cache
def load_all() -> None:
    """Import every module of ops/, in name order, at the first call; an import error is fatal."""
    package = importlib.import_module("aot_model.ops")
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"aot_model.ops.{module}")


class Build:
    """Makes nodes with inferred types; names outputs after a prefix. Used by frontends, passes and
    `expand`.
    """

    def __init__(self, nodes: list[Node], prefix: str) -> None:
        self.nodes = nodes
        self.prefix = prefix
        self._count = 0

    def many(self, op: Operator, *inputs: Value | None, outputs: Sequence[str] = ()) -> list[Value]:
        """Add a node; all its outputs."""
        try:
            types = op.infer(inputs)
        except OperatorError as error:
            raise error.about(self.prefix, op.name)  # noqa: B904
        names = list(outputs) + [self._fresh(op) for _ in types[len(outputs) :]]
        results = [Value(n, t) for n, t in zip(names, types, strict=True)]
        self.nodes.append(Node(op, list(inputs), results, self.prefix))
        return results

    def __call__(self, op: Operator, *inputs: Value | None, output: str = "") -> Value:
        """Add a node with one output."""
        return self.many(op, *inputs, outputs=(output,) if output else ())[0]

    def constant(self, data: Any, dtype: DType | None = None, name: str = "") -> Value:
        """A constant. OperatorError when numbers are none of the type: beyond it, or NaN as an integer."""
        try:
            array = np.asarray(data) if dtype is None else np.asarray(data, dtype=dtype.numpy)
        except (OverflowError, ValueError):
            raise OperatorError(f"{str(data)[:80]} is no {dtype}") from None
        self._count += 1
        return constant(name or f"{self.prefix}.const{self._count}", array)

    def _fresh(self, op: Operator) -> str:
        self._count += 1
        return f"{self.prefix}.{op.name.lower()}{self._count}"


def static(inputs: Inputs, index: int, what: str) -> np.ndarray | None:
    """Data of a constant input; None when the input is absent. OperatorError when it is not known at compile
    time.
    """
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        return None
    if value.data is None:
        raise OperatorError(
            f"{what} ('{value.name}') must be known at compile time",
            "E203",
            "make it a constant (--constant INPUT=VALUES), or bind the dynamic dimensions that it comes from "
            "(--dim)",
        )
    return value.data


MAX_RANK = 32
"""Of a tensor: as many as numpy's iterators take."""
MAX_TABLES = 1 << 22
"""Numbers of all the tables that an operator makes of sizes and attributes, beyond four for each number that
it is given: a small file may ask for as many as its result has elements. Of four bytes each they are 16 MiB,
all that serial flash with addresses of 24 bits has.
"""


def bounded(numbers: int, given: int = 0) -> None:
    """OperatorError when the tables of an operator have more numbers than a program should hold.

    given: numbers of its constant inputs.
    """
    if numbers > MAX_TABLES + 4 * given:
        raise OperatorError(
            f"its tables would have {numbers:,} numbers, more than {MAX_TABLES:,}",
            "E202",
            "compute it outside of the model, or give it fewer elements",
        )


def ints(values: object) -> tuple[int, ...]:
    """The elements of a constant as Python integers. OperatorError when one is none."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.floor(array))).all():
        raise OperatorError("a number of lengths, axes or places is no integer", "E302")
    return tuple(int(v) for v in array.ravel())


def only(values: object, what: str) -> Any:
    """The element of a constant that has one. OperatorError when it has more, or none."""
    array = np.asarray(values)
    if array.size != 1:
        raise OperatorError(f"{what} has {array.size} numbers, not one")
    return array.item()


def whole(values: object, what: str) -> int:
    """The element of a constant that is one integer. OperatorError when it is not."""
    only(values, what)
    return ints(values)[0]


def listed(values: Sequence[object], most: int = 16) -> str:
    """A list for a message, of which only the beginning is shown when it is long."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return f"[{', '.join(map(str, values[:most]))}{more}]"


def required(inputs: Inputs, index: int = 0) -> Value:
    """An input that must be there."""
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        raise OperatorError(f"input {index} is missing")
    return value


def normal_axis(axis: int, rank: int) -> int:
    """An axis counted from the front. OperatorError when out of range."""
    if not -rank <= axis < rank:
        raise OperatorError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def ranked(x: Value, least: int, most: int | None = None) -> Value:
    """The value, with `least` axes, or from `least` to `most`. OperatorError when it has others."""
    most = least if most is None else most
    if not least <= x.type.rank <= most:
        raise OperatorError(
            f"'{x.name}' {x.type} has {x.type.rank} axes, and must have "
            f"{least if least == most else f'{least} to {most}'}"
        )
    return x


def axis_of(x: Value, axis: int) -> int:
    """An axis that the tensor has, counted from the front. OperatorError when it has none."""
    if not x.shape:
        raise OperatorError(f"takes a tensor with axes, not the scalar '{x.name}'")
    return normal_axis(axis, x.type.rank)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape under numpy's rules. OperatorError when there is none."""
    most = max(map(len, shapes), default=0)
    if most > MAX_RANK:
        raise OperatorError(f"{most} dimensions are more than {MAX_RANK}", "E202")
    try:
        return tuple(int(d) for d in np.broadcast_shapes(*shapes))
    except ValueError:
        raise OperatorError(f"shapes {' and '.join(map(str, shapes))} do not broadcast") from None


def numeric(inputs: Inputs, index: int = 0) -> Value:
    """An input that is there and holds numbers, which booleans are not. Raises OperatorError."""
    value = required(inputs, index)
    if value.dtype is DType.BOOL:
        raise OperatorError(f"takes numbers, not {value.type}", "E202")
    return value


def alike(*values: Value | None) -> None:
    """OperatorError unless those that are there have one element type."""
    if len({v.dtype for v in values if v is not None}) > 1:
        types = ", ".join(str(v.type) for v in values if v is not None)
        raise OperatorError(f"inputs have different types: {types}")


def counts(*values: Value | None) -> None:
    """OperatorError unless those that are there, indices, lengths or zero points, are integers."""
    for value in values:
        if value is not None and not value.dtype.is_integer:
            raise OperatorError(f"indices, lengths and zero points are integers, not {value.type}")


def shared_shape(inputs: Inputs, count: int) -> tuple[int, ...]:
    """The shape of the first input, to which those behind broadcast. OperatorError when one does not."""
    first, *others = (required(inputs, k) for k in range(count))
    if broadcast(first.shape, *(x.shape for x in others)) != first.shape:
        raise OperatorError(f"{' and '.join(str(x.type) for x in others)} do not broadcast to {first.type}")
    return first.shape


def broadcast_index(shape: tuple[int, ...], index: Index) -> Index:
    """The index into a tensor of `shape` for an index of the broadcast result."""
    from aot_model.ir.expr import const

    tail = index[len(index) - len(shape) :]
    return tuple(const(0) if extent == 1 else i for extent, i in zip(shape, tail, strict=True))
