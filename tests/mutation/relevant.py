"""What is mutated, and the test files for it."""

from __future__ import annotations

from pathlib import Path


def mutated_files(package: Path) -> list[str]:
    """The modules of the folders that are mutated."""
    found = [p.relative_to(package).as_posix() for folder in ("ops", "kernels", "passes") for p in sorted((package / folder).rglob("*.py"))]
    return [f for f in found if not f.endswith("__init__.py")] + ["arithmetic/fixed_point.py"]


_ALWAYS = ("tests/emit/test_golden.py tests/passes tests/ir", "tests/test_random_graphs.py tests/conformance/test_conformance_m4.py", "tests/test_baseline.py")
_BY_PREFIX: dict[str, tuple[str, ...]] = {
    "kernels/int8": ("tests/kernels/test_int8_host.py tests/kernels/test_int8_dsp.py", "tests/kernels/test_int8_mve.py"),
    "kernels/float32": ("tests/kernels/test_float32.py",),
    "ops/training": ("tests/frontends/test_gradient.py",),
    "ops/dynamic": ("tests/frontends/test_sizes_by_data.py",),
    "ops/control": ("tests/frontends/test_sizes_by_data.py tests/frontends/test_tflite.py",),
    "ops/strings": ("tests/test_strings.py",), "ops/text": ("tests/test_strings.py",), "ops/lookup": ("tests/test_strings.py",),
    "ops/random": ("tests/test_random_numbers.py",),
    "ops/quantised": ("tests/tflite_operators",), "ops/softmax": ("tests/tflite_operators",), "arithmetic/fixed_point": ("tests/tflite_operators",),
}  # fmt: skip


def pytest_files(file: str) -> list[str]:
    """Arguments of pytest, one after the other."""
    own = [f for prefix, files in _BY_PREFIX.items() if file.startswith(prefix) for f in files]
    return [*own, *_ALWAYS]
