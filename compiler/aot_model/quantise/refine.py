"""Better plans from good ones: ranges by what they do to the answers, learned rounding, 16 bits where they
cost little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aot_model.errors import CompileError
from aot_model.quantise.candidates import Calibration, Candidate, multiplied, tensor_plans
from aot_model.quantise.plan import Plan, TensorPlan
from aot_model.quantise.prepare import has_wide_types
from aot_model.quantise.rounding import learnt_by_outputs
from aot_model.quantise.sensitivity import Sensitivity
from aot_model.quantise.weights import weight_plans
from aot_model.quantise.work import work_of

MOST_RAM = 1.3
"""Tensors of 16 bits may let the workspace grow by this factor."""
LITTLE_RAM = 1024
"""... or by so many bytes."""
MOST_TRIED = 12
LEAST_NOISE = 0.01
"""A tensor with a smaller share of the noise that those before it leave is not worth it,"""
FAINT = 0.001
"""... nor one with a smaller share of all noise."""


def learned(calibration: Calibration, candidate: Candidate) -> Candidate:
    """The plan with rounding learnt by what layers compute, and biases for what is left; as it is where its
    model cannot be run in parts."""
    source, plan = candidate.source, candidate.plan
    try:
        weights, bias = learnt_by_outputs(
            source.network, source.choice, plan, calibration.samples, calibration.where
        )
    except CompileError:
        return candidate
    method = f"{plan.method}, rounding learnt"
    return replace(candidate, plan=replace(plan, weights=weights, bias=bias, method=method))


def by_answers(candidate: Candidate, sensitivity: Sensitivity) -> Candidate:
    """The plan with each tensor's range chosen by what it does to the answers."""
    method = candidate.plan.method.replace(candidate.method, "by answers", 1)
    tensors = multiplied(candidate.source, sensitivity.ranges(candidate.plan))
    return with_tensors(candidate, tensors, method)


def with_tensors(candidate: Candidate, tensors: dict[str, TensorPlan], method: str) -> Candidate:
    """The plan with other tensors, its weights the nearest integers for them."""
    source = candidate.source
    weights = weight_plans(source.network, source.choice, tensors)
    return replace(candidate, plan=Plan(tensors, weights, source.equalisation, method=method))


def widened(
    candidate: Candidate, sensitivity: Sensitivity, ram_of: Callable[[Candidate], int], most_work: float
) -> Candidate | None:
    """The plan with 16 bits for tensors that make the most noise for their cost; None when there are none.

    most_work: what all of them may cost, as a share of the int8 network's work.
    """
    source, plan = candidate.source, candidate.plan
    if not has_wide_types(source.network.model):
        return None
    cheap = worth_16_bits(candidate, sensitivity)
    left = most_work * work_of(source)
    several, rest = list[str](), left
    for kind, cost in cheap:
        if cost <= rest:
            several, rest = [*several, kind], rest - cost
    if not several:
        return None
    known = ram_of(candidate)
    most = max(MOST_RAM * known, known + LITTLE_RAM)

    def wider(kinds: list[str]) -> Candidate:
        wide = tensor_plans(source, candidate.method, dict.fromkeys(kinds, "int16"))
        tensors = {n: wide[n] if source.choice.kinds[n] in kinds else t for n, t in plan.tensors.items()}
        return with_tensors(candidate, tensors, f"{plan.method}, {len(kinds)} wide")

    if ram_of(found := wider(several)) <= most:
        return found
    best, taken = None, list[str]()
    for kind, cost in cheap[:MOST_TRIED]:  # one at a time: what does not fit leaves its work to others
        if cost <= left and ram_of(found := wider([*taken, kind])) <= most:
            best, taken, left = found, [*taken, kind], left - cost
    return best


def worth_16_bits(candidate: Candidate, sensitivity: Sensitivity) -> list[tuple[str, float]]:
    """Representatives of tensors of one type and what 16 bits cost there, in cycles; the most noise for their
    cost first."""
    source = candidate.source
    kinds: dict[str, list[str]] = {}
    for name in source.choice.tensors:
        kinds.setdefault(source.choice.kinds[name], []).append(name)
    # What represents a scale may be a constant whose elements are gathered: it has no type of its own.
    kind_of = {source.choice.groups[name]: source.choice.kinds[name] for name in source.choice.tensors}
    noise: dict[str, float] = {}
    for group, one in sensitivity.noises(candidate.plan).items():
        noise[kind_of[group]] = noise.get(kind_of[group], 0.0) + one
    narrow = work_of(source)
    cost = {kind: max(work_of(source, kinds[kind]) - narrow, 0.0) for kind in noise}
    found, left = [], sum(noise.values())
    faint = FAINT * left
    for kind in sorted(noise, key=lambda k: -noise[k] / max(cost[k], 1.0)):
        if noise[kind] >= max(LEAST_NOISE * left, faint):
            found.append((kind, cost[kind]))
            left -= noise[kind]
    return found
