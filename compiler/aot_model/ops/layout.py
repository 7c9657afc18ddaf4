"""Operators that rearrange or mask by position: depth and space, triangles, identity matrices, einsum.

Source: ONNX operator specification.
"""

from __future__ import annotations

import re

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, reduce, select
from aot_model.ir.index import add, sub
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import OPERATORS, Build, numeric, operator, ranked, required
from aot_model.ops.views import ReshapeTo


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(21).uniform(-2, 2, shape), dtype=np.float32)


def _check_mode(mode: str) -> None:
    if mode not in ("DCR", "CRD"):
        raise OperatorError(f"there is no mode '{mode}'")


@operator("DepthToSpace", strings=True)
class DepthToSpace(Operator):
    """Blocks of channels become blocks of pixels: depth-column-row order (DCR) or column-row-depth (CRD)."""

    blocksize: int = 1
    mode: str = "DCR"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, b = required(inputs), self.blocksize
        _check_mode(self.mode)
        if x.type.rank != 4 or b < 1 or x.shape[1] % (b * b):
            raise OperatorError(f"blocks of {b} x {b} do not fit {x.type}")
        n, c, h, w = x.shape
        return [TensorType(x.dtype, (n, c // (b * b), h * b, w * b))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, b = required(inputs), self.blocksize
        n, c, h, w = x.shape
        if self.mode == "DCR":
            split, perm = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
        else:
            split, perm = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
        moved = build(Transpose(perm), build(ReshapeTo(split), x))
        return [build(ReshapeTo((n, c // (b * b), h * b, w * b)), moved)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(2, (5 - b) * b * b, 2, 3),), {"blocksize": b, "mode": m})
            for m in ("DCR", "CRD")
            for b in (2, 3)
        ]


@operator("SpaceToDepth", strings=True)
class SpaceToDepth(Operator):
    """Blocks of pixels become channels: the place in the block before the channel (DCR) or behind it
    (CRD).
    """

    blocksize: int = 1
    mode: str = "DCR"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, b = required(inputs), self.blocksize
        _check_mode(self.mode)
        if x.type.rank != 4 or b < 1 or x.shape[2] % b or x.shape[3] % b:
            raise OperatorError(f"blocks of {b} x {b} do not fit {x.type}")
        n, c, h, w = x.shape
        return [TensorType(x.dtype, (n, c * b * b, h // b, w // b))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, b = required(inputs), self.blocksize
        n, c, h, w = x.shape
        order = (0, 3, 5, 1, 2, 4) if self.mode == "DCR" else (0, 1, 3, 5, 2, 4)
        moved = build(Transpose(order), build(ReshapeTo((n, c, h // b, b, w // b, b)), x))
        return [build(ReshapeTo((n, c * b * b, h // b, w // b)), moved)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(1, 2, 4, 6),), {"blocksize": 2}),
            Sample((_draw(2, 3, 6, 3),), {"blocksize": 3, "mode": "CRD"}),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, b = np.asarray(arrays[0]), self.blocksize
        n, c, h, w = x.shape
        blocks = [x[:, :, i::b, j::b] for i in range(b) for j in range(b)]
        y = np.stack(blocks, axis=1 if self.mode == "DCR" else 2)
        return [y.reshape(n, c * b * b, h // b, w // b)]


@operator("Trilu", strings=True)
class Trilu(Operator):
    """The upper (lower) triangle of matrices from diagonal k on; 0 elsewhere."""

    upper: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.type.rank < 2:
            raise OperatorError(f"takes matrices, not {x.type}")
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        k = inputs[1] if len(inputs) > 1 else None
        diagonal = (
            const(0, DType.INT64) if k is None else cast(at(k, tuple(const(0) for _ in k.shape)), DType.INT64)
        )
        distance = cast(sub(index[-1], index[-2]), DType.INT64)
        keep = (
            call("le", diagonal, distance, dtype=DType.BOOL)
            if self.upper
            else call("le", distance, diagonal, dtype=DType.BOOL)
        )
        return select(keep, at(x, index), const(0, x.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = _draw(2, 4, 5)
        ks = [None, np.asarray(1, np.int64), np.asarray(-2, np.int64), np.asarray(9, np.int64)]
        return [Sample((x, k) if k is not None else (x,), {"upper": u}) for k in ks for u in (0, 1)]


@operator("EyeLike")
class EyeLike(Operator):
    """Ones on diagonal k of a matrix of the input's shape."""

    dtype: DType | None = None
    k: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.type.rank != 2:
            raise OperatorError(f"takes a matrix, not {x.type}")
        return [TensorType(self.dtype or x.dtype, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        dtype = self.dtype or required(inputs).dtype
        rows, columns = required(inputs).shape
        # A diagonal beyond the matrix has no element, however far away it is.
        k = max(-rows, min(self.k, columns))
        hit = call("eq", add(index[1], -k), index[0], dtype=DType.BOOL)
        return select(hit, const(1, dtype), const(0, dtype))

    def only_moves(self) -> bool:
        return True

    @classmethod
    def samples(cls) -> list[Sample]:
        forms: list[dict[str, object]] = [{}, {"k": 1, "dtype": DType.INT32}, {"k": -2}, {"k": -(2**63)}]
        return [Sample((_draw(3, 4),), form) for form in forms]


# --- einsum -------------------------------------------------------------------------------------------------


@operator("Contraction", domain="aot", reducing=True, rereads=True)
class Contraction(Operator):
    """Einsum over all inputs at once, as one loop nest: `terms` are the labels of each input's axes."""

    terms: tuple[str, ...]
    result: str

    def _extents(self, inputs: Inputs) -> dict[str, int]:
        extents: dict[str, int] = {}
        for k, term in enumerate(self.terms):
            value = ranked(required(inputs, k), len(term))
            for label, d in zip(term, value.shape, strict=True):
                known = extents.setdefault(label, d)
                if known != d and 1 not in (known, d):
                    raise OperatorError(f"axes '{label}' have extents {known} and {d}")
                extents[label] = max(known, d)
        return extents

    def infer(self, inputs: Inputs) -> list[TensorType]:
        extents = self._extents(inputs)
        return [TensorType(required(inputs).dtype, tuple(extents[label] for label in self.result))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        extents = self._extents(inputs)
        place = dict(zip(self.result, index, strict=True))
        over = {label: fresh("e", n) for label, n in extents.items() if label not in place}
        place.update(over)
        product: Expr | None = None
        for k, term in enumerate(self.terms):
            value = required(inputs, k)
            element = at(
                value,
                tuple(
                    const(0) if d == 1 else place[label] for label, d in zip(term, value.shape, strict=True)
                ),
            )
            product = element if product is None else call("mul", product, element)
        assert product is not None
        return reduce("add", tuple(over.values()), product)

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [
            (("ij", "jk"), "ik", (3, 4), (4, 5)),
            (("bij",), "bj", (2, 3, 4)),
            (("ii",), "i", (3, 3)),
            (("i", "j", "ij"), "", (3,), (1,), (3, 4)),
            (("ij", "ik"), "jki", (2, 3), (2, 4)),
        ]
        return [
            Sample(tuple(_draw(*s) for s in shapes), {"terms": t, "result": r}) for t, r, *shapes in cases
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        values = [np.asarray(a) for a in arrays]
        extent = {
            c: max(v.shape[t.index(c)] for t, v in zip(self.terms, values, strict=True) if c in t)
            for t in self.terms
            for c in t
        }
        full = [
            np.broadcast_to(v, tuple(extent[c] for c in t)) for t, v in zip(self.terms, values, strict=True)
        ]
        return [np.asarray(np.einsum(f"{','.join(self.terms)}->{self.result}", *full))]


@operator("Einsum")
class Einsum(Operator):
    """Products summed over labelled axes. A product of two becomes transposes, reshapes and a matrix
    product.
    """

    equation: str = ""

    def _terms(self, inputs: Inputs) -> tuple[list[str], str]:
        """Labels of each input and of the result; axes under an ellipsis get upper-case Greek letters."""
        left, arrow, right = self.equation.replace(" ", "").partition("->")
        terms = left.split(",")
        if (
            len(terms) != len(inputs)
            or not re.fullmatch(r"[A-Za-z.,]*", left)
            or not re.fullmatch(r"[A-Za-z.]*", right)
        ):
            raise OperatorError(f"equation '{self.equation}' does not fit {len(inputs)} inputs")
        count = max(
            (
                required(inputs, k).type.rank - len(t.replace("...", ""))
                for k, t in enumerate(terms)
                if "..." in t
            ),
            default=0,
        )
        hidden = "".join(chr(0x391 + k) for k in range(max(count, 0)))
        plain = [t.replace("...", "") for t in terms]
        for k, t in enumerate(terms):
            rank = required(inputs, k).type.rank - len(plain[k])
            terms[k] = t.replace("...", hidden[len(hidden) - rank :] if rank > 0 else "")
            if len(terms[k]) != required(inputs, k).type.rank:
                raise OperatorError(f"'{t}' does not fit {required(inputs, k).type}")
        if arrow:
            result = right.replace("...", hidden)
        else:
            seen = "".join(plain)
            result = hidden + "".join(sorted(c for c in set(seen) if seen.count(c) == 1))
        if any(c not in "".join(terms) for c in result) or len(set(result)) != len(result):
            raise OperatorError(f"the result of equation '{self.equation}' is not defined by its inputs")
        return terms, result

    def infer(self, inputs: Inputs) -> list[TensorType]:
        terms, result = self._terms(inputs)
        return Contraction(tuple(terms), result).infer(inputs)

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        terms, result = self._terms(inputs)
        values = [required(inputs, k) for k in range(len(inputs))]
        while len(values) > 2:
            keep = set(result) | set("".join(terms[2:]))
            inner = "".join(c for c in dict.fromkeys(terms[0] + terms[1]) if c in keep)
            values[:2] = [_product(build, values[0], terms[0], values[1], terms[1], inner)]
            terms[:2] = [inner]
        if len(values) == 1:
            return [build(Contraction((terms[0],), result), values[0])]
        return [_product(build, values[0], terms[0], values[1], terms[1], result)]

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [
            ("ij,jk->ik", (3, 4), (4, 5)),
            ("bij,bjk->ikb", (2, 3, 4), (2, 4, 5)),
            ("i,i->", (5,), (5,)),
            ("...ii->...i", (2, 3, 3)),
            ("ij->i", (3, 4)),
            ("bhwc,hkc->bhwk", (2, 3, 4, 5), (3, 6, 5)),
            ("ij,jk", (2, 3), (3, 4)),
            ("i,j,k->kij", (2,), (3,), (4,)),
            ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
            ("ii,ij->j", (3, 3), (3, 4)),
            ("ijk,jl->il", (2, 3, 4), (3, 5)),
            ("ij,jkl->ik", (2, 3), (3, 4, 5)),
            ("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 2), (2, 5)),
        ]
        small = tuple(np.asarray(40 * _draw(*s), np.int8) for s in ((3, 4), (4, 5)))  # sums of it wrap
        return [
            *(Sample(tuple(_draw(*s) for s in shapes), {"equation": e}) for e, *shapes in cases),
            Sample(small, {"equation": "ij,jk->ik"}),
        ]


def _product(build: Build, a: Value, ta: str, b: Value, tb: str, result: str) -> Value:
    """Contraction of two values: a batched matrix product where labels allow it, else loops."""
    extents: dict[str, int] = dict(zip(ta + tb, a.shape + b.shape, strict=True))
    plain = len(set(ta)) == len(ta) and len(set(tb)) == len(tb)
    same = all(a.shape[ta.index(c)] == b.shape[tb.index(c)] for c in ta if plain and c in tb)
    alone = any(c not in tb + result for c in ta) or any(c not in ta + result for c in tb)
    summed = [c for c in ta if c in tb and c not in result]
    if not plain or not same or alone or not summed:
        return build(Contraction((ta, tb), result), a, b)
    batch = [c for c in ta if c in tb and c in result]
    rows, columns = [c for c in ta if c not in tb], [c for c in tb if c not in ta]

    def extent(labels: list[str]) -> tuple[int, ...]:
        return tuple(extents[c] for c in labels)

    def size(labels: list[str]) -> int:
        return int(np.prod(extent(labels), dtype=np.int64))

    def arranged(value: Value, term: str, labels: list[str], shape: tuple[int, ...]) -> Value:
        moved = build(Transpose(tuple(term.index(c) for c in labels)), value)
        return build(ReshapeTo(shape), moved)

    left = arranged(a, ta, batch + rows + summed, (*extent(batch), size(rows), size(summed)))
    right = arranged(b, tb, batch + summed + columns, (*extent(batch), size(summed), size(columns)))
    y = build(OPERATORS["", "MatMul"](), left, right)
    y = y if y.dtype is a.dtype else build(Cast(a.dtype), y)  # sums of small integers are wider
    order = batch + rows + columns
    y = build(ReshapeTo(extent(order)), y)
    return build(Transpose(tuple(order.index(c) for c in result)), y)


@operator("Det")
class Det(Operator):
    """Determinants of small matrices, by expansion along the first row."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = numeric(inputs)
        if x.type.rank < 2 or x.shape[-1] != x.shape[-2]:
            raise OperatorError(f"takes square matrices, not {x.type}")
        if x.shape[-1] > 5:
            raise OperatorError("matrices larger than 5 x 5 are not supported", "E202")
        return [TensorType(x.dtype, x.shape[:-2])]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)

        def minor(row: int, columns: tuple[int, ...]) -> Expr:
            if not columns:
                return const(1, x.dtype)
            total: Expr = const(0, x.dtype)
            for k, c in enumerate(columns):
                product = call(
                    "mul",
                    at(x, (*index, const(row), const(c))),
                    minor(row + 1, columns[:k] + columns[k + 1 :]),
                )
                total = call("sub" if k % 2 else "add", total, product)
            return total

        return minor(0, tuple(range(x.shape[-1])))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((_draw(*n),)) for n in ((1, 1), (2, 2), (3, 3), (4, 4), (2, 3, 3), (5, 5))]
