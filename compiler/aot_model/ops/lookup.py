"""Operators that look values up in a table of keys: encoders of labels and categories of ai.onnx.ml.

They are all FindKey, a binary search, and a Gather from a table in flash. Source: ONNX-ML operator
specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.admissible import ANYTHING
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.strings import encoded
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed
from aot_model.kernels.site import Site
from aot_model.ops.conversion import Cast
from aot_model.ops.indexing import OneHot
from aot_model.ops.movement import Gather
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.strings import HEADER, packed_words, possible, texts

Keys = tuple[Any, ...]


def slots(values: Sequence[str], dtype: DType) -> np.ndarray:
    """Strings of attributes as elements of tensors. OperatorError when one is too long."""
    try:
        return encoded(values, dtype)
    except ValueError as error:
        raise OperatorError(str(error), "E202") from None


@operator("FindKey", domain="aot", stores_itself=True, strings=True)
class FindKey(Operator):
    """Number of the key that an element is equal to; as many as there are keys where it is none of them.

    keys: sorted and different, NaN (equal to every NaN) last; strings as UTF-8. must: an element that is none
    of them ends the run with AOT_MODEL_ERROR_CATEGORY.
    """

    keys: Keys
    must: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if any(isinstance(k, bytes) != x.dtype.is_string for k in self.keys):
            raise OperatorError(f"keys of another type than {x.type}")
        return [TensorType(DType.INT32, x.shape)]

    def lower(self, site: Site) -> None:
        x, y, count = site.input(0), site.node.outputs[0], len(self.keys)
        text = CText()
        if x.dtype.is_string:
            tables = packed_words(self.keys)
            with text.loop("i", str(x.type.elements)):
                text.line(
                    f"const int32_t found = aot_model_string_find(words, begins, {count}, x[i].text, "
                    f"{x.dtype.size});"
                )
                self._store(text, "found >= 0", "found")
        else:
            keys = self._table(x.dtype)
            tables, ordered = [Packed("keys", keys, keys.itemsize, ANYTHING)], sum(k == k for k in self.keys)
            with text.loop("i", str(x.type.elements)):
                text.line("int32_t low = 0;")
                text.line(f"int32_t high = {ordered};")
                with text.block("while (low < high)"):
                    text.line("const int32_t middle = low + (high - low) / 2;")
                    with text.block("if (keys[middle] < x[i])"):
                        text.line("low = middle + 1;")
                    with text.block("else"):
                        text.line("high = middle;")
                if ordered < count:
                    text.line(
                        f"low = x[i] != x[i] ? {ordered} : low < {ordered} && keys[low] == x[i] ? low : "
                        f"{count};"
                    )
                    self._store(text, f"low < {count}", "low")
                else:
                    self._store(text, f"low < {count} && keys[low] == x[i]", "low")
        if self.must:
            text.line("return AOT_MODEL_OK;")
        arguments = [Argument("x", x), *(Argument(t.name, t) for t in tables), written("y", y)]
        site.call(
            "find_key",
            block(text),
            arguments,
            includes={HEADER} if x.dtype.is_string else (),
            note=f"{count} keys",
            fails=self.must,
        )

    def _store(self, text: CText, test: str, found: str) -> None:
        if self.must:
            with text.block(f"if (!({test}))"):
                text.line("return AOT_MODEL_ERROR_CATEGORY;")
            text.line(f"y[i] = {found};")
        else:
            text.line(f"y[i] = {test} ? {found} : {len(self.keys)};")

    def _table(self, dtype: DType) -> np.ndarray:
        """The keys in the type of the elements, or where that is too narrow for one of them in int64."""
        if not self.keys:
            return np.zeros(1, dtype.numpy)
        fits = dtype.is_float or all(dtype.limits[0] <= k <= dtype.limits[1] for k in self.keys)
        return np.asarray(self.keys, dtype.numpy if fits else np.int64)

    @classmethod
    def samples(cls) -> list[Sample]:
        numbers = np.asarray([[3, -1], [10, 4]], np.int64)
        real = np.asarray([1.5, math.nan, 0.0, 7], np.float32)
        return [
            Sample((numbers,), {"keys": (-1, 3, 4)}),
            Sample((real,), {"keys": (0.0, 1.5, math.nan)}),
            Sample((real,), {"keys": (1.5, 7.0)}),
            Sample((numbers,), {"keys": (-1, 3, 4, 10), "must": True}),
            Sample((numbers.astype(np.int8),), {"keys": (-1, 300)}),
            Sample((np.asarray([-128, 127, 0], np.int8),), {"keys": (-128, 127)}),
            Sample((np.asarray([-128, 127, 0], np.int8),), {"keys": (-128, 128)}),
            Sample((np.asarray([-128, 127, 0], np.int8),), {"keys": (-129, 127)}),
            Sample((texts("b", "", "zz", "a"),), {"keys": (b"a", b"b", b"zz")}),
            Sample((numbers,), {"keys": ()}),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        found = [
            next(
                (
                    k
                    for k, key in enumerate(self.keys)
                    if (v.encode() if isinstance(v, str) else v) == key or (v != v and key != key)
                ),
                len(self.keys),
            )
            for v in x.reshape(-1).tolist()
        ]
        return [np.asarray(found, np.int32).reshape(x.shape)]


def mapped(build: Build, x: Value, keys: Sequence[Any], values: np.ndarray, default: np.ndarray) -> Value:
    """values[k] where an element is keys[k], else the default."""
    if len(keys) != len(values):
        raise OperatorError(f"{len(keys)} keys and {len(values)} values")
    if len({"nan" if key != key else key for key in keys}) < len(keys):
        raise OperatorError(
            "a key is there twice: the first counts for ONNX Runtime, the last for ONNX's evaluator",
            "E202",
            "leave out one of them",
        )
    places = {key: k for k, key in enumerate(keys) if key == key and possible(key, x.dtype)}
    order = sorted(places)
    chosen = [places[key] for key in order]
    missing = [k for k, key in enumerate(keys) if key != key]
    if missing:
        order.append(math.nan)
        chosen += missing
    table = np.concatenate([values[chosen], default.reshape(1)])
    return build(Gather(0), build.constant(table), build(FindKey(tuple(order)), x))


@operator("LabelEncoder", domain="ai.onnx.ml", strings=True)
class LabelEncoder(Operator):
    """Each element to the value of the key that it is; in opset 1 between the strings of a list and their
    numbers.
    """

    classes_strings: tuple[str, ...] = ()
    default_float: float = -0.0
    default_int64: int = -1
    default_string: str = "_Unused"
    default_tensor: np.ndarray | None = None
    keys_floats: tuple[float, ...] = ()
    keys_int64s: tuple[int, ...] = ()
    keys_strings: tuple[str, ...] = ()
    keys_tensor: np.ndarray | None = None
    values_floats: tuple[float, ...] = ()
    values_int64s: tuple[int, ...] = ()
    values_strings: tuple[str, ...] = ()
    values_tensor: np.ndarray | None = None
    string_type: DType = DType.STRING64

    def _keys(self, x: Value) -> list[Any]:
        if self.classes_strings:
            return (
                [w.encode() for w in self.classes_strings]
                if x.dtype.is_string
                else list(range(len(self.classes_strings)))
            )
        if self.keys_tensor is not None:
            return list(self.keys_tensor.reshape(-1).tolist())
        return [w.encode() for w in self.keys_strings] or list(self.keys_int64s or self.keys_floats)

    def _values(self, x: Value) -> tuple[np.ndarray, np.ndarray]:
        """(values, default)"""
        strings = self.values_strings or (() if x.dtype.is_string else self.classes_strings)
        if strings:
            return slots(strings, self.string_type), slots([self.default_string], self.string_type)
        if self.values_tensor is not None:
            values = self.values_tensor.reshape(-1)
            default = (
                slots([self.default_string], self.string_type)
                if values.dtype.kind == "S"
                else np.asarray([self.default_int64 if values.dtype.kind == "i" else self.default_float])
            )
            given = default if self.default_tensor is None else self.default_tensor.reshape(-1)
            if given.size != 1:
                raise OperatorError(f"{given.size} values of 'default_tensor', which takes one")
            return values, given.astype(values.dtype)
        if self.values_floats:
            return np.asarray(self.values_floats, np.float32), np.asarray([self.default_float], np.float32)
        integers = self.values_int64s or tuple(range(len(self.classes_strings)))
        return np.asarray(integers, np.int64), np.asarray([self.default_int64], np.int64)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        keys = self._keys(x)
        if (
            not keys
            or isinstance(keys[0], bytes) != x.dtype.is_string
            or (isinstance(keys[0], float) and x.dtype.is_integer)
        ):
            raise OperatorError(f"the keys do not fit {x.type}")
        return [TensorType(DType.of(self._values(x)[0].dtype), x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [mapped(build, x, self._keys(x), *self._values(x))]

    @classmethod
    def samples(cls) -> list[Sample]:
        words = texts("b", "a", "zz", "", "aa").reshape(1, 5)
        numbers = np.asarray([[3, -1], [2**40, 0]], np.int64)
        reals = np.asarray([0.5, np.nan, -2.0, 7.5, np.inf], np.float32)
        return [
            Sample(
                (words,), {"keys_strings": ("a", "b", "aa"), "values_int64s": (7, 8, 9), "default_int64": 42}
            ),
            Sample(
                (words,), {"keys_strings": ("b", ""), "values_strings": ("ü", "empty"), "default_string": "?"}
            ),
            Sample(
                (words,), {"keys_strings": ("b", "a"), "values_floats": (0.5, -1.5), "default_float": 9.0}
            ),
            Sample(
                (numbers,),
                {
                    "keys_int64s": (2**40, -1, 5),
                    "values_strings": ("big", "minus", "five"),
                    "default_string": "none",
                },
            ),
            Sample((numbers,), {"keys_int64s": (3, 0), "values_floats": (1.0, 2.0), "default_float": -1.0}),
            Sample((reals,), {"keys_floats": (7.5, -2.0), "values_int64s": (1, 2), "default_int64": -5}),
            Sample(
                (reals,),
                {
                    "keys_floats": (-2.0, float("nan"), 0.5),
                    "values_strings": ("a", "nan", "b"),
                    "default_string": "z",
                },
            ),
            Sample((words,), {"keys_tensor": texts("b", "aa"), "values_tensor": texts("x", "ü")}),
            Sample((words,), {"keys_strings": ("a", "x" * 70, "zz"), "values_int64s": (1, 2, 3)}),
            *(
                Sample((numbers,), {"keys_tensor": np.asarray([3, 0]), "values_tensor": v, **of})
                for v in (np.asarray([7, 8]), np.asarray([7, 8], np.float32))
                for of in (
                    {},
                    {"default_tensor": np.asarray([9], v.dtype)},
                    {"default_int64": -7, "default_float": 2.5},
                )
            ),
        ]


@operator("CategoryMapper", domain="ai.onnx.ml", strings=True)
class CategoryMapper(Operator):
    """Strings to the integers beside them, or integers to the strings."""

    cats_int64s: tuple[int, ...] = ()
    cats_strings: tuple[str, ...] = ()
    default_int64: int = -1
    default_string: str = "_Unused"
    string_type: DType = DType.STRING64

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if not x.dtype.is_string and x.dtype is not DType.INT64:
            raise OperatorError(f"takes strings or int64, not {x.type}")
        return [TensorType(DType.INT64 if x.dtype.is_string else self.string_type, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        words = [w.encode() for w in self.cats_strings]
        if x.dtype.is_string:
            return [
                mapped(
                    build,
                    x,
                    words,
                    np.asarray(self.cats_int64s, np.int64),
                    np.asarray([self.default_int64], np.int64),
                )
            ]
        return [
            mapped(
                build,
                x,
                self.cats_int64s,
                slots(self.cats_strings, self.string_type),
                slots([self.default_string], self.string_type),
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        cats: dict[str, Any] = {"cats_int64s": (4, -7, 0), "cats_strings": ("four", "minus", "zero")}
        return [
            Sample((texts("zero", "four", "five"),), {**cats, "default_int64": 9}),
            Sample((np.asarray([[-7, 1, 4]], np.int64),), {**cats, "default_string": "?"}),
        ]


@operator("OneHotEncoder", domain="ai.onnx.ml", strings=True)
class OneHotEncoder(Operator):
    """1 at the place of an element's category, else 0, on a new last axis. zeros = 0: other elements end the
    run.
    """

    cats_int64s: tuple[int, ...] = ()
    cats_strings: tuple[str, ...] = ()
    zeros: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if not (self.cats_strings if x.dtype.is_string else self.cats_int64s):
            raise OperatorError(f"the categories do not fit {x.type}")
        return [TensorType(DType.FLOAT32, (*x.shape, len(self.cats_strings or self.cats_int64s)))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        cats: list[Any] = [w.encode() for w in self.cats_strings] or list(self.cats_int64s)
        if not x.dtype.is_string and x.dtype is not DType.INT64:
            x = build(Cast(DType.INT64), x)
        order = sorted((k for k, cat in enumerate(cats) if possible(cat, x.dtype)), key=lambda k: cats[k])
        if len(set(cats)) != len(cats):
            raise OperatorError("a category is there twice")
        found = build(FindKey(tuple(cats[k] for k in order), not self.zeros), x)
        place = build(Gather(0), build.constant([*order, len(cats)], DType.INT32), found)
        return [
            build(
                OneHot(-1),
                place,
                build.constant(len(cats), DType.INT64),
                build.constant([0, 1], DType.FLOAT32),
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((texts("b", "c", "a"),), {"cats_strings": ("c", "x" * 70, "a")}),
            Sample((texts("c", "a").reshape(2, 1),), {"cats_strings": ("c", "a"), "zeros": 0}),
            Sample((np.asarray([[1, 5], [3, 2]], np.int64),), {"cats_int64s": (5, 1, 3)}),
            Sample((np.asarray([[1.0], [3.9]], np.float32),), {"cats_int64s": (5, 1, 3)}),
        ]
