"""Every kernel that a target registers, on every layer of its row of the table, where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from layer import Layer
from table import GROUPS, Place, case_of, group_of, places_of

import batch
from aot_model.ir.graph import Node
from aot_model.kernels.base import KernelCode
from aot_model.kernels.site import Site
from aot_model.kernels.tail import Chain
from aot_model.kernels.target import Kernel, Target
from aot_model.targets.builtin import BUILTIN
from aot_model.targets.registry import parse_target
from batch import Case, Outcome, generate, run_cases
from machines import MACHINES
from qemu import available
from translation_unit import Generated
from turns import in_turn


def registered(targets: Sequence[Target] = BUILTIN) -> dict[str, Kernel]:
    return {k.name: k for t in targets for k in t.kernels}


def without_row(targets: Sequence[Target]) -> list[str]:
    """Kernels that the table does not have, or has no place for."""
    return [name for name in registered(targets) if group_of(name) not in GROUPS or not places_of(name)]


ROWS = [(name, place) for name in registered() for place in places_of(name)]
MANY = 100
ELSEWHERE = "given to another kernel, or to none"
PARAMETERS = [
    pytest.param(
        name,
        place,
        id=f"{name} on {'-'.join([place.target, *(v for _, v in place.options)])}",
        marks=pytest.mark.xdist_group(group_of(name)),  # one process computes what is right
    )
    for name, place in ROWS
]


def made_by(
    kernel: str, folder: Path, number: int, case: Case, target: str, unlike: str | None = None
) -> Generated | Outcome:
    """The C of a case that is given to the kernel."""
    asked, chosen = Target.kernel_for, set()

    def noted(self: Target, node: Node, chain: Chain) -> Kernel | None:
        found = asked(self, node, chain)
        chosen.add(found.name if found else "")
        return found

    with patch.object(Target, "kernel_for", noted):
        made = generate(folder, number, case, target, unlike)
    return made if kernel in chosen or isinstance(made, Outcome) else Outcome(ELSEWHERE)


def problems(layers: Sequence[Layer], outcomes: Sequence[Outcome]) -> list[str]:
    """What is wrong, by layer: integers are equal, floats within 2e-5 of the largest result."""
    found = []
    for layer, outcome in zip(layers, outcomes, strict=True):
        if outcome.status != "ok":
            found.append(f"{layer.name}: {outcome.status} {outcome.message[:500]}")
            continue
        (got,), want = outcome.outputs, layer.expected()
        if got.dtype != want.dtype or got.shape != want.shape:
            found.append(f"{layer.name}: {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}")
        elif want.dtype.kind == "f":
            far = float(np.max(np.abs(got - want), initial=0)) / max(
                float(np.max(np.abs(want), initial=0)), 1.0
            )
            found += [f"{layer.name}: off by {far:.2g}"] if not far < 2e-5 else []
        elif not np.array_equal(got, want):
            found.append(f"{layer.name}: {np.count_nonzero(got != want)} of {want.size} differ")
    return found


def run(layers: Sequence[Layer], name: str, place: Place, jobs: int = batch.JOBS) -> tuple[list[str], int]:
    """What is wrong with the layers that are given to the kernel, and how many they are."""
    cases = [case_of(group_of(name), layer, dict(place.options)) for layer in layers]
    made = partial(made_by, name)
    if place.board is not None:
        outcomes = run_cases(cases, place.target, sanitize=False, board=place.board, jobs=jobs, make=made)
    else:
        flags = ("-O1", *(["-march=native"] if place.target == "host" else []))
        outcomes = run_cases(cases, place.target, flags=flags, jobs=jobs, make=made)
    pairs = [pair for pair in zip(layers, outcomes, strict=True) if pair[1].status != ELSEWHERE]
    return problems([layer for layer, _ in pairs], [outcome for _, outcome in pairs]), len(pairs)


@pytest.mark.parametrize(("name", "place"), PARAMETERS)
def test_kernel(name: str, place: Place) -> None:
    if place.board in MACHINES and MACHINES[place.board].missing():
        pytest.skip(MACHINES[place.board].missing())
    if place.board is not None and place.board not in MACHINES and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    layers, least = GROUPS[group_of(name)](), 5
    # The same instructions in another order, and groups of hundreds: a half or a third of the layers in turn.
    if dict(place.options).get("memory") or len(layers) > MANY:
        layers, least = in_turn(layers, 3 if len(layers) > MANY else 2), 2
    wrong, taken = run(layers, name, place)
    assert taken >= least, f"only {taken} layers reach {name}"
    assert not wrong, "\n".join(wrong)


def test_every_kernel_has_a_row() -> None:
    assert not without_row(BUILTIN)


def test_a_kernel_without_a_row_is_a_failure() -> None:
    stranger = Kernel("int8 convolution (tensor unit)", "Convolution", lambda site: None)
    assert without_row([*BUILTIN, Target("npu", "for this test", kernels=(stranger,))]) == [stranger.name]


class _Astray:
    """A site on which a kernel computes something else: its first result is one too large."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __getattr__(self, name: str) -> Any:
        return getattr(self._site, name)

    def emit(self, name: str, code: KernelCode, *arguments: Any) -> None:
        c_type = self._site.result.dtype.c_type
        self._site.emit(
            name, replace(code, body=f"{code.body.rstrip()}\n    y[0] = ({c_type})(y[0] + 1);\n"), *arguments
        )


@pytest.mark.parametrize("name", [n for n in registered() if any(p.target == "c" for p in places_of(n))])
def test_a_kernel_that_returns_nonsense_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every layer but those whose first result is that large already."""
    target = parse_target("c")
    astray = tuple(
        replace(k, emit=lambda site, k=k: k.emit(_Astray(site))) if k.name == name else k
        for k in target.kernels
    )  # type: ignore[misc]
    monkeypatch.setattr(batch, "parse_target", lambda *_: replace(target, kernels=astray))
    wrong, taken = run(GROUPS[group_of(name)]()[:12], name, Place("c"), jobs=1)
    assert taken >= 5
    assert len(wrong) >= taken - 2


def test_layers_have_different_names() -> None:
    for group, layers in GROUPS.items():
        names = [layer.name for layer in layers()]
        assert len(set(names)) == len(names), group
