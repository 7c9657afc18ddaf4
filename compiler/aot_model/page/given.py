"""What others measured, from their JSON, made fit for the page: accuracy by layer, time by layer, an older
build,
points of a frontier, and a budget that was exceeded.

The files are `aot-model compare --json`, `aot-model time --json`, <name>.json of a build, and a frontier
(docs/report.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from aot_model.emit.metadata import metadata_of
from aot_model.emit.view import ModelView
from aot_model.errors import fail
from aot_model.library import strict_json
from aot_model.library.metadata import Metadata

HEATS = (15.0, 25.0, 35.0, 45.0)
"""Decibels at which a colour ends; the worst first."""

T = TypeVar("T")


@dataclass(frozen=True)
class Node:
    """Of the model's file."""

    kind: str
    name: str


@dataclass(frozen=True)
class Given:
    """All of it; what was not given is None or empty."""

    accuracy: Accuracy | None = None
    times: Times | None = None
    growth: Growth | None = None
    frontier: Frontier | None = None
    exceeded: tuple[str, ...] = ()
    """Budgets, in the words of the error."""
    nodes: Mapping[int, tuple[Node, ...]] | None = None
    """By step: the nodes of the file that the layer is made of."""


# --- accuracy
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accurate:
    """A tensor of a comparison. step: the layer that makes it, where the build has one; heat: 0 is the
    worst colour."""

    name: str
    step: int | None
    loses: bool
    heat: int
    own: str
    whole: str
    cosine: str
    worst: str
    saturated: float | None
    reach: str
    limits: str
    words: tuple[str, ...]
    bars: tuple[tuple[float, float], ...]
    """Of the histogram, in the part of it that has counts: shares of A and B, of the largest."""
    ends: tuple[str, str]


@dataclass(frozen=True)
class Accuracy:
    a: str
    b: str
    samples: int
    words: str
    tensors: tuple[Accurate, ...]


def accuracy(path: Path, view: ModelView) -> Accuracy:
    """CompileError E102 for anything but what `aot-model compare --json` writes."""
    return _read(path, "`aot-model compare --json`", "comparison", lambda facts: _accuracy(facts, view))


def _accuracy(facts: Mapping[str, Any], view: ModelView) -> Accuracy:
    steps: dict[str | int, int] = {}
    for traced in view.traced:
        for tensor in traced.tensors:
            steps[tensor.key] = view.steps[traced.calls[-1]]
    tensors = tuple(_accurate(t, steps) for t in facts["tensors"])
    return Accuracy(str(facts["a"]), str(facts["b"]), int(facts["samples"]), str(facts["words"]), tensors)


def _accurate(t: Mapping[str, Any], steps: Mapping[str | int, int]) -> Accurate:
    judged = t["own"] or t["whole"]
    bars, ends = _bars(t["histogram"])
    snr = judged["snr"]
    heat = len(HEATS) if judged["identical"] else 0 if snr is None else sum(snr >= limit for limit in HEATS)
    return Accurate(
        str(t["name"]),
        steps.get(t["b"]),
        bool(t["loses"]),
        heat,
        _db(t["own"]),
        _db(t["whole"]),
        "" if t["whole"]["cosine"] is None else f"{t['whole']['cosine']:.5f}",
        f"{t['whole']['max_error']:.3g}",
        None if t["limits"] is None else float(judged["saturated"]),
        _interval(t["range_a"]),
        _interval(t["limits"]),
        tuple(str(f["words"]) for f in t["findings"]),
        bars,
        ends,
    )  # fmt: skip


def _db(sums: Mapping[str, Any] | None) -> str:
    if sums is None:
        return ""
    if sums["identical"] or (sums["snr"] is not None and sums["snr"] > 120):
        return "same"
    return "none" if sums["snr"] is None else f"{sums['snr']:.1f}"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3g} to {ends[1]:.3g}"


def _bars(h: Mapping[str, Any]) -> tuple[tuple[tuple[float, float], ...], tuple[str, str]]:
    pairs = list(zip(map(int, h["a"]), map(int, h["b"]), strict=True))
    used = [k for k, pair in enumerate(pairs) if any(pair)]
    if not used or not h["reach"]:
        return (), ("", "")
    first, last, width = used[0], used[-1], 2 * float(h["reach"]) / len(pairs)
    most = math.sqrt(max(max(p) for p in pairs))  # by the root: what is rare is seen, too
    bars = tuple(
        (round(math.sqrt(x) / most, 3), round(math.sqrt(y) / most, 3)) for x, y in pairs[first : last + 1]
    )
    low = -float(h["reach"])
    return bars, (f"{low + first * width:.3g}", f"{low + (last + 1) * width:.3g}")


