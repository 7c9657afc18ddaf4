"""Operators on strings: concatenate, split, normalise, match a regular expression.

A result that does not fit a slot ends the run with AOT_MODEL_ERROR_STRING. Source: ONNX operator
specification.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot_model.c.names import bytes_literal
from aot_model.c.text import CText, block
from aot_model.ir.admissible import Range
from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed
from aot_model.kernels.site import Site
from aot_model.ops.dynamic import clear_rest, put_shape, shape_type
from aot_model.ops.registry import broadcast, operator, required
from aot_model.text import letter_case
from aot_model.text.pattern import PatternError
from aot_model.text.regular_expressions import compile_pattern

HEADER = "aot_model/strings.h"


def strings_input(inputs: Inputs, index: int = 0) -> Value:
    """An input that is a tensor of strings."""
    value = required(inputs, index)
    if not value.dtype.is_string:
        raise OperatorError(f"takes strings, not {value.type}")
    return value


def packed_words(words: Sequence[bytes]) -> list[Packed]:
    """The tables of aot_model_string_find: sorted words one behind the other, each with a NUL, and where they
    begin.
    """
    begins = np.cumsum([0, *(len(w) + 1 for w in words)])[:-1]
    text = b"".join(w + b"\0" for w in words) or b"\0"
    last = (Range(0, 0, len(text) - 1),)  # where reading ends at the latest
    return [
        Packed("words", np.frombuffer(text, np.uint8), 1, last),
        Packed("begins", begins.astype(np.int32) if words else np.zeros(1, np.int32)),
    ]


def possible(word: object, dtype: DType) -> bool:
    """Whether an element can be this key: a longer one would be equal to the part of it that fits a slot."""
    return not isinstance(word, bytes) or (len(word) < dtype.size and b"\0" not in word)


def texts(*rows: str) -> np.ndarray:
    """Strings of a sample."""
    return np.asarray(rows, dtype=object)


@operator("StringConcat", stores_itself=True, strings=True)
class StringConcat(Operator):
    """Element by element, one behind the other, with broadcasting."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = strings_input(inputs, 0), strings_input(inputs, 1)
        return [TensorType(a.dtype, broadcast(a.shape, b.shape))]

    def lower(self, site: Site) -> None:
        y, size = site.node.outputs[0], site.node.outputs[0].dtype.size

        def element(name: str, value: Value) -> str:
            strides = [0] * (y.type.rank - value.type.rank) + [
                s if n > 1 else 0 for s, n in zip(strides_of(value.shape), value.shape, strict=True)
            ]
            terms = [
                f"i / {step} % {n} * {stride}"
                for step, n, stride in zip(strides_of(y.shape), y.shape, strides, strict=True)
                if stride and step and n
            ]
            return f"{name}[{'i' if value.shape == y.shape else ' + '.join(terms) or '0'}].text"

        text = CText()
        with text.loop("i", str(y.type.elements)):
            for name, source, value in (("a", "x0", site.input(0)), ("b", "x1", site.input(1))):
                text.line(f"const char *const {name} = {element(source, value)};")
                text.line(f"const int32_t {name}_length = aot_model_string_length({name}, {size});")
            with text.block(f"if (a_length + b_length >= {size})"):
                text.line("return AOT_MODEL_ERROR_STRING;")
            with text.loop("k", str(size)):
                text.line(
                    "y[i].text[k] = k < a_length ? a[k] : (char)(k < a_length + b_length ? b[k - a_length] : "
                    "'\\0');"
                )
        text.line("return AOT_MODEL_OK;")
        site.call(
            "string_concat",
            block(text),
            [Argument("x0", site.input(0)), Argument("x1", site.input(1)), written("y", y)],
            includes={HEADER},
            fails=True,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        a = texts("a", "", "ü€", "x" * 40)
        return [
            Sample((a, texts("b", "", "c", "y" * 23))),
            Sample((a.reshape(2, 1, 2), texts("-", "+").reshape(2, 1))),
            Sample((a[:1].reshape(()), a[:2])),
        ]


@operator("StringSplit", stores_itself=True, strings=True)
class StringSplit(Operator):
    """Substrings between delimiters, rows filled up with empty ones; and how many there are. Without a
    delimiter: between white space (ASCII), which is dropped at both ends."""

    delimiter: str = ""
    maxsplit: int | None = None

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: required(inputs).type.rank}

    def _most(self, x: Value) -> int:
        """Substrings that the longest string can have."""
        bytes_, width = x.dtype.size - 1, len(self.delimiter.encode())
        most = bytes_ // width + 1 if width else (bytes_ + 1) // 2
        return most if self.maxsplit is None or self.maxsplit < 0 else min(most, self.maxsplit + 1)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = strings_input(inputs)
        return [
            TensorType(x.dtype, (*x.shape, self._most(x))),
            TensorType(DType.INT64, x.shape),
            shape_type(x.type.rank + 1),
        ]

    def lower(self, site: Site) -> None:
        x, y, counts = site.input(0), site.node.outputs[0], site.wanted(1)
        width, size = len(self.delimiter.encode()), x.dtype.size
        last = "false" if self.maxsplit is None or not 0 <= self.maxsplit < size else f"n == {self.maxsplit}"
        following = (
            f"aot_model_string_next(x[i].text, length, {bytes_literal(self.delimiter.encode())}, "
            f"{width}, {last}, &at, &begin, &end)"
        )
        text = CText()
        text.line("int32_t most = 0;")
        for write in (False, True):
            with text.loop("i", str(x.type.elements)):
                text.line(f"const int32_t length = aot_model_string_length(x[i].text, {size});")
                text.line("int32_t at = 0;")
                text.line("int32_t begin = 0;")
                text.line("int32_t end = 0;")
                text.line("int32_t n = 0;")
                with text.block(f"while ({following})"):
                    if write:
                        text.line(
                            "aot_model_string_put(y[i * most + n].text, x[i].text + begin, end - begin, "
                            f"{size});"
                        )
                    text.line("++n;")
                if write:
                    with text.block("for (; n < most; n++)"):
                        text.line(f'aot_model_string_put(y[i * most + n].text, "", 0, {size});')
                else:
                    if counts is not None:
                        text.line("counts[i] = n;")
                    text.line("most = n > most ? n : most;")
        shapes = put_shape(text, site, 2, [*map(str, x.shape), "most"])
        results = [written("y", y), *([written("counts", counts)] if counts is not None else []), *shapes]
        site.call("string_split", block(text), [Argument("x", x), *results], includes={HEADER})

    @classmethod
    def samples(cls) -> list[Sample]:
        x = texts("a,b,,c", "", ",", "ab", " a  b ", "abab").reshape(2, 3)
        forms: list[dict[str, object]] = [
            {},
            {"delimiter": ","},
            {"delimiter": ",", "maxsplit": 1},
            {"delimiter": "ab"},
            {"delimiter": ",", "maxsplit": 0},
        ]
        return [Sample((x,), f, outputs=2) for f in forms]


