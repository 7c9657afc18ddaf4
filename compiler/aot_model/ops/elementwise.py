"""Element-wise operators: y[i] = f(a[i], b[i], …) with numpy broadcasting.

Most are rows of a table: name, arity, scalar meaning, type of the result (None: that of the first input).
Source: ONNX operator specification, opsets 1 to 23.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from aot_model.ir.expr import Call, Const, Expr, Index, call, cast, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.elementwise_samples import samples
from aot_model.ops.powers import power
from aot_model.ops.registry import OPERATORS, alike, broadcast, broadcast_index, numeric, operator, required


def one(x: Expr, value: float) -> Expr:
    """A constant of the type of x."""
    return const(value, x.dtype)


def relu(x: Expr) -> Expr:
    return call("max", x, one(x, 0))


def clamp(x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    x = x if low is None else call("max", x, low)
    return x if high is None else call("min", x, high)


def _equal(a: Expr, b: Expr) -> Expr:
    return call("same_text" if a.dtype.is_string else "eq", a, b, dtype=DType.BOOL)


def _compare(op: str, swap: bool = False, negate: bool = False) -> Callable[..., Expr]:
    def build(a: Expr, b: Expr) -> Expr:
        result = call(op, *((b, a) if swap else (a, b)), dtype=DType.BOOL)
        return call("not", result) if negate else result

    return build


def _simple(op: str) -> Callable[..., Expr]:
    return lambda *args: call(op, *args)


def _chain(op: str) -> Callable[..., Expr]:
    """A variadic operator folded from the left."""

    def build(*args: Expr) -> Expr:
        total = args[0]
        for x in args[1:]:
            total = call(op, total, x)
        return total

    return build


def _pow(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const) and a.dtype.is_float:
        return power(a, float(b.value))
    if a.dtype.is_integer and b.dtype.is_float:
        return cast(call("pow", cast(a, b.dtype), b), a.dtype)
    return call("pow", a, cast(b, a.dtype))


def _mean(*args: Expr) -> Expr:
    return call("div", _chain("add")(*args), one(args[0], len(args)))


def _softplus(x: Expr) -> Expr:
    # log(1 + e^x) without overflow: max(x, 0) + log1p(e^-|x|)
    return call("add", relu(x), call("softplus_rest", x))


def _hard_swish(x: Expr) -> Expr:
    gate = clamp(call("add", call("mul", x, one(x, 1 / 6)), one(x, 0.5)), one(x, 0), one(x, 1))
    return call("mul", x, gate)


def _sign(x: Expr) -> Expr:
    return call("min", x, one(x, 1)) if x.dtype.kind == "uint" else call("sign", x)


def tanh(x: Expr) -> Expr:
    """As ONNX Runtime computes it: of float32 a rational function. That of softplus has no logarithm."""
    if x.dtype is DType.FLOAT32 and isinstance(x, Call) and x.op == "add":
        inner = x.args[1].args[0] if isinstance(x.args[1], Call) and x.args[1].op == "softplus_rest" else x
        if x is _softplus(inner):
            return _tanh_of_softplus(inner)
    return call("rational_tanh" if x.dtype is DType.FLOAT32 else "tanh", x)


def sigmoid(x: Expr) -> Expr:
    """As `tanh`."""
    return call("rational_logistic" if x.dtype is DType.FLOAT32 else "sigmoid", x)


def _tanh_of_softplus(x: Expr) -> Expr:
    """tanh(log(1 + e)) is w / (w + 2), w = e (e + 2), and 1 long before x is 20."""
    e = call("exp", call("min", x, one(x, 20)))
    w = call("mul", e, call("add", e, one(x, 2)))
    return call("div", w, call("add", w, one(x, 2)))


def _mish(x: Expr) -> Expr:
    return call("mul", x, _tanh_of_softplus(x))


_T = Callable[..., Expr]
_TABLE: list[tuple[str, int, _T, DType | None]] = [
    # name, arity (-1: one or more), meaning, result type
    ("Add", 2, _simple("add"), None),
    ("Sub", 2, _simple("sub"), None),
    ("Mul", 2, _simple("mul"), None),
    ("Div", 2, _simple("div"), None),
    ("Pow", 2, _pow, None),
    ("Neg", 1, _simple("neg"), None),
    ("Abs", 1, _simple("abs"), None),
    ("Sign", 1, _sign, None),
    ("Identity", 1, lambda x: x, None),
    ("Sqrt", 1, _simple("sqrt"), None),
    ("Exp", 1, _simple("exp"), None),
    ("Log", 1, _simple("log"), None),
    ("Sin", 1, _simple("sin"), None),
    ("Cos", 1, _simple("cos"), None),
    ("Tan", 1, _simple("tan"), None),
    ("Asin", 1, _simple("asin"), None),
    ("Acos", 1, _simple("acos"), None),
    ("Atan", 1, _simple("atan"), None),
    ("Sinh", 1, _simple("sinh"), None),
    ("Cosh", 1, _simple("cosh"), None),
    ("Tanh", 1, tanh, None),
    ("Asinh", 1, _simple("asinh"), None),
    ("Acosh", 1, _simple("acosh"), None),
    ("Atanh", 1, _simple("atanh"), None),
    ("Erf", 1, _simple("erf"), None),
    ("Floor", 1, _simple("floor"), None),
    ("Ceil", 1, _simple("ceil"), None),
    ("Round", 1, _simple("rint"), None),
    ("Sigmoid", 1, sigmoid, None),
    ("Relu", 1, relu, None),
    ("Reciprocal", 1, lambda x: call("div", one(x, 1), x), None),
    ("Softplus", 1, _softplus, None),
    ("Softsign", 1, lambda x: call("div", x, call("add", call("abs", x), one(x, 1))), None),
    ("HardSwish", 1, _hard_swish, None),
    ("Mish", 1, _mish, None),
    ("IsNaN", 1, lambda x: call("isnan", x, dtype=DType.BOOL), DType.BOOL),
    ("Min", -1, _chain("min"), None),
    ("Max", -1, _chain("max"), None),
    ("Sum", -1, _chain("add"), None),
    ("Mean", -1, _mean, None),
    ("Equal", 2, _equal, DType.BOOL),
    ("Less", 2, _compare("lt"), DType.BOOL),
    ("Greater", 2, _compare("lt", swap=True), DType.BOOL),
    ("LessOrEqual", 2, _compare("le"), DType.BOOL),
    ("GreaterOrEqual", 2, _compare("le", swap=True), DType.BOOL),
    ("And", 2, _simple("and"), DType.BOOL),
    ("Or", 2, _simple("or"), DType.BOOL),
    ("Xor", 2, _simple("xor"), DType.BOOL),
    ("Not", 1, _simple("not"), DType.BOOL),
    ("BitwiseAnd", 2, _simple("bitand"), None),
    ("BitwiseOr", 2, _simple("bitor"), None),
    ("BitwiseXor", 2, _simple("bitxor"), None),
    ("BitwiseNot", 1, _simple("bitnot"), None),
]

_LIBM: list[tuple[str, _T, Callable[[np.ndarray], np.ndarray]]] = [
    ("LibmTanh", _simple("tanh"), np.tanh),
    ("LibmSigmoid", _simple("sigmoid"), lambda x: 1 / (1 + np.exp(-x))),
]
"""Operators of our own: name, meaning, numpy. By the C library's functions, as LiteRT's reference kernels and
TFLM have them, and what of ONNX Runtime is written with std::tanh and std::exp (RNN, the operators of
ai.onnx.ml)."""


_REAL = frozenset(
    "Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf Floor Ceil Round Sigmoid "
    "Reciprocal Softplus Softsign HardSwish Mish IsNaN Mean".split()
) | {name for name, _, _ in _LIBM}
"""Functions of real numbers: no integer has one as its result."""

_LOGICAL = frozenset(("And", "Or", "Xor", "Not"))
_BITWISE = frozenset(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"))
_OF_BOOLEANS = _LOGICAL | _BITWISE | {"Identity", "Equal"}
"""A product or a sum of booleans is no boolean."""


MAX_INPUTS = 128
"""Of one node. Brackets of a Max are as deep as its inputs are many, and three more; with the at most 48
operations that are fused into it (lowering/storage.py) that is below the 256 levels that Clang takes
(-fbracket-depth).
"""


class Elementwise(Operator):
    """A row of the table."""

    arity: ClassVar[int]
    meaning: ClassVar[_T]
    result: ClassVar[DType | None]
    elementwise: ClassVar[bool] = True

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if self.arity >= 0 and len(inputs) != self.arity:
            raise OperatorError(f"takes {self.arity} inputs, not {len(inputs)}")
        if len(inputs) > MAX_INPUTS:
            raise OperatorError(
                f"{self.name} of {len(inputs)} inputs, more than {MAX_INPUTS}",
                "E202",
                f"make it nodes of at most {MAX_INPUTS} inputs, one after the other",
            )
        values = [required(inputs, i) for i in range(len(inputs))]
        if not values:
            raise OperatorError("takes one input or more, not 0")
        if self.name != "Pow":
            alike(*values)
        x = values[0].dtype
        wrong = (
            (self.name in _REAL and not x.is_float)
            or (self.name in _LOGICAL and x is not DType.BOOL)
            or (self.name in _BITWISE and x.is_float)
            or (x is DType.BOOL and self.name not in _OF_BOOLEANS)
        )
        if wrong:
            raise OperatorError(f"{self.name} of {values[0].type} is not supported", "E202")
        return [TensorType(self.result or values[0].dtype, broadcast(*(v.shape for v in values)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        args = [at(v, broadcast_index(v.shape, index)) for v in inputs if v is not None]
        return type(self).meaning(*args)

    def only_moves(self) -> bool:
        return self.name == "Identity"  # a conversion there and back loses infinities of small floats

    @classmethod
    def samples(cls) -> list[Sample]:
        return samples(cls.name, cls.arity)


def _declare(name: str, arity: int, meaning: _T, result: DType | None) -> None:
    members = {
        "__doc__": f"ONNX {name}.",
        "__module__": __name__,
        "arity": arity,
        "meaning": staticmethod(meaning),
        "result": result,
    }
    operator(name, elementwise=True, strings=name in ("Identity", "Equal"))(
        type(name, (Elementwise,), members)
    )


def _declare_libm(name: str, meaning: _T, numpy: Callable[[np.ndarray], np.ndarray]) -> None:
    def reference(self: Operator, arrays: Arrays) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return [
                np.asarray(numpy(np.asarray(x, np.float64))).astype(x.dtype) for x in arrays if x is not None
            ]

    members = {
        "__doc__": f"{name[4:]} of the C library.",
        "__module__": __name__,
        "arity": 1,
        "meaning": staticmethod(meaning),
        "result": None,
        "reference": reference,
    }
    operator(name, domain="aot", elementwise=True)(type(name, (Elementwise,), members))


for _row in _TABLE:
    _declare(*_row)
for _own in _LIBM:
    _declare_libm(*_own)


def op(name: str) -> Operator:
    """An element-wise operator without attributes, by name: ONNX's, else our own."""
    return (OPERATORS.get(("", name)) or OPERATORS["aot", name])()


