"""The tool of the matrix of compilers and flags: it notices what is wrong, and over the commits everything
has its turn.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from batch import Case, generate
from compilers import models, record, results
from compilers.cells import Cell, run_cell
from compilers.columns import Column, columns, missing
from compilers.groups import Unit, program_of_cases
from compilers.judge import Expectation, Tolerance
from compilers.program import Program, program_of
from compilers.random_flags import ANOTHER_LANGUAGE, bases, random_columns, switches
from matrix import SLICES, TURNS, Choice, chosen, drawn
from onnx_models import model, tensor

needs_big_endian = pytest.mark.skipif(
    bool(missing(next(c for c in columns() if c.big_endian))),
    reason="needs a compiler and an emulator for s390x",
)


def _sum(dtype: type) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model(
        [helper.make_node("Add", ["x", "x"], ["y"])], [tensor("x", (2, 3), kind)], [tensor("y", (2, 3), kind)]
    )


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Two models: the sums of floats and of 64-bit integers."""
    items, inputs, expected = [], [], []
    for k, dtype in enumerate((np.float32, np.int64)):
        x = (np.arange(6).reshape(2, 3) * (2**34 if dtype == np.int64 else 0.5)).astype(dtype)
        made = generate(tmp_path, k, Case(f"case {k}", _sum(dtype), (x,)), "c")
        items.append(made)
        inputs.append((x,))
        expected.append(Expectation(f"case {k}", ((x + x,),), (Tolerance(1e-6),)))
    return program_of(tmp_path, items, inputs, expected)  # type: ignore[arg-type]


def _cell(program: Program, *flags: str, header: str = "") -> Cell:
    evil = program.folder / "evil.txt"
    evil.write_text(header)
    column = Column("gcc", ("gcc",), ("-O1", *flags, "-include", str(evil)), ("c",))
    return run_cell(column, "c", "unit", program, "")


def test_right(program: Program) -> None:
    assert (cell := _cell(program)).status == "right" and cell.cases == 2 and not cell.faults


@needs_big_endian
def test_right_on_a_big_endian_machine(program: Program) -> None:
    column = next(c for c in columns() if c.big_endian)
    assert run_cell(column, "c", "unit", program, "").faults == {}


def test_wrong(program: Program) -> None:
    """A compiler that makes one output wrong."""
    cell = _cell(
        program,
        header="#include <stdio.h>\n#define fwrite(p, s, n, f) ((((unsigned char *)(p))[4] ^= (n) == 48u), "
        "fwrite(p, s, n, f))\n",
    )
    assert cell.status == "wrong" and list(cell.faults) == ["case 1"] and "1 of 6" in cell.faults["case 1"]


def test_crash(program: Program) -> None:
    """The cases are told apart."""
    cell = _cell(
        program,
        header="#include <stdio.h>\n#include <stdlib.h>\n#define fread(p, s, n, f) ((n) == 48u ? (abort(), 0u) : "  # noqa: E501
        "fread(p, s, n, f))\n",
    )
    assert cell.status == "crash" and list(cell.faults) == ["case 1"]


def test_uncompilable(program: Program) -> None:
    cell = _cell(program, header="#define m0_inputs int\n")
    assert cell.status == "uncompilable" and list(cell.faults) == ["case 0"]


def test_too_little_is_written(program: Program) -> None:
    cell = _cell(program, header="#include <stdio.h>\n#define fwrite(p, s, n, f) fwrite(p, s, (n) - 1u, f)\n")
    assert cell.status == "wrong" and len(cell.faults) == 2


@pytest.mark.parametrize(("tolerance", "off", "fine"), [(Tolerance(), 0.0, True), (Tolerance(), 1e-9, False),
                                                        (Tolerance(atol=0.1), 0.09, True),
                                                        (Tolerance(share=0.9), 1.0, True),
                                                        (Tolerance(share=0.99), 1.0, False)])  # fmt: skip
