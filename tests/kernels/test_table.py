"""Every kernel that a target registers, on every layer of its row of the table, where it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from batch import Outcome, compiled_case, run_cases
from machines import MACHINES
from qemu import available
from turns import commit_number


def registered(targets: Sequence[Target] = BUILTIN) -> dict[str, Kernel]:
    return {k.name: k for t in targets for k in t.kernels}


def without_row(targets: Sequence[Target]) -> list[str]:
    """Kernels that the table does not have, or has no place for."""
    return [name for name in registered(targets) if group_of(name) not in GROUPS or not places_of(name)]


ROWS = [(name, place) for name in registered() for place in places_of(name)]
LABELS = [f"{name} on {'-'.join([place.target, *(v for _, v in place.options)])}" for name, place in ROWS]


def taken_layers(name: str, place: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Layer]:
    """The layers that are given to the kernel on this target."""
    asked, found = Target.kernel_for, []

    def recorded(self: Target, node: Node, chain: Chain) -> Kernel | None:
        kernel = asked(self, node, chain)
        chosen.append(kernel.name if kernel else "")
        return kernel

    monkeypatch.setattr(Target, "kernel_for", recorded)
    for layer in GROUPS[group_of(name)]():
        chosen: list[str] = []
        compiled_case(
            case_of(group_of(name), layer, dict(place.options)), folder / "model", "m", place.target
        )
        if name in chosen:
            found.append(layer)
    monkeypatch.undo()
    return found


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


def run(layers: Sequence[Layer], name: str, place: Place, jobs: int = batch.JOBS) -> list[Outcome]:
    cases = [case_of(group_of(name), layer, dict(place.options)) for layer in layers]
    if place.board is not None:
        return run_cases(cases, place.target, sanitize=False, board=place.board, jobs=jobs)
    return run_cases(
        cases, place.target, flags=("-O1", *(["-march=native"] if place.target == "host" else [])), jobs=jobs
    )


@pytest.mark.parametrize(("name", "place"), ROWS, ids=LABELS)
def test_kernel(name: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.board in MACHINES and MACHINES[place.board].missing():
        pytest.skip(MACHINES[place.board].missing())
    if place.board is not None and place.board not in MACHINES and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    layers = taken_layers(name, place, tmp_path, monkeypatch)
    assert len(layers) >= 5, f"only {len(layers)} layers reach {name}"
    if dict(place.options).get("memory"):  # the same instructions in another order: every other layer in turn
        layers = layers[commit_number() % 2 :: 2]
    wrong = problems(layers, run(layers, name, place))
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
def test_a_kernel_that_returns_nonsense_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every layer but those whose first result is that large already."""
    place = Place("c")
    layers = taken_layers(name, place, tmp_path, monkeypatch)[:8]
    target = parse_target("c")
    astray = tuple(
        replace(k, emit=lambda site, k=k: k.emit(_Astray(site))) if k.name == name else k
        for k in target.kernels
    )  # type: ignore[misc]
    monkeypatch.setattr(batch, "parse_target", lambda *_: replace(target, kernels=astray))
    assert len(problems(layers, run(layers, name, place, jobs=1))) >= len(layers) - 2


def test_layers_have_different_names() -> None:
    for group, layers in GROUPS.items():
        names = [layer.name for layer in layers()]
        assert len(set(names)) == len(names), group
