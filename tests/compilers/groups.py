"""The rows of the matrix: what is compiled, in units of a program each, always the same ones.

A unit is made for one kind of code (`aot-model --target`); what the compiler refuses there, or no oracle
knows, is left out, and of code for hosts what is the same C as for `c`, which the same columns get.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from batch import Case, generate
from translation_unit import Generated

from .judge import Expectation, Tolerance
from .models import model_program, model_units
from .program import Program, program_of

PER_UNIT = 24
CONFORMANCE = 300
GRAPHS = 200
NETWORKS = 48
"""Of each kind."""

sys.path += [
    str(Path(__file__).parents[1] / folder)
    for folder in ("kernels", "conformance", "operators", "random_networks")
]


@dataclass(frozen=True)
class Unit:
    """group: conformance, samples, graphs, networks, kernels, models, foreign. build: the program for a
    target, None where there is none.
    """

    group: str
    name: str
    build: Callable[[str, Path], Program | None]
    little_endian: bool = False
    """Whether it is code for Arm's cores, whose portable twins are for little-endian machines."""

    @property
    def label(self) -> str:
        return f"{self.group}/{self.name}"


def units() -> list[Unit]:
    """All units; what they are made of is computed when they are built."""
    return [
        *_small("conformance", CONFORMANCE, _conformance),
        *_small("samples", len(_rows()), _samples),
        *_small("graphs", GRAPHS, _graphs),
        *_small("networks", 3 * NETWORKS, _networks),
        *_kernels(),
        *(
            Unit(group, name, lambda target, folder, g=group, n=name: model_program(g, n, target, folder))
            for group, name in model_units()
        ),
    ]


# --- models of one operator or a few ------------------------------------------------------------------------

Candidate = tuple[Case, Callable[[], tuple[tuple[np.ndarray, ...], ...]], Callable[[np.ndarray], Tolerance]]
"""A case, the outputs by each oracle, the tolerance of an output."""


def _small(group: str, count: int, candidates: Callable[[], Sequence[Candidate]]) -> Iterator[Unit]:
    def build(first: int) -> Callable[[str, Path], Program | None]:
        return lambda target, folder: program_of_cases(candidates()[first : first + PER_UNIT], target, folder)

    for first in range(0, count, PER_UNIT):
        yield Unit(group, f"{first:04}", build(first))


def program_of_cases(candidates: Iterable[Candidate], target: str, folder: Path) -> Program | None:
    items: list[Generated] = []
    inputs: list[tuple[np.ndarray, ...]] = []
    expected: list[Expectation] = []
    left_out: list[str] = []
    for number, (case, oracles, tolerance) in enumerate(candidates):
        case, made = _with_constants(case, folder, number, target)
        if target.startswith("host") and isinstance(made, Generated):
            plain = generate(folder, number, case, "c")
            if isinstance(plain, Generated) and _computing(plain) == _computing(made):
                continue  # the same columns have the program for `c`
        answers = oracles() if isinstance(made, Generated) else ()
        if not isinstance(made, Generated) or not answers:
            left_out.append(
                f"{case.name}: "
                f"{'no oracle computes it' if isinstance(made, Generated) else made.message.splitlines()[0][:160]}"  # noqa: E501
            )
            continue
        items.append(made)
        inputs.append(case.inputs)
        expected.append(Expectation(case.name, answers, tuple(tolerance(want) for want in answers[0])))
    return program_of(folder, items, inputs, expected, left_out) if items else None


_IDLE = re.compile(
    r"/\*.*?\*/"
    r"|^#if \w+_BUILD != .*?^#endif\n"
    r"|^#if defined\(__GNUC__\) && !defined\(AOT_MODEL_NO_ADVICE\)\n.*?^#endif\n#endif\n",
    re.DOTALL | re.MULTILINE,
)


def _computing(made: Generated) -> list[str]:
    """The C of a case without comments, the number of the build, and advice about other targets."""
    return _IDLE.sub("", made.source).split()


def _with_constants(case: Case, folder: Path, number: int, target: str) -> tuple[Case, object]:
    """The C of a case; with its small inputs as constants where they must be."""
    import suite

    made = generate(folder, number, case, target)
    for widest, floats in ((16, False), (16, True)):
        if (
            not isinstance(made, Generated)
            and "[E203]" in made.message
            and (bound := suite.bound(case, widest, floats))
        ):
            again = generate(folder, number, bound, target)
            if isinstance(again, Generated):
                return bound, again
    return case, made