def test_tolerance(tolerance: Tolerance, off: float, fine: bool) -> None:
    want = np.ones(20)
    got = want.copy()
    got[3] += off
    assert (tolerance.difference(got, want) == "") == fine
    assert tolerance.difference(got[:3], want) and tolerance.difference(want.astype(np.float32), want)


def test_tolerance_of_what_is_not_finite() -> None:
    want = np.array([np.inf, -np.inf, np.nan, 1.0])
    assert Tolerance(1e-3, 1e-3).difference(want.copy(), want) == ""
    for k, value in ((0, -np.inf), (0, 1e30), (2, 0.0), (3, np.nan), (3, np.inf)):
        got = want.copy()
        got[k] = value
        assert Tolerance(1e-3, 1e-3).difference(got, want)


def test_integers_are_exact_unless_told_otherwise() -> None:
    want = np.array([2**62 + 1])
    assert Tolerance(1.0, 1.0).difference(want - 1, want)
    assert Tolerance(atol=1.0, integers=True).difference(np.array([5]), np.array([6])) == ""


def test_everything_has_its_turn() -> None:
    """Over SLICES commits every unit and every column; over TURNS times as many, every cell, once."""
    rows = [Unit("group", f"{k:03}", lambda target, folder: None) for k in range(246)]
    seen: list[tuple[str, str, str]] = []
    for commit in range(100, 100 + SLICES * TURNS):
        seen += [
            (u.label, code, c.name)
            for u, code, fitting in chosen(rows, columns(), Choice().for_commit(commit))
            for c in fitting
        ]
        if commit == 100 + SLICES:
            assert {u for u, _, _ in seen} == {u.label for u in rows} and {c for _, _, c in seen} == {
                c.name for c in columns()
            }
    assert len(seen) == len(set(seen)) == len(rows) * sum(len(c.targets) for c in columns())


def test_results_are_found_again(tmp_path: Path) -> None:
    cells = [
        Cell(
            f"column {k}",
            "c",
            "unit",
            "d",
            "wrong" if k else "right",
            3,
            {"case": "1 and not 2"} if k else {},
        )
        for k in range(3)
    ]
    results.append(tmp_path / "r.jsonl", cells)
    read = results.read(tmp_path / "r.jsonl")
    assert list(read.values()) == cells
    named = [Column(c.column, (), (), ("c",)) for c in cells]
    table = results.markdown(named, read, {"column 2": "no such compiler"}, {("column 0", "c"): 5})
    assert (
        "| column 0 | c | 1 | 4 | 3 | 0 |" in table
        and "| column 1 | c | 1 | 0 | 2 | 1 |" in table
        and "no such compiler" in table
        and "| all | | 2 | 4 | 5 | 1 | 0 | 0 | 0 |" in table
        and "1 and not 2" in table
    )


def test_what_was_right_is_recorded(tmp_path: Path) -> None:
    """By column and program; what a new program replaces is gone, what is wrong is not recorded."""
    path = tmp_path / "record.json"
    first = [
        Cell("gcc -O0", "c", "group/0000", "d0", "right", 24),
        Cell("gcc -O2", "c", "group/0000", "d0", "unsuitable", 0, {"": "too large"}),
        Cell("gcc -O3", "c", "group/0000", "d0", "wrong", 24, {"case": "x"}),
        Cell("gcc -O2", "host,vector=v4", "group/0000", "d1", "right", 3),
        Cell("gcc -O2", "c", "models/a [b].onnx", "d2", "right", 1),
    ]
    assert record.read(path) == [] and record.add(first, path) == 4
    kept = {record.key(c): (c.status, c.cases) for c in record.read(path)}
    assert kept == {record.key(c): (c.status, c.cases) for c in first if c.status != "wrong"}
    assert record.add([Cell("clang", "c", "group/0000", "d0", "right", 24)], path) == 5
    text = path.read_text()
    assert record.add([], path) == 5 and path.read_text() == text
    other = Cell("a new column", "c", "group/0000", "d3", "right", 24)
    assert record.add([other], path) == 3
    assert {record.key(c) for c in record.read(path)} == {record.key(c) for c in [other, *first[3:]]}