# --- time
# -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Time:
    """Of a layer. x, y: its place in the roofline, from 0 to 1; None for a layer without multiplications."""

    step: int
    layer: str
    amount: int
    share: float
    per_mac: str
    reasons: tuple[tuple[str, float], ...]
    place: tuple[float, float] | None


@dataclass(frozen=True)
class Times:
    """unit: cycles or instructions. roof: the line that bounds all layers, as points of 0 to 1; ticks: of
    both axes."""

    unit: str
    where: str
    total: int
    layers: tuple[Time, ...]
    roof: tuple[tuple[float, float], ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


def times(path: Path, view: ModelView) -> Times:
    """CompileError E102 for anything but what `aot-model time --json` writes of this build."""
    return _read(path, "`aot-model time --json`", "layers", lambda facts: _times(facts, view))


def _times(facts: Mapping[str, Any], view: ModelView) -> Times:
    unit = "cycles" if "cycles" in facts else "instructions"
    calls = list(view.program.calls())
    if [str(x["layer"]) for x in facts["layers"]] != [c.layer for c in calls]:
        raise ValueError("it is of another model, or of another build of it")
    total = int(facts[unit])
    found = [(c, int(x[unit]), x.get("by_reason") or {}) for c, x in zip(calls, facts["layers"], strict=True)]
    points = {
        c: (c.macs / max(sum(b.nbytes for b in c.arguments), 1), c.macs / n)
        for c, n, _ in found
        if c.macs and n
    }
    bounds = (
        [(min(axis), max(axis)) for axis in zip(*points.values(), strict=True)]
        if points
        else [(1.0, 1.0)] * 2
    )
    spans = [(math.floor(math.log10(low) - 0.05), math.ceil(math.log10(high) + 0.05)) for low, high in bounds]

    def place(values: tuple[float, ...]) -> tuple[float, float]:
        x, y = (
            (math.log10(v) - low) / max(high - low, 1) for v, (low, high) in zip(values, spans, strict=True)
        )
        return round(x, 4), round(y, 4)

    roof = []
    if points:
        best, slope = max(y for _, y in points.values()), max(y / x for x, y in points.values())
        start = (10.0 ** spans[0][0], slope * 10.0 ** spans[0][0])
        roof = [
            place(p) for p in (start, (best / slope, best), (max(10.0 ** spans[0][1], best / slope), best))
        ]
    layers = tuple(
        Time(
            view.steps[c], c.layer, n, n / max(total, 1), f"{n / c.macs:.2f}" if c.macs else "",
            tuple((str(k), float(v) / max(n, 1)) for k, v in sorted(reasons.items(), key=lambda r: -r[1])
                  if v),
            place(points[c]) if c in points else None) for c, n, reasons in found)  # fmt: skip
    ticks = [
        tuple((round((k - low) / max(high - low, 1), 4), f"{10.0**k:g}") for k in range(low, high + 1))
        for low, high in spans
    ]
    where = ", ".join(str(facts[k]) for k in ("core", "target", "memory", "error") if facts.get(k))
    return Times(unit, where, total, layers, tuple(roof), ticks[0], ticks[1])


# --- an older build
# -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A number or a layer that is another one. numbers: what, before, now."""

    name: str
    step: int | None
    what: str
    numbers: tuple[tuple[str, int, int], ...]

    @property
    def size(self) -> int:
        return sum(abs(now - before) for _, before, now in self.numbers)


@dataclass(frozen=True)
class Growth:
    title: str
    totals: tuple[tuple[str, int, int], ...]
    layers: tuple[Change, ...]


def growth(path: Path, view: ModelView) -> Growth:
    """What is other than in an older build. CompileError E102 for anything but the metadata of one."""
    old = Metadata.read(path)
    with _fitting(path, "<name>.json of an older build"):
        return _growth(old, metadata_of(view), path.name, view)


_SIZES = (
    ("MACs", "macs"),
    ("RAM in use", "workspace_bytes"),
    ("scratch", "scratch_bytes"),
    ("constants", "constant_bytes"),
)


def _growth(old: Metadata, new: Metadata, title: str, view: ModelView) -> Growth:
    totals = (
        ("workspace", old.workspace_size, new.workspace_size),
        ("constants", old.constant_bytes, new.constant_bytes), ("state", old.state_bytes, new.state_bytes),
        ("MACs", old.macs, new.macs), ("calls", len(old.layers), len(new.layers)))  # fmt: skip
    steps = [view.steps[c] for c in view.program.calls()]

    def numbered(layers: Sequence[Any]) -> dict[tuple[str, str, int], tuple[int, Any]]:
        seen: dict[tuple[str, str], int] = {}
        found = {}
        for k, layer in enumerate(layers):
            key = (layer.name, layer.op)
            seen[key] = seen.get(key, -1) + 1
            found[(layer.name, layer.op, seen[key])] = (k, layer)
        return found

    before, now = numbered(old.layers), numbered(new.layers)
    changes = []
    for key in (*now, *(k for k in before if k not in now)):
        was, there = before.get(key, (0, None))[1], now.get(key)
        layer = None if there is None else there[1]
        pairs = ((what, getattr(was, name, 0), getattr(layer, name, 0)) for what, name in _SIZES)
        numbers = tuple(p for p in pairs if p[1] != p[2])
        kernels = [None if x is None else _kernel(x.function) for x in (was, layer)]
        what = (
            "new"
            if was is None
            else "gone"
            if layer is None
            else "changed"
            if kernels[0] == kernels[1]
            else f"{kernels[0]} → {kernels[1]}"
        )
        if numbers or what != "changed":
            changes.append(
                Change(f"{key[0]} ({key[1]})", None if there is None else steps[there[0]], what, numbers)
            )
    return Growth(f"{title}: {old.target}", totals, tuple(sorted(changes, key=lambda c: -c.size)))


def _kernel(function: str) -> str:
    """Without the library's name and the call's number."""
    words = function.split("_")
    number = next((k for k, word in enumerate(words) if word.isdigit()), -1)
    return "_".join(words[number + 1 :])


# --- a frontier
# -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    name: str
    chosen: bool
    best: bool
    """Whether no other point is better in one number and as good in the other."""
    values: tuple[float, float]
    shown: tuple[str, str]
    place: tuple[float, float]


@dataclass(frozen=True)
class Frontier:
    title: str
    labels: tuple[str, str]
    points: tuple[Point, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


def frontier(path: Path) -> Frontier:
    """CompileError E102 for anything but a frontier."""
    return _read(path, "a frontier (docs/report.md)", "points", _frontier)


def _of_quantisation(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `aot-model quantise --frontier` wrote, with two numbers for each point: its cost, and its value
    by the metric."""
    costs = ("cycles", "cycles of a run"), ("flash", "bytes of constants")
    key, label = next(c for c in costs if all(p[c[0]] is not None for p in facts["points"]))
    return {
        "title": f"Quantisation of {facts['model']} for {facts['target']}",
        "points": facts["points"],
        "x": {
            "key": key,
            "label": label,
            "better": "less"
        },
        "y": {
            "key": "value",
            "label": str(facts["metric"]),
            "better": "less" if facts["metric"] == "mse" else "more"
        },
    }  # fmt: skip


def _frontier(facts: Mapping[str, Any]) -> Frontier:
    if facts.get("kind") == "aot-model quantisation frontier":
        facts = _of_quantisation(facts)
    axes = [facts["x"], facts["y"]]
    values = [tuple(float(p[a["key"]]) for a in axes) for p in facts["points"]]
    if not values:
        raise ValueError("it has no points")
    signs = [1 if a["better"] == "less" else -1 for a in axes]
    spans = [(min(c), max(c)) for c in zip(*values, strict=True)]
    points = []
    for p, v in zip(facts["points"], values, strict=True):
        mine = [s * n for s, n in zip(signs, v, strict=True)]
        worse = any(
            all(s * n <= m for s, n, m in zip(signs, o, mine, strict=True)) and o != v for o in values
        )
        x, y = (round((n - low) / ((high - low) or 1), 4) for n, (low, high) in zip(v, spans, strict=True))
        points.append(
            Point(
                str(p.get("name", "")),
                bool(p.get("chosen")),
                not worse,
                (v[0], v[1]),
                (_number(v[0]), _number(v[1])),
                (x, y),
            )
        )
    ticks = [tuple((k / 4, _number(low + (high - low) * k / 4)) for k in range(5)) for low, high in spans]
    return Frontier(str(facts.get("title", "Frontier")), (str(axes[0]["label"]), str(axes[1]["label"])),
                    tuple(sorted(points, key=lambda p: p.values)), ticks[0], ticks[1])  # fmt: skip


def _number(value: float) -> str:
    """Without an exponent where that can be read."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.6g}"


# --- files
# ----------------------------------------------------------------------------------------------------


def _read(path: Path, what: str, mark: str, make: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        facts = strict_json.loads(path.read_text())
    except OSError as error:
        raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
    except ValueError as error:
        raise fail("E102", f"is no JSON: {error}", where=str(path)) from None
    with _fitting(path, what):
        if mark not in facts:
            raise ValueError(f"it has no '{mark}'")
        return make(facts)


@contextmanager
def _fitting(path: Path, what: str) -> Iterator[None]:
    """CompileError E102 where facts of a file are not of the kinds that they should be."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError) as error:
        raise fail(
            "E102", f"is not what the page takes: {error}", where=str(path), hint=f"it takes {what}"
        ) from None
