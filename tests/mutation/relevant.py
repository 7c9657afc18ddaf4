"""What is mutated, and the test files for it."""

from __future__ import annotations

import re
from pathlib import Path


def mutated_files(package: Path) -> list[str]:
    """The modules of the folders that are mutated."""
    found = [
        p.relative_to(package).as_posix()
        for folder in ("ops", "kernels", "passes")
        for p in sorted((package / folder).rglob("*.py"))
    ]
    return [f for f in found if not f.endswith("__init__.py")] + ["arithmetic/fixed_point.py"]


_BY_PART: dict[str, tuple[str, ...]] = {
    "arithmetic": ("tests/test_fixed_point.py", "tests/tflite_operators"),
    "ops": ("tests/operators/test_refusals.py tests/operators/test_defaults.py",),
    "kernels/int8/.*_dsp|kernels/int8/(dsp|patch|gemm|plane|finish)": ("tests/kernels/test_int8_dsp.py",),
    "kernels/int8/.*(_mve|plane|finish)": ("tests/kernels/test_int8_mve.py",),
    "kernels/int8/(.*_host|host_|finish|plane|vectors|instructions)": ("tests/kernels/test_int8_host.py",),
    "kernels/float32": ("tests/kernels/test_float32.py",),
    "passes/dead": ("tests/passes/test_dead_channels.py",),
    "passes/.*qdq": ("tests/passes/test_fuse_qdq.py",), "passes/weight": ("tests/passes/test_int4.py",),
    "passes": ("tests/passes tests/emit/test_golden.py",),
    "ops/(quantised|softmax)": ("tests/passes/test_fuse_qdq.py", "tests/tflite_operators"),
    "ops/training": ("tests/frontends/test_gradient.py",),
    "ops/(dynamic|control)": ("tests/frontends/test_sizes_by_data.py",),
    "ops/(strings|text|lookup|ml_)": ("tests/test_strings.py",),
    "ops/random": ("tests/test_random_numbers.py",),
    "kernels|passes/(dead|widen|move|manager)": ("tests/test_baseline.py",),
    ".*": ("tests/test_random_graphs.py",),
}
"""The cheap ones and those that are nearest come first: the first failure ends it."""


def pytest_files(file: str) -> list[str]:
    """Arguments of pytest, one after the other."""
    found = [f for pattern, files in _BY_PART.items() if re.match(pattern, file) for f in files]
    return list(dict.fromkeys(found))