def test_a_program_is_known_by_its_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that its C includes, and those that they include; no other."""
    include, folder = tmp_path / "include" / "aot_model", tmp_path / "program"
    include.mkdir(parents=True)
    folder.mkdir()
    (folder / "unit.c").write_text('#include "aot_model/near.h"\nint x;\n')
    texts = {"near.h": '#include "aot_model/far.h"\n', "far.h": "", "other.h": ""}
    for name, text in texts.items():
        (include / name).write_text(text)
    monkeypatch.setattr("compilers.program.include_dir", lambda: tmp_path / "include")
    program = Program(folder, ("unit.c",))
    before = program.digest()
    for name, text in texts.items():
        (include / name).write_text(text + "int y;\n")
        assert (program.digest() == before) == (name == "other.h"), name
        (include / name).write_text(text)
    assert program.digest() == before


def test_parts_are_the_whole() -> None:
    """Every cell is in one of the parts; another order has the same cells."""
    rows = [Unit("group", f"{k:03}", lambda target, folder: None, little_endian=k > 5) for k in range(9)]
    cells = lambda choice: [  # noqa: E731
        (u.label, code, c.name) for u, code, fitting in chosen(rows, columns(), choice) for c in fitting
    ]
    whole = cells(Choice())
    parts = [cells(Choice(part=(k, 5))) for k in range(5)]
    assert sorted(itertools.chain(*parts)) == sorted(whole) == sorted(cells(Choice(order="another")))
    assert cells(Choice(order="another")) != whole and min(map(len, parts)) > len(whole) / 8
    assert {code for _, code, _ in cells(Choice(code="c;host,*"))} == {
        t for c in columns() for t in c.targets if not t.startswith("cortex")
    }


def test_a_fault_in_every_column_is_told_apart() -> None:
    cells = [
        Cell(f"column {k}", "c", "unit", "d", "wrong", 3, {"all": "x", **({"one": "y"} if k == 1 else {})})
        for k in range(3)
    ]
    assert results.everywhere(cells) == {("unit", "all")}


def test_quantised_numbers_may_be_a_step_off_where_floats_are_wide() -> None:
    """By one, not by two, of a byte or two, and only there."""
    want = (np.asarray([3, 4], np.uint8), np.asarray([3, 4], np.int64))
    expectation = Expectation("case", (want,), (Tolerance(), Tolerance()))
    near, far = np.asarray([3, 5], np.uint8), np.asarray([3, 6], np.uint8)
    assert not expectation.difference((near, want[1]), wide_floats=True)
    assert expectation.difference((near, want[1]))
    assert expectation.difference((far, want[1]), wide_floats=True)
    assert expectation.difference((want[0], want[1] + 1), wide_floats=True)
    loose = Expectation("case", (want,), (Tolerance(1e-3, integers=True), Tolerance()))
    assert loose.difference((near, want[1])) and not loose.difference((near, want[1]), wide_floats=True)


def test_floats_behind_quantised_numbers_may_be_off_where_floats_are_wide() -> None:
    """By a hundredth of their range, and only where the network rounds."""
    want = (np.asarray([-1, 0, 3], np.float32),)
    near, far = (np.asarray([-1, x, 3], np.float32) for x in (0.03, 0.05))
    for rounds in (False, True):
        expectation = Expectation("case", (want,), (Tolerance(1e-4),), rounds)
        assert bool(expectation.difference((near,), wide_floats=True)) is not rounds
        assert expectation.difference((near,))
        assert expectation.difference((far,), wide_floats=True)


@pytest.mark.parametrize(
    "operator, rounds",
    [("QuantizeLinear", True), ("DynamicQuantizeLinear", True), ("Cast", True), ("Tanh", False)],
)
def test_it_is_known_whether_floats_become_integers(tmp_path: Path, operator: str, rounds: bool) -> None:
    """By what is called, whatever the scale is: a constant, an input, a result."""
    inputs = {"QuantizeLinear": ["x", "by"], "Cast": ["x"]}.get(operator, ["x"])
    results = ["q", "scale", "zero"] if operator == "DynamicQuantizeLinear" else ["q"]
    attributes = {"to": onnx.TensorProto.UINT8} if operator == "Cast" else {}
    kind = onnx.TensorProto.UINT8 if rounds else onnx.TensorProto.FLOAT
    for n, scale in enumerate((0.5, 0.3, None)):
        feeds = {"x": (2, 3), "by": ()} if "by" in inputs and scale is None else {"x": (2, 3)}
        fixed = {"by": np.float32(scale)} if "by" in inputs and scale is not None else {}
        net = model(
            [helper.make_node(operator, inputs, results, **attributes)],
            [tensor(name, shape, onnx.TensorProto.FLOAT) for name, shape in feeds.items()],
            [tensor("q", (2, 3), kind)],
            fixed,
        )
        values = tuple(np.full(shape, 0.5, np.float32) for shape in feeds.values())
        for target in ("c", "host,vector=v4"):
            made = generate(tmp_path, 2 * n + (target == "c"), Case("case", net, values), target)
            assert models.rounds(made.source) is rounds, made.source


@pytest.mark.parametrize("ties", ["rint", "round"])
def test_every_function_that_makes_integers_of_floats_is_known(ties: str) -> None:
    """Those of divisor.h and saturate.h; shifts of integers are none."""
    for name in (f"quantise_{ties}", f"{ties}_by", f"{ties}_quotient", f"{ties}_sum"):
        assert models.rounds(f"y = aot_model_{name}(x);"), name
    assert not models.rounds("aot_model_round_up(x); aot_model_rounding_shift(x, 3);")


def test_random_flags_are_drawn_from_what_the_compilers_list() -> None:
    """The same ones for a seed, others for another; nothing of another language."""
    first, again, other = (list(random_columns(seed, 6)) for seed in ("a", "a", "b"))
    assert first == again and first != other
    assert not {f.replace("-fno-", "-f") for c in first + other for f in c.flags} & set(ANOTHER_LANGUAGE)
    lists = next(b for b in bases() if b.lists)
    assert len(switches(lists.column.command)) > 300 and "-fno-ivopts" in switches(lists.column.command)
    rows = [Unit("group", f"{k}", lambda target, folder: None, little_endian=k > 0) for k in range(4)]
    found = list(drawn(rows, first, "a"))
    assert [(code, fitting) for _, code, fitting in found] == [(t, [c]) for c in first for t in c.targets]
    assert all(len({u.label for u, _, (of,) in found if of == c}) == 1 for c in first)
    assert all(code in c.targets and not (u.little_endian and c.big_endian) for u, code, (c,) in found)


def test_code_for_hosts_is_not_built_twice(tmp_path: Path) -> None:
    """What is the same C as for `c` is in that program alone; what has vectors is in both."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16, 32)))
    product = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", x.shape)],
                    [tensor("y", (8, 32))], {"w": w})  # fmt: skip
    candidates = [
        (Case("sum", _sum(np.float32), (x[:2, :3],)), lambda: ((2 * x[:2, :3],),), lambda want: Tolerance()),
        (Case("product", product, (x,)), lambda: ((x @ w,),), lambda want: Tolerance(1e-5, 1e-5)),
    ]
    names = {
        target: [e.name for e in made.expected]
        if (made := program_of_cases(candidates, target, tmp_path))
        else []
        for target in ("c", "host,vector=v8")
    }
    assert names == {"c": ["sum", "product"], "host,vector=v8": ["product"]}
    assert program_of_cases(candidates[:1], "host,vector=v8", tmp_path) is None