@operator("StringNormalizer", stores_itself=True, strings=True)
class StringNormalizer(Operator):
    """Without the stop words, then in small letters or in capitals (text/letter_case.py; the locale does not
    matter).

    When nothing is left the result is one empty string.
    """

    case_change_action: str = "NONE"
    is_case_sensitive: int = 0
    locale: str = ""
    stopwords: tuple[str, ...] = ()

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return {0: required(inputs).type.rank - 1} if self.stopwords else {}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = strings_input(inputs)
        if self.case_change_action not in ("NONE", "LOWER", "UPPER"):
            raise OperatorError(f"case_change_action is '{self.case_change_action}'")
        if x.type.rank not in (1, 2) or (x.type.rank == 2 and x.shape[0] != 1):
            raise OperatorError(f"takes [words] or [1, words], not {x.type}")
        least = (*x.shape[:-1], max(x.shape[-1], 1))
        return [TensorType(x.dtype, least), *([shape_type(x.type.rank)] if self.stopwords else [])]

    def lower(self, site: Site) -> None:
        x, y = site.input(0), site.node.outputs[0]
        size = x.dtype.size
        fold = bool(self.stopwords) and not self.is_case_sensitive
        words = sorted(
            {
                (letter_case.lower(w) if fold else w).encode()
                for w in self.stopwords
                if possible(w.encode(), x.dtype)
            }
        )
        tables = packed_words(words) if words else []
        text = CText()
        target = "y[count].text" if words else "y[i].text"
        put = f"aot_model_string_put({target}, x[i].text, length, {size});"
        if words:
            text.line("int32_t count = 0;")
        with text.loop("i", str(x.shape[-1])):
            text.line(f"const int32_t length = aot_model_string_length(x[i].text, {size});")
            text.line(put)
            if fold:
                text.line(f"aot_model_change_case({target}, length, false);")
            if words:
                with text.block(
                    f"if (aot_model_string_find(words, begins, {len(words)}, {target}, {size}) >= 0)"
                ):
                    text.line("continue;")
            if self.case_change_action == "NONE" and fold:
                text.line(put)
            if self.case_change_action == "UPPER" or (self.case_change_action == "LOWER" and not fold):
                text.line(
                    f"aot_model_change_case({target}, length, "
                    f"{'true' if self.case_change_action == 'UPPER' else 'false'});"
                )
            if words:
                text.line("++count;")
        if words:
            with text.block("if (count == 0)"):
                text.line(f'aot_model_string_put(y[0].text, "", 0, {size});')
                text.line("count = 1;")
            clear_rest(text, "y", y, "count", 1)
        elif not x.type.elements:
            text.line(f'aot_model_string_put(y[0].text, "", 0, {size});')
        shapes = (
            put_shape(
                text, site, 1, [*("1" for _ in x.shape[:-1]), "count" if words else str(max(x.shape[-1], 1))]
            )
            if self.stopwords
            else []
        )
        helpers = (letter_case.change_case_function(),) if fold or self.case_change_action != "NONE" else ()
        arguments = [Argument("x", x), *(Argument(t.name, t) for t in tables), written("y", y), *shapes]
        site.call("string_normalizer", block(text), arguments, includes={HEADER, "string.h"}, helpers=helpers)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = texts("Monday", "tuesday", "MONDAY", "monday")
        stop: dict[str, object] = {"stopwords": ("Monday", "noon")}
        exact: dict[str, object] = {**stop, "is_case_sensitive": 1}
        cases = [{"case_change_action": a, **s} for a in ("LOWER", "UPPER") for s in ({}, stop, exact)]
        return [
            *(Sample((x,), c) for c in cases),
            Sample((x,), exact),
            Sample((x.reshape(1, 4),), cases[1]),
            Sample((x[:1],), exact),
            Sample((x[:0].reshape(1, 0),), {"stopwords": ("x" * 80,)}),
        ]