@cache
def _conformance() -> list[Candidate]:
    import json

    import suite

    folder = Path(suite.__file__).parent
    rows = json.loads((folder / "results.json").read_text())["cases"]
    # those are large networks
    passed = [name for name, row in rows.items() if row["status"] == "pass" and row["kind"] != "light"]
    chosen = set(sorted(passed, key=_hash)[:CONFORMANCE])
    tests = [t for t in suite.load_tests() if t.name in chosen and not t.random]
    return [
        _conformance_case(t, suite.cases_of(t)[0], t.data[0][1])
        for t in sorted(tests, key=lambda t: _hash(t.name))
    ]


def _conformance_case(test: object, case: Case, outputs: Sequence[object]) -> Candidate:
    def oracles() -> tuple[tuple[np.ndarray, ...], ...]:
        flat = [
            np.asarray(w) for e in outputs for w in (e if isinstance(e, list) else [] if e is None else [e])
        ]
        return (tuple(w.astype(object) if w.dtype.kind in "SU" else w for w in flat),)

    loose = Tolerance(test.rtol, test.atol, integers=True)  # type: ignore[attr-defined]
    return case, oracles, lambda want: loose


@cache
def _samples() -> list[Candidate]:
    """The rows of the suite over the registry, with its oracles."""
    from oracles import TOLERANCE, expected
    from rows import Row, label_of
    from verdict import ERRS

    def oracles(row: Row) -> tuple[tuple[np.ndarray, ...], ...]:
        found = expected(row).outputs
        trusted = {
            oracle: outputs for oracle, outputs in found.items() if (oracle, label_of(row.kind)) not in ERRS
        } or found
        return tuple(
            tuple(w.astype(object) if w.dtype.kind in "SU" else w for w in outputs)
            for outputs in trusted.values()
        )

    def tolerance(row: Row, want: np.ndarray) -> Tolerance:
        near = TOLERANCE.get(str(want.dtype), 2e-5)
        return (
            Tolerance(near, max(near, row.sample.tolerance))
            if want.dtype.kind in "fVc"
            else Tolerance(0.0, row.sample.tolerance, integers=row.sample.tolerance > 0)
        )

    return [(row.case, partial(oracles, row), partial(tolerance, row)) for row in _rows()]


@cache
def _rows() -> list[Any]:
    from rows import registry_rows

    return list(registry_rows())


@cache
def _graphs() -> list[Candidate]:
    import onnx

    import test_random_graphs

    rng = np.random.default_rng(1)
    found: list[Candidate] = []
    for k, model in enumerate(test_random_graphs.generated(GRAPHS)):
        feeds = tuple(
            np.asarray(rng.uniform(-2, 2, [d.dim_value for d in i.type.tensor_type.shape.dim]), np.float32)
            for i in model.graph.input
        )

        def oracles(model=model, feeds=feeds) -> tuple[tuple[np.ndarray, ...], ...]:  # type: ignore[no-untyped-def]
            evaluator = onnx.reference.ReferenceEvaluator(model, new_ops=[test_random_graphs.Softsign])
            return (
                tuple(
                    map(
                        np.asarray,
                        evaluator.run(
                            None, {i.name: x for i, x in zip(model.graph.input, feeds, strict=True)}
                        ),
                    )
                ),
            )

        found.append((Case(f"graph {k}", model, feeds), oracles, _tolerance_of_graph))
    return found


def _tolerance_of_graph(want: np.ndarray) -> Tolerance:
    return Tolerance(1e-4, 1e-5 * max(float(np.max(np.abs(want), initial=0.0)), 1.0))


@cache
def _networks() -> list[Candidate]:
    import network_campaign as campaign

    drawn = ((kind, make(k)) for kind, make in campaign.MAKERS.items() for k in range(NETWORKS))
    return [
        (n.case, lambda n=n: n.wanted, partial(_tolerance_of_network, kind))  # type: ignore[misc]
        for kind, n in drawn
        if n is not None
    ]


