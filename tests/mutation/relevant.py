"""What is mutated, and the test files for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


ROOMS = ("ops", "kernels", "passes", "lowering", "arithmetic/fixed_point.py")
"""What is mutated unless something else is asked for."""


def mutated_files(package: Path, rooms: Iterable[str] = ROOMS) -> list[str]:
    """The modules of rooms of the compiler, which are folders or files."""
    found = [
        p.relative_to(package).as_posix()
        for room in rooms
        for p in ([package / room] if room.endswith(".py") else sorted((package / room).rglob("*.py")))
    ]
    return [f for f in found if not f.endswith(("__init__.py", "_samples.py"))]


def _together(folder: str, *names: str) -> str:
    return " ".join(f"tests/{folder}/test_{name}.py" for name in names)


_NEAR: dict[str, tuple[str, ...]] = {
    "frontends/onnx": ("tests/frontends tests/operators/test_older_opsets.py",),
    "frontends/tflite": ("tests/tflite_operators", "tests/frontends"),
    "frontends/vectors": ("tests/test_vectors.py",),
    "ir/(scalar_ops|evaluate)": ("tests/emit/test_scalar_edges.py tests/operators/test_copied_bits.py",),
    "memory": ("tests/memory",),
    "partition": ("tests/targets",),
    "passes": (_together("passes", "limits_of_rules", "after_passes", "passes"),),
    "passes/.*qdq": (
        "tests/passes/test_qdq_rules.py",
        "tests/passes/test_zero_points.py",
        "tests/passes/test_fuse_qdq.py",
    ),
    "passes/fuse_affine": ("tests/passes/test_fuse_affine.py",),
    "lowering": (
        _together("lowering", "loops", "lower", "storage", "room", "sections", "generic"),
        "tests/emit/test_golden.py",
    ),
    "lowering/sums": ("tests/lowering/test_rounded_sums.py",),
    "lowering/memory_plan": (
        _together("memory", "programs", "drawn_programs", "overlaps", "pools_of_plans"),
    ),
    "passes/(manager|explain|rewrite)": ("tests/passes/test_explain.py tests/targets/test_target_passes.py",),
    "arithmetic|ops/(lstm_integer|quantised_curves|rounded_softmax)": ("tests/test_fixed_point.py",),
    "ops/quantised_tables": ("tests/operators/test_interpolated_int16.py",),
    "ops": (
        _together(
            "operators",
            "limits",
            "last_taken",
            "forms_at_limits",
            "refused_forms",
            "refusals",
            "defaults",
            "ranges",
            "room_for_data",
        ),
    ),
    "ops/lstm_integer": ("tests/kernels/test_admissible.py",),
    "ops/.*(lstm|recurrent|control)": ("tests/operators/test_macs.py",),
    "ops/microsoft": ("tests/operators/test_attention_inputs.py",),
    "kernels": (
        _together(
            "kernels",
            "float32_choices",
            "int8_choices",
            "overlap",
            "blocks",
            "instruction_tables",
            "parts",
            "admissible",
            "thresholds",
            "exact_limits",
            "rare_conditions",
            "drawn_decisions",
        ),
        "tests/kernels/test_drawn_layers.py",
    ),
    "kernels/(int8|int16)/.*_mve|kernels/(column_pairs|reading|tail)": (
        _together("kernels", "bytes_mve", "lookup_mve", "vector_tails"),
    ),
    "kernels/int8": (
        _together("kernels", "exact_limits_int8", "unsigned_rows", "residual_inputs", "pool_tails"),
    ),
    "kernels/(int8|recurrent).*(_mve|recurrent)": ("tests/kernels/test_lstm_mve.py",),
    "kernels/(float32|reading)": (_together("kernels", "float32", "float32_copies", "some_lanes"),),
    "kernels/base": ("tests/kernels/test_shapes.py",),
    "kernels/target|passes/manager": ("tests/targets/test_selection.py",),
    "kernels/int8/nibbles": ("tests/kernels/test_nibbles.py",),
    "kernels/int8/winograd": ("tests/kernels/test_winograd.py",),
    "kernels/int16/(matmul|block_mve|bytes_mve)": ("tests/kernels/test_strided_products.py",),
    "kernels/int8/(products|quads|slices)": ("tests/kernels/test_products.py",),
    "kernels/int8/held": ("tests/kernels/test_held_dsp.py",),
    "ops/quantised_(div|quotient)": ("tests/passes/test_fuse_quotients.py",),
    "ops/normalised_rows": ("tests/passes/test_qdq_normalise.py",),
    "ops/quantised_lines": ("tests/passes/test_fuse_lines.py",),
    "ops/(quantised|piecewise|exact_means)|kernels/int8/affine_sum": (
        "tests/operators/test_drawn_numbers.py",
    ),
    "ops/scatter": ("tests/operators/test_boxes.py tests/operators/test_places_outside.py",),
    "ops/zero_points": ("tests/passes/test_zero_points.py",),
    "ops/local_normalisation": ("tests/operators/test_scales_by_group.py",),
    "c/whole_sums": ("tests/lowering/test_whole_sums.py",),
    "c/(turns|statements)": ("tests/lowering/test_loops.py", "tests/operators/test_short_loops.py"),
}
"""Of seconds."""

_BY_PART: dict[str, tuple[str, ...]] = {
    "frontends": ("tests/conformance tests/test_models.py tests/cli", "tests/test_foreign.py"),
    "arithmetic": ("tests/tflite_operators",),
    "kernels/int8/.*_dsp|kernels/int8/(dsp|patch|gemm|plane|finish)": (
        _together("kernels", "requantise_dsp", "int8_dsp", "depthwise_dsp"),
    ),
    "kernels/int8/.*(_mve|plane|finish)": ("tests/kernels/test_int8_mve.py",),
    "kernels/int8/(.*_host|host_|finish|plane|vectors|instructions)": ("tests/kernels/test_int8_host.py",),
    "kernels/int8/plane": ("tests/kernels/test_winograd.py",),
    "kernels/int8/(requantise|row)": ("tests/kernels/test_products.py",),
    "kernels/int8/(requantise|rows)": ("tests/kernels/test_nibbles.py",),
    "kernels/int8/(nibbles|requantise|rows)": ("tests/passes/test_int4.py",),
    "kernels/int8/(fully_connected|gemm|products)_dsp": ("tests/kernels/test_lstm_dsp.py",),
    "kernels/int16|kernels/int8/.*_mve": ("tests/kernels/test_int16_mve.py",),
    "kernels/int16/depthwise|kernels/int8/plane": ("tests/kernels/test_depthwise_int16.py",),
    "kernels/recurrent": ("tests/operators/test_scratch.py", "tests/kernels/test_recurrent_cells.py"),
    "kernels/recurrent_cells": ("tests/operators/test_scratch.py", "tests/kernels/test_recurrent_cells.py"),
    "lowering": ("tests/lowering tests/memory tests/test_views.py",),
    "passes/dead": ("tests/passes/test_dead_channels.py",),
    "passes/weight": ("tests/passes/test_int4.py",),
    "passes": ("tests/passes tests/emit/test_golden.py",),
    "ops": (_together("operators", "attributes", "refused_windows"), "tests/passes/test_after_passes.py"),
    "ops/(quantised|softmax)": ("tests/passes/test_fuse_qdq.py", "tests/tflite_operators"),
    "ops/(quantised|piecewise)": ("tests/passes/test_share_tables.py",),
    "ops/training": ("tests/frontends/test_gradient.py",),
    "ops/control": ("tests/passes/test_count_turns.py",),
    "passes/count_turns": ("tests/passes/test_count_turns.py", "tests/frontends/test_tflite_control_flow.py"),
    "ops/(dynamic|control)": ("tests/frontends/test_sizes_by_data.py",),
    "ops/(strings|text|lookup|ml_)": ("tests/test_strings.py tests/test_string_interfaces.py",),
    "ops/random": ("tests/test_random_numbers.py",),
    "ops/.*(audio|detection|lstm|svm|suppression|ordering|recurrent|trees|unique)": (
        "tests/operators/test_scratch.py",
    ),
    "ops/.*(resize|resample|sampling)": ("tests/operators/test_resize_positions.py",),
    "kernels": (_together("kernels", "scratch_of_kernels", "scattered_kernels"),),
    "kernels|passes/(dead|widen|move|manager)": ("tests/test_baseline.py",),
    ".*": ("tests/test_random_graphs.py",),
}
"""The cheap ones and those that are nearest come first: the first failure ends it."""


def near_files(file: str) -> list[str]:
    """Arguments of pytest that take seconds, one after the other."""
    own = f"tests/passes/test_{Path(file).stem}.py"
    return [*([own] if (TESTS.parent / own).is_file() else []), *_of(_NEAR, file)]


def pytest_files(file: str) -> list[str]:
    """Arguments of pytest, one after the other."""
    return _of(_BY_PART, file)


def _of(parts: dict[str, tuple[str, ...]], file: str) -> list[str]:
    found = [f for pattern, files in parts.items() if re.match(pattern, file) for f in files]
    return list(dict.fromkeys(found))