@operator("RegexFullMatch", stores_itself=True, strings=True)
class RegexFullMatch(Operator):
    """Whether the whole string matches: a deterministic automaton made at compile time reads each byte
    once.
    """

    pattern: str

    def infer(self, inputs: Inputs) -> list[TensorType]:
        try:
            compile_pattern(self.pattern)
        except PatternError as error:
            raise OperatorError(f"the pattern '{self.pattern}': {error}", "E202") from None
        return [TensorType(DType.BOOL, strings_input(inputs).shape)]

    def lower(self, site: Site) -> None:
        x, automaton = site.input(0), compile_pattern(self.pattern)
        classes = automaton.classes
        text = CText()
        with text.loop("i", str(x.type.elements)):
            text.line(f"int32_t state = {automaton.start};")
            with text.block(
                f"for (int32_t k = 0; k < {x.dtype.size - 1} && x[i].text[k] != '\\0' && state != 0; k++)"
            ):
                text.line(f"state = next[state * {classes} + class_of[(unsigned char)x[i].text[k]]];")
            text.line("y[i] = accepts[state] != 0;")
        wide = np.uint8 if len(automaton.accepts) <= 256 else np.uint16
        tables = {
            "class_of": np.asarray(automaton.class_of, np.uint8),
            "next": np.asarray(automaton.next, wide),
            "accepts": np.asarray(automaton.accepts, np.uint8),
        }
        arguments = [
            Argument("x", x),
            *(Argument(k, Packed(k, v)) for k, v in tables.items()),
            written("y", site.node.outputs[0]),
        ]
        site.call(
            "regex_full_match",
            block(text),
            arguments,
            note=f"{len(automaton.accepts)} states over {classes} classes of bytes; state 0 matches nothing more",  # noqa: E501
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x = texts("", "a", "ab", "abb", "ü", "a b", "12", "a.b@c.de", "AB\n", "été").reshape(2, 5)
        patterns = [
            "a*",
            "(a|b)+",
            r"\w+@\w+\.\w{2}|..",
            "[^a-c]*",
            r"\d+",
            "a?b{2,3}|ab",
            "^ab$",
            r".*\bb\b.*",
            "[à-ÿ].*",
            "(?i)ab",
            r"(?s).*",
            r"\S+",
        ]
        return [Sample((x,), {"pattern": p}) for p in patterns]
