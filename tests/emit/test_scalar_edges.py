"""Scalar operations on integers at the ends of their types: what is folded when a model is compiled is what C
computes.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.c.statements import CWriter
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.expr import call, clear_interned, leaf
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

TYPES = [d for d in DType if d.is_integer and not d.storage]
ONE = ("neg", "abs", "sign", "bitnot")
TWO = ("add", "sub", "mul", "div", "mod", "fmod", "min", "max", "bitand", "bitor", "bitxor", "shl", "shr")
COMPARED = ("lt", "le", "eq")


def _edges(dtype: DType) -> list[int]:
    low, high = dtype.limits
    near = {
        low,
        low + 1,
        low // 2,
        -8,
        -3,
        -2,
        -1,
        0,
        1,
        2,
        3,
        7,
        8,
        31,
        32,
        63,
        64,
        high // 2,
        high - 1,
        high,
    }
    return sorted(v for v in near if low <= v <= high)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: d.label)
def test_integers_at_their_ends(dtype: DType, tmp_path: Path) -> None:
    clear_interned()
    writer = CWriter(lambda c, text: "")
    a, b = leaf("a", dtype), leaf("b", dtype)
    made = {name: call(name, a) for name in ONE if dtype.kind == "int" or name not in ("neg", "abs")}
    made |= {name: call(name, a, b) for name in TWO}
    made |= {name: call(name, a, b, dtype=DType.BOOL) for name in COMPARED}
    made |= {"pow": call("pow", a, b)} if dtype.bits >= 32 else {}  # smaller ones by way of these
    pairs = np.asarray(list(itertools.product(_edges(dtype), repeat=2)), dtype.numpy)
    lines = [f"        o[{k}] = ({dtype.c_type}){writer.text(x)};" for k, x in enumerate(made.values())]
    headers = "".join(
        f"#include <{h}>\n" for h in sorted({*writer.headers, "stdbool.h", "stdint.h", "stdio.h"})
    )
    t = dtype.c_type
    (tmp_path / "m.c").write_text(
        f"{headers}int main(void)\n{{\n    {t} in[2], o[{len(made)}];\n"
        "    while (fread(in, sizeof in, 1, stdin) == 1) {\n"
        f"        const {t} a = in[0], b = in[1];\n" + "\n".join(lines) + "\n"
        "        if (fwrite(o, sizeof o, 1, stdout) != 1) { return 1; }\n    }\n    return 0;\n}\n"
    )
    command = ["gcc", *STRICT, "-Wno-type-limits", f"-I{include_dir()}", "m.c", "-lm", "-o", "m"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    said = subprocess.run([tmp_path / "m"], input=pairs.tobytes(), capture_output=True, check=True).stdout
    got = np.frombuffer(said, dtype.numpy).reshape(len(pairs), len(made))
    for k, (name, x) in enumerate(made.items()):
        with np.errstate(all="ignore"):
            found = SCALAR_OPS[name].numpy(*pairs.T[: len(getattr(x, "args", ()))])
        want = np.asarray(found).astype(dtype.numpy)
        wrong = np.flatnonzero(got[:, k] != want)
        assert not wrong.size, f"{name} of {pairs[wrong[0]]}: C {got[wrong[0], k]}, folded {want[wrong[0]]}"