class Unary(Operator, ABC):
    """One input, one output of the same type, meaning in `scalar`."""

    @abstractmethod
    def scalar(self, x: Expr) -> Expr: ...

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [numeric(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return self.scalar(at(required(inputs), index))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(7)
        return [Sample((np.asarray(rng.uniform(-4, 4, s), dtype=np.float32),)) for s in [(3, 5), (), (1, 7)]]


@operator("IsInf", elementwise=True)
class IsInf(Unary):
    """Whether x is an infinity of a detected sign."""

    detect_negative: int = 1
    detect_positive: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.BOOL, required(inputs).shape)]

    def scalar(self, x: Expr) -> Expr:
        found = call("isinf", x, dtype=DType.BOOL)
        if not self.detect_negative:
            found = call("and", found, call("lt", one(x, 0), x, dtype=DType.BOOL))
        if not self.detect_positive:
            found = call("and", found, call("lt", x, one(x, 0), dtype=DType.BOOL))
        return found


@operator("Mod", elementwise=True)
class Mod(Operator):
    """Remainder with the sign of the divisor, or with that of the dividend (fmod)."""

    fmod: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = numeric(inputs, 0), required(inputs, 1)
        alike(a, b)
        return [TensorType(a.dtype, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, 0), required(inputs, 1)))
        return call("fmod" if self.fmod else "mod", a, b)

    @classmethod
    def samples(cls) -> list[Sample]:
        a, b = (
            np.asarray([-7, -4, 0, 4, 7, 8, -9, 9], np.int32),
            np.asarray([3, -3, 5, -4, 4, 8, 2, -2], np.int32),
        )
        real = a.astype(np.float32) + np.float32(0.25)
        kinds = (np.int8, np.int16, np.int64)
        return (
            [Sample((a, b), {"fmod": f}) for f in (0, 1)]
            + [Sample((a.astype(k), b.astype(k))) for k in kinds]
            + [
                Sample((real, b.astype(np.float32)), {"fmod": 1}),
                Sample((real.astype(np.float64), np.asarray(1.5)), {"fmod": 1}),
                Sample((np.abs(a).astype(np.uint8), np.asarray([[3], [200]], np.uint8))),
            ]
        )