def _tolerance_of_network(kind: str, want: np.ndarray) -> Tolerance:
    """Integers are equal; a quantised number on the edge between two steps tips with the last bit of a
    float."""
    import network_campaign as campaign

    if want.dtype.kind in "iu":
        return Tolerance(0, 0)
    largest = max(float(np.abs(want).max(initial=0.0)), 1e-3)
    return Tolerance(0, (campaign.QUANTISED_ERROR if kind == "qdq" else campaign.FLOAT_ERROR) * largest)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


# --- kernels ------------------------------------------------------------------------------------------------


def _kernels() -> Iterator[Unit]:
    for family in ("conv", "window", "matmul"):
        yield Unit(
            "kernels", f"float32-{family}", lambda target, folder, f=family: _float32(f, target, folder)
        )  # type: ignore[misc]
    for seed in range(4):
        yield Unit(
            "kernels", f"int8-plain-{seed}", lambda target, folder, s=seed: _int8_plain(s, target, folder)
        )  # type: ignore[misc]
        yield Unit(
            "kernels",
            f"int8-dsp-{seed}",
            lambda target, folder, s=seed: _int8_dsp(s, target, folder),
            little_endian=True,
        )  # type: ignore[misc]
        yield Unit(
            "kernels", f"int8-avx2-{seed}", lambda target, folder, s=seed: _int8_avx2(s, target, folder)
        )  # type: ignore[misc]
    for family in ("conv", "depthwise", "dense", "pool", "sum"):
        yield Unit(
            "kernels",
            f"int8-mve-{family}",
            lambda target, folder, f=family: _int8_mve(f, target, folder),
            little_endian=True,
        )  # type: ignore[misc]


def _float32(family: str, target: str, folder: Path) -> Program | None:
    import test_float32
    from float32_cases import input_bytes, main_source, unit

    from aot_model.kernels.float32.dialects import DIALECTS
    from aot_model.targets.registry import parse_target

    dialect, rng = DIALECTS[parse_target(target).dialect()], np.random.default_rng(4)
    if target not in ("c", "cortex-m55") and not target.startswith("host"):
        return None  # the same kernels as those of `c`
    made = {"conv": test_float32.conv_cases, "window": test_float32.window_cases}
    cases = made[family](rng, dialect, 10) if family in made else test_float32.matmul_cases(rng, dialect)
    items = tuple(
        Generated(f"k{k}", "", "", "", (), (("y", "float32", c.want.shape),)) for k, c in enumerate(cases)
    )
    expected = tuple(
        Expectation(
            c.name,
            ((c.want.astype(np.float32),),),
            (Tolerance(1e-5, 1e-5 * max(1.0, float(np.abs(c.want[np.isfinite(c.want)]).max(initial=0)))),),
        )
        for c in cases
    )
    (folder / "unit.c").write_text(unit(cases))
    (folder / "main.c").write_text(main_source(cases))
    given = np.frombuffer(input_bytes(cases), np.float32)
    return Program(folder, ("main.c", "unit.c"), items, ((given,),), expected)


def _checking(text: str, folder: Path) -> Program:
    (folder / "unit.c").write_text(text)
    return Program(folder, ("unit.c",))


def _int8_plain(seed: int, target: str, folder: Path) -> Program | None:
    import kernel_program
    import test_int8_dsp

    return (
        _checking(kernel_program.program(test_int8_dsp.plain_cases(seed)), folder) if target == "c" else None
    )


def _int8_dsp(seed: int, target: str, folder: Path) -> Program | None:
    """The portable twins too, where there is no DSP extension."""
    import kernel_program
    import test_int8_dsp

    return _checking(kernel_program.program(test_int8_dsp.dsp_cases(seed)), folder) if target == "c" else None


def _int8_avx2(seed: int, target: str, folder: Path) -> Program | None:
    import kernel_program
    import test_int8_host

    rng = np.random.default_rng(seed)
    if target not in ("host,vector=v8", "host,vector=v16"):
        return None
    return _checking(
        kernel_program.program(
            [*test_int8_host.convolutions(rng, test_int8_host.AVX2), *test_int8_host.channelwise(rng)]
        ),
        folder,
    )


def _int8_mve(family: str, target: str, folder: Path) -> Program | None:
    """The portable twins too, where there is no MVE."""
    import int8_program
    import test_int8_mve

    if target not in ("c", "cortex-m55"):
        return None
    cases = [replace(c, label=f"case {k}") for k, c in enumerate(test_int8_mve.FAMILIES[family]())]
    return _checking(int8_program.program(cases, device=target == "cortex-m55"), folder)
