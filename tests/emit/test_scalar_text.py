"""Random trees of scalar operations as C: no compiler warns, and the values are those of the table's numpy
functions.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.c.statements import CWriter
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.expr import Call, Const, Expr, Leaf, call, cast, clear_interned, const, leaf, select
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

INTEGERS = (DType.INT8, DType.UINT8, DType.INT32, DType.INT64)
BINARY = ("add", "sub", "mul", "bitand", "bitor", "bitxor", "shl", "min")
UNARY = ("neg", "bitnot", "sign")
VALUES = (-3, 0, 1, 5, 77)
SHOWN = 200


def _number(rng: random.Random, dtype: DType, depth: int) -> Expr:
    if depth == 0:
        return rng.choice(
            [leaf(f"{dtype.label}_{k}", dtype) for k in range(2)] + [const(rng.choice((0, 1, 7)), dtype)]
        )
    kind = rng.randrange(6)
    if kind < 3:
        a, b = _number(rng, dtype, depth - 1), _number(rng, dtype, rng.randrange(depth))
        return call(rng.choice(BINARY), *rng.sample((a, b), 2))
    if kind == 3 and dtype is not DType.UINT8:
        return call(rng.choice(UNARY), _number(rng, dtype, depth - 1))
    if kind == 4:
        return select(_truth(rng, depth - 1), _number(rng, dtype, depth - 1), _number(rng, dtype, depth - 1))
    return cast(_truth(rng, depth - 1), dtype)


def _truth(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([leaf("bool_0", DType.BOOL), leaf("bool_1", DType.BOOL), const(False, DType.BOOL)])
    kind = rng.randrange(5)
    if kind < 2:
        dtype = rng.choice(INTEGERS)
        return call(
            rng.choice(("lt", "le", "eq")),
            _number(rng, dtype, depth - 1),
            _number(rng, dtype, rng.randrange(depth)),
            dtype=DType.BOOL,
        )
    if kind == 2:
        return call("not", _truth(rng, depth - 1))
    if kind == 3:
        return cast(_number(rng, rng.choice(INTEGERS), depth - 1), DType.BOOL)
    op = rng.choice(("and", "or", "xor", "eq"))
    return call(op, _truth(rng, depth - 1), _truth(rng, rng.randrange(depth)), dtype=DType.BOOL)


def _value(x: Expr, given: dict[str, np.ndarray]) -> np.ndarray:
    if isinstance(x, Const):
        return np.asarray(x.value, x.dtype.numpy)
    if isinstance(x, Leaf):
        return given[x.name]
    assert isinstance(x, Call)
    with np.errstate(all="ignore"):
        found = SCALAR_OPS[x.op].numpy(*(_value(a, given) for a in x.args))
    return np.asarray(found).astype(x.dtype.numpy)


@pytest.mark.parametrize("compiler", ["gcc", "clang-14"])
def test_without_warnings_and_right(compiler: str, tmp_path: Path) -> None:
    clear_interned()
    rng = random.Random(11)
    trees = [_truth(rng, 4) if k % 2 else _number(rng, INTEGERS[k // 2 % 4], 4) for k in range(SHOWN)]
    given = {
        f"{d.label}_{k}": np.asarray(VALUES[:: 1 - 2 * k]).astype(d.numpy)
        for d in (*INTEGERS, DType.BOOL)
        for k in range(2)
    }
    writer = CWriter(lambda c, text: "")
    parameters = ", ".join(f"{'bool' if 'bool' in n else v.dtype.name + '_t'} {n}" for n, v in given.items())
    functions, calls = [], []
    for k, x in enumerate(trees):
        functions.append(
            f"static {'bool' if x.dtype is DType.BOOL else x.dtype.c_type} f{k}({parameters})\n"
            f"{{\n    {' '.join(f'(void){n};' for n in given)}\n"
            f"    return {writer.text(x)};\n}}\n"
        )
        for row in range(len(VALUES)):
            arguments = ", ".join(str(int(v[row])) for v in given.values())
            calls.append(f'    printf("%lld\\n", (long long)f{k}({arguments}));\n')
    needed = sorted({*writer.headers, "stdbool.h", "stdint.h", "stdio.h"})
    headers = "".join(f"#include <{h}>\n" for h in needed)
    (tmp_path / "m.c").write_text(
        f"{headers}{''.join(functions)}int main(void)\n{{\n{''.join(calls)}    return 0;\n}}\n"
    )
    # Whether a condition is a constant is the model's matter.
    quiet = ["-Wno-tautological-compare"]
    if compiler == "gcc":
        quiet += ["-Wno-type-limits", "-Wno-bool-compare", "-Wno-bool-operation"]
    done = subprocess.run(
        [compiler, *STRICT, *quiet, f"-I{include_dir()}", "m.c", "-lm", "-o", "m"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:3000]
    said = subprocess.run([tmp_path / "m"], capture_output=True, text=True, check=True).stdout.split()
    got = np.asarray(said, np.int64).reshape(SHOWN, len(VALUES))
    for k, x in enumerate(trees):
        want = np.broadcast_to(_value(x, given), len(VALUES)).astype(np.int64)
        np.testing.assert_array_equal(got[k], want, err_msg=functions[k])