@operator("BitShift", elementwise=True)
class BitShift(Operator):
    """Logical shift; by the width of the type or more gives 0."""

    direction: str = "LEFT"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        return [TensorType(a.dtype, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, 0), required(inputs, 1)))
        return call("shl" if self.direction == "LEFT" else "shr", a, b)

    @classmethod
    def samples(cls) -> list[Sample]:
        kinds = (np.uint8, np.uint16, np.uint32, np.uint64)
        cases = [
            (np.asarray([1, 16, 129, 255], k), np.asarray([0, 1, 3, 7], k), d)
            for k in kinds
            for d in ("LEFT", "RIGHT")
        ]
        wide = np.asarray([[2**31 + 5], [2**32 - 1]], np.uint32)
        return [Sample((a, b), {"direction": d}) for a, b, d in cases] + [
            Sample((wide, np.asarray([0, 1, 31], np.uint32)), {"direction": "RIGHT"})
        ]


@operator("Clip", elementwise=True)
class Clip(Operator):
    """min(max(x, low), high); either bound may be absent."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = numeric(inputs)
        for bound in inputs[1:]:
            if bound is not None and (bound.type.elements != 1 or bound.dtype is not x.dtype):
                raise OperatorError(f"a bound {bound.type} is not one element of the type of {x.type}")
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        low, high = (inputs[i] if len(inputs) > i else None for i in (1, 2))
        return clamp(
            at(required(inputs), index),
            None if low is None else at(low, (const(0),) * low.type.rank),
            None if high is None else at(high, (const(0),) * high.type.rank),
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x, low, high = (
            np.asarray([[-3, -1, 0], [0.5, 2, 7]], np.float32),
            np.asarray(-1, np.float32),
            np.asarray(2, np.float32),
        )
        cases = [(x, low, high), (x, low, None), (x, None, high), (x,), (x, high, low)]
        whole = [v.astype(np.int8) for v in (x, low, high)]
        return [Sample(c, constants=k) for c in cases for k in (frozenset(), frozenset({1, 2}))] + [
            Sample(tuple(whole), constants=frozenset({1, 2}))
        ]


@operator("Where", elementwise=True, strings=True)
class Where(Operator):
    """condition ? x : y."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        c, x, y = (required(inputs, i) for i in range(3))
        alike(x, y)
        if c.dtype is not DType.BOOL:
            raise OperatorError(f"chooses by booleans, not {c.type}")
        return [TensorType(x.dtype, broadcast(c.shape, x.shape, y.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        c, x, y = (at(v, broadcast_index(v.shape, index)) for v in (required(inputs, i) for i in range(3)))
        return select(c, x, y)

    @classmethod
    def samples(cls) -> list[Sample]:
        c, x, y = (
            np.asarray([[True, False, True]]),
            np.arange(6, dtype=np.float32).reshape(2, 3),
            np.asarray([[-1], [-2]], np.float32),
        )
        return [
            Sample((c, x, y)),
            Sample((c, x, y), constants=frozenset({0})),
            Sample((c[0], x.astype(np.int64), y[0].astype(np.int64))),
            Sample((x > 2, c, np.asarray(False))),
        ]
