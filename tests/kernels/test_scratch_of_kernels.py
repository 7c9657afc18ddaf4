"""Kernels on a plan in which nothing shares memory, with red zones between the buffers (see red_zones.py).

Code for a Cortex-M runs on this machine too, where its assembly is the portable C beside it, under the
sanitizers.
"""

from __future__ import annotations

import pytest
from layer import Layer
from network_layers import float_layers, int8_layers, network_case
from table import GROUPS, case_of
from test_table import problems

from batch import Case, run_cases
from red_zones import generate_guarded
from turns import in_turn

PREFERENCES: tuple[dict[str, str], ...] = ({}, {"optimize": "size"})


def _has(target: str, group: str) -> bool:
    """Float code for Helium has no portable C beside it: its schedules are those of `host`."""
    return {"cortex-m0": group.startswith("int8"), "cortex-m55": not group.startswith("float32")}.get(
        target, True
    )


def _cases(target: str) -> list[tuple[Layer, Case]]:
    found = [
        (layer, case_of(group, layer, {}))
        for group, layers in GROUPS.items()
        if _has(target, group)
        for layer in layers()
    ]
    found += [
        (layer, network_case(layer, words))
        for words in PREFERENCES
        for layer in int8_layers()
        if target != "c"
    ]
    return found + [
        (layer, network_case(layer, {})) for layer in float_layers() if target in ("host", "cortex-m55")
    ]


@pytest.mark.parametrize("target", ["c", "host", "cortex-m0", "cortex-m4", "cortex-m55"])
def test_kernels_keep_to_their_memory(target: str) -> None:
    """A third of them in turn."""
    rows = in_turn(_cases(target), 3)
    outcomes = run_cases(
        [case for _, case in rows],
        target,
        flags=("-O0", *(["-march=native"] if target == "host" else [])),
        make=generate_guarded,
    )
    run = [
        (layer, outcome)
        for (layer, _), outcome in zip(rows, outcomes, strict=True)
        if outcome.status != "same"
    ]
    wrong = problems([layer for layer, _ in run], [outcome for _, outcome in run])
    assert not wrong, "\n".join(wrong)
    assert target == "c" or len(run) > 40, "layers with a workspace are not run at all"
