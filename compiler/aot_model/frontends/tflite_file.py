"""The TFLite file: from bytes to plain records, with every access guarded.

The flatbuffer classes of the `tflite` package trust what they read: offsets may point anywhere. Here each
index, length and enumeration is checked against the file before it is used, so what leaves this module is
consistent: indices are in range, the data of a constant has the size of its tensor, quantisation fits the
tensor. Source: schema.fbs of TensorFlow Lite, version 3.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import flatbuffers.number_types as numbers
import tflite
from flatbuffers.table import Table

from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends.tflite_tensors import Tensor, TensorReader, short, vector

_BUILTIN: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
_OPTIONS: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOptions).items() if isinstance(v, int)}
_OPTIONS2: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOptions2).items() if isinstance(v, int)}

DAMAGE = (
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    OverflowError,
    AttributeError,
    KeyError,
    MemoryError,
)
"""What reading a damaged flatbuffer may raise."""

_EMPTY_TABLE = Table(bytearray(b"\x04\x00\x04\x00\x04\x00\x00\x00"), 4)


@dataclass(frozen=True, eq=False)
class Options:
    """The attributes of an operator; those that the file does not have are the schema's defaults."""

    kind: str
    table: Table

    def get(self, kind: str, field_name: str) -> Any:
        """The field of an options table `kind`; its default when the operator has no options or other
        ones.
        """
        cls = getattr(importlib.import_module(f"tflite.{kind}"), kind)
        reader = cls()
        table = self.table if self.kind == kind else _EMPTY_TABLE
        reader.Init(table.Bytes, table.Pos)
        return getattr(reader, field_name)()

    def ints(self, kind: str, field_name: str) -> tuple[int, ...]:
        """A field that is a vector of whole numbers; () when it is absent."""
        return tuple(int(v) for v in self.floats(kind, field_name, 64))

    def floats(self, kind: str, field_name: str, most: int = 1 << 16) -> tuple[float, ...]:
        """A field that is a vector of at most so many numbers; () when it is absent."""
        if self.get(kind, f"{field_name}Length") == 0:
            return ()
        found = self.get(kind, f"{field_name}AsNumpy")
        if len(found) > most:
            raise ValueError(f"{field_name} has {len(found)} elements")
        return tuple(v.item() for v in found)


_BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "CALL": ("CallOptions", ("Subgraph",)),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "IF": ("IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    "STABLEHLO_COMPOSITE": ("StableHLOCompositeOptions", ("DecompositionSubgraphIndex",)),
    "WHILE": ("WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
}
"""The options of operators that run sub-graphs."""


@dataclass(frozen=True, eq=False)
class FileOperator:
    """One operator: tensor indices (-1: absent) and options. `kind` is the builtin's name or
    "CUSTOM:name".
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Options
    custom: bytes

    @property
    def bodies(self) -> list[int]:
        """The numbers of the sub-graphs that it runs, which need not exist."""
        options, names = _BODIES.get(self.kind, ("", ()))
        return [int(self.options.get(options, name)) for name in names]


@dataclass(frozen=True, eq=False)
class SubGraph:
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[FileOperator, ...]
    labels: dict[tuple[str, int], str] = field(default_factory=dict)
    """("input" or "output", tensor) -> the name that the model's signature gives it."""


@dataclass(frozen=True, eq=False)
class File:
    subgraphs: tuple[SubGraph, ...]
    signatures: dict[str, int] = field(default_factory=dict)
    """The name of what a program may run -> its sub-graph; a file need not have any."""
    main: int = 0
    """The sub-graph that is the model."""

    @property
    def graph(self) -> SubGraph:
        """The model itself."""
        return self.subgraphs[self.main]

    def body(self, number: int) -> SubGraph | None:
        """A sub-graph that an operator runs; None where there is none, or it is the model itself."""
        there = 0 <= number < len(self.subgraphs) and number != self.main
        return self.subgraphs[number] if there else None

    def run_by(self, first: int) -> set[int]:
        """A sub-graph and those that its operators run, and theirs."""
        found: set[int] = set()
        waiting = [first]
        while waiting:
            number = waiting.pop()
            if number in found or not 0 <= number < len(self.subgraphs):
                continue
            found.add(number)
            waiting += self.bodies(number)
        return found

    def bodies(self, number: int) -> list[int]:
        """The numbers of the sub-graphs that the operators of one run, which need not exist."""
        found: list[int] = []
        for o in self.subgraphs[number].operators:
            with suppress(*DAMAGE):  # what is damaged is told where the operator is read
                found += o.bodies
        return found


def parse(data: bytes, where: str, signature: str | None = None) -> File:
    """The records of a file; signature: which one is the model, of a file that has several (where nothing is
    said the first sub-graph is). CompileError E102, E202 or E302 with everything that is wrong, E203 when
    there is no such signature.
    """
    problems: list[Problem] = []
    try:
        reader = _Reader(data, where, problems)
        file = reader.file()
    except DAMAGE as error:
        raise CompileError(
            [
                Problem(
                    "E102", f"not a valid TFLite model: {short(str(error)) or type(error).__name__}", where
                ),
                *problems,
            ]
        ) from None
    if problems:
        raise CompileError(dict.fromkeys(problems))
    return file if signature is None else _chosen(file, signature, where)


def _chosen(file: File, signature: str, where: str) -> File:
    number = file.signatures.get(signature, -1)
    if not 0 <= number < len(file.subgraphs):
        names = ", ".join(f"'{short(name)}'" for name in file.signatures)
        raise fail(
            "E203",
            f"--signature {short(signature)}: the model has no such signature",
            where=where,
            hint=f"it has {names}" if names else "it has none at all",
        )
    return replace(file, main=number)


def with_first(data: bytes, file: File) -> bytes:
    """The file with its model as first sub-graph, for runtimes that show no other's tensors. Empty where
    operators run one of the two that would change places, by their numbers.
    """
    if file.main == 0:
        return data
    table = tflite.Model.GetRootAs(data, 0)._tab
    bodies = {body for number in range(len(file.subgraphs)) for body in file.bodies(number)}
    places = [table.Vector(table.Offset(8)) + 4 * k for k in (0, file.main)]  # 8: the field `subgraphs`
    tables = [place + int.from_bytes(data[place : place + 4], "little") for place in places]
    if bodies & {0, file.main} or min(tables) <= max(places):
        return b""
    swapped = bytearray(data)
    for place, target in zip(places, reversed(tables), strict=True):
        swapped[place : place + 4] = (target - place).to_bytes(4, "little")
    return bytes(swapped)


class _Reader:
    def __init__(self, data: bytes, where: str, problems: list[Problem]) -> None:
        self.data = data
        self.where = where
        self.problems = problems
        if len(data) < 16:
            raise ValueError("the file is too short")
        self.model = tflite.Model.GetRootAs(data, 0)

    def problem(self, code: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(code, message, self.where, hint))

    def count(self, length: int, what: str) -> int:
        """A number of records, each of which takes at least four bytes of the file."""
        if not 0 <= length <= len(self.data) // 4:
            raise ValueError(f"{length} {what} do not fit the file")
        return length

    def each(self, length: int, get: Callable[[int], Any], what: str) -> Iterator[Any]:
        for k in range(self.count(length, what)):
            yield get(k)

    def file(self) -> File:
        model = self.model
        if model.Version() != 3:
            raise fail(
                "E102",
                f"version {model.Version()} of the TFLite format is not supported",
                where=self.where,
                hint="version 3 is",
            )
        kinds = [
            self._kind(c)
            for c in self.each(model.OperatorCodesLength(), model.OperatorCodes, "operator codes")
        ]
        self.tensors = TensorReader(
            self.data, model, self.count(model.BuffersLength(), "buffers"), self.problem
        )
        budget = len(self.data)
        subgraphs: list[SubGraph] = []
        for g in self.each(model.SubgraphsLength(), model.Subgraphs, "sub-graphs"):
            budget -= g.TensorsLength() + g.OperatorsLength()
            if budget < 0:
                raise ValueError("more tensors and operators than the file can hold")
            subgraphs.append(self._subgraph(g, len(subgraphs), kinds))
        if not subgraphs:
            raise ValueError("it has no sub-graph")
        signatures: dict[str, int] = {}
        for s in self.each(model.SignatureDefsLength(), model.SignatureDefs, "signatures"):
            self._signature(s, subgraphs)
            signatures[(s.SignatureKey() or b"").decode("utf-8", "replace")] = s.SubgraphIndex()
        return File(tuple(subgraphs), signatures)

    def _kind(self, code: Any) -> str:
        # As the runtimes read it, the larger of two fields. BuiltinCode() is the old one wherever the new one
        # is below 127, and writers of today may leave the old one out, which is then 0: ADD.
        at = code._tab.Offset(10)
        written = code._tab.Get(numbers.Int32Flags, at + code._tab.Pos) if at else 0
        number = max(written, code.DeprecatedBuiltinCode())
        name = _BUILTIN.get(number, f"builtin {number}")
        if name != "CUSTOM":
            return name
        text = code.CustomCode()
        return f"CUSTOM:{short(text.decode('utf-8', 'replace')) if text else '?'}"

    def _signature(self, signature: Any, subgraphs: list[SubGraph]) -> None:
        if not 0 <= signature.SubgraphIndex() < len(subgraphs):
            return
        graph = subgraphs[signature.SubgraphIndex()]
        for side, length, get in (
            ("input", signature.InputsLength(), signature.Inputs),
            ("output", signature.OutputsLength(), signature.Outputs),
        ):
            for entry in self.each(length, get, "signature entries"):
                name = entry.Name()
                if name:
                    graph.labels[side, entry.TensorIndex()] = name.decode("utf-8", "replace")

    # --- sub-graphs -----------------------------------------------------------------------------------------

    def _subgraph(self, g: Any, number: int, kinds: list[str]) -> SubGraph:
        tensors = self.tensors.all(list(self.each(g.TensorsLength(), g.Tensors, "tensors")))
        name = (g.Name() or b"").decode("utf-8", "replace") or f"subgraph{number}"
        most = 2 * len(tensors) + 64

        def indices(owner: Any, field_name: str, what: str, optional: bool) -> tuple[int, ...]:
            result = vector(owner, field_name, most, len(self.data))
            for i in result:
                if not (-1 if optional else 0) <= i < len(tensors):
                    raise ValueError(f"{what} names tensor {i} of {len(tensors)}")
            return result

        operators = []
        for k, o in enumerate(self.each(g.OperatorsLength(), g.Operators, "operators")):
            if not 0 <= o.OpcodeIndex() < len(kinds):
                raise ValueError(f"operator {k} has code {o.OpcodeIndex()} of {len(kinds)}")
            kind = kinds[o.OpcodeIndex()]
            what = f"operator {k} ({kind})"
            custom = bytes(o.CustomOptionsAsNumpy()) if o.CustomOptionsLength() else b""
            operators.append(FileOperator(
                k, kind, indices(o, "Inputs", what, True), indices(o, "Outputs", what, False),
                indices(o, "Intermediates", what, True), self._options(o), custom,
            ))  # fmt: skip
        return SubGraph(
            name,
            tensors,
            indices(g, "Inputs", "the sub-graph", False),
            indices(g, "Outputs", "the sub-graph", False),
            tuple(operators),
        )

    def _options(self, o: Any) -> Options:
        for number, table, names in (
            (o.BuiltinOptionsType(), o.BuiltinOptions(), _OPTIONS),
            (o.BuiltinOptions2Type(), o.BuiltinOptions2(), _OPTIONS2),
        ):
            if number and table is not None:
                return Options(names.get(number, "NONE"), table)
        return Options("NONE", _EMPTY_TABLE)
