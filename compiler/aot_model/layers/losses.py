"""Where a model loses what another one has: every signal that both have, how far they are from each other,
and why, in words.

Each signal answers for itself: `own` is how far it is from what the first model's layer makes of the second
model's inputs to it, where the
first is run by a reference that can do that; `whole` has all in it that went wrong before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aot_model.c.names import printable
from aot_model.layers.measure import fused_nodes
from aot_model.layers.pairing import Layout, channel_axis, equalised, paired, sources
from aot_model.layers.reference import FileNode, Key
from aot_model.layers.sides import Made, Side
from aot_model.layers.signals import Signal, Steps
from aot_model.layers.statistics import Histogram, Sums

Array = np.ndarray
_QUANTISERS = ("QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE", "Constant")


@dataclass
class Pair:
    """One signal of both. a, b: the tensors that stand for it; steps: of b's integers; layout: how b's
    becomes a's."""

    name: str
    a: Key
    b: Key
    a_steps: Steps | None
    steps: Steps | None
    made_with: Steps | None
    """How b's integers were made, where that is not how they are read."""
    nodes: tuple[FileNode, ...]
    made: Made | None
    divided: Array | None = None
    """By channel: what b's tensor is divided by, which was equalised; it is compared as b has it."""
    reads: tuple[int, ...] = ()
    """Pairs that it is computed from."""
    type: str = ""
    dtype: np.dtype[np.generic] | None = None
    layout: Layout | None = None
    axis: int = 0
    whole: Sums | None = None
    own: Sums | None = None
    histogram: Histogram = field(default_factory=Histogram)

    @property
    def judged(self) -> Sums:
        found = self.own or self.whole
        assert found is not None
        return found

    @property
    def limits(self) -> tuple[float, float] | None:
        """What b's integers can say."""
        return (
            self.steps.limits(self.dtype)
            if self.steps is not None and self.dtype is not None and self.dtype.kind in "iu"
            else None
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(n.kind for n in self.nodes if n.kind not in _QUANTISERS)


@dataclass(frozen=True)
class Output:
    """An output of both: in how many samples the largest element is another one."""

    pair: Pair
    changed: int | None


@dataclass(frozen=True)
class Losses:
    """All signals that were compared, in the order of b's file."""

    a: str
    b: str
    samples: int
    pairs: tuple[Pair, ...]
    outputs: tuple[Output, ...]
    unlike: tuple[str, ...]
    """Signals whose shapes have nothing in common."""
    only_a: int
    only_b: int


def losses(
    a: Side, b: Side, a_rows: Sequence[Sequence[Array]], b_rows: Sequence[Sequence[Array]], at_once: int = 8
) -> Losses:
    """Run both on the same samples, and compare."""
    matched = paired(a.signals, b.signals, a.nodes, b.nodes)
    factors = equalised(a.nodes, b.signals.divided)
    chosen = [p for x, y in matched if (p := _pair(x, y, a, b)) is not None]
    _join(chosen, b)
    for p in chosen:
        p.divided = factors.get(p.a)
    changed = {p.b: 0 for p in chosen}
    unlike: dict[Key, str] = {}
    for start in range(0, len(a_rows), at_once):
        vectors, others = a_rows[start : start + at_once], b_rows[start : start + at_once]
        ours, theirs = a.run(vectors, [p.a for p in chosen]), b.run(others, [p.b for p in chosen])
        for vector, x, y in zip(vectors, ours, theirs, strict=True):
            _compare(chosen, a, b, vector, x, y, unlike, changed)
    chosen = [p for p in chosen if p.whole is not None and p.b not in unlike]
    places = {p.b: k for k, p in enumerate(chosen)}
    _join(chosen, b)
    ends = [
        places[k] for o in b.signals.outputs if o in b.signals.of for k in b.signals.of[o].keys if k in places
    ]
    outputs = tuple(
        Output(p, changed[p.b] if p.judged.elements > len(a_rows) else None)
        for p in (chosen[k] for k in dict.fromkeys(ends))
    )
    return Losses(
        f"{a.path.name}, {a.title}",
        f"{b.path.name}, {b.title}",
        len(a_rows),
        tuple(chosen),
        outputs,
        tuple(unlike.values()),
        len(a.signals.all) - len(matched),
        len(b.signals.all) - len(matched),
    )  # fmt: skip


def _pair(x: Signal, y: Signal, a: Side, b: Side) -> Pair | None:
    """The tensors to compare: of a the real numbers that its layer makes, of b the integers where there are
    some."""
    ours = [k for k in x.keys if a.can_tell(k)]
    theirs = [k for k in y.keys if b.can_tell(k)]
    if not ours or not theirs:
        return None
    real, integer = [k for k in ours if k not in x.steps], [k for k in theirs if k in y.steps]
    key_a, key_b = (real or ours)[0], (integer or theirs)[0]
    name = printable(str(min(y.names, key=len, default=key_b)))
    return Pair(
        name, key_a, key_b, x.steps.get(key_a), y.steps.get(key_b), y.made.get(key_b), (), b.made(key_b)
    )


def _join(pairs: Sequence[Pair], b: Side) -> None:
    """What lies between the signals that are compared."""
    known = {p.b: k for k, p in enumerate(pairs)}
    produced = {o for n in b.nodes for o in n.outputs}
    groups = fused_nodes(b.nodes, {k for k in known if k in produced})
    inputs = set(b.signals.inputs)
    before = sources(b.nodes, known)
    for p in pairs:
        p.nodes = groups.get(p.b, ()) if p.b not in inputs else ()
        p.reads = tuple(known[k] for k in before.get(p.b, ()) if k in known)


def _compare(
    pairs: Sequence[Pair],
    a: Side,
    b: Side,
    vector: Sequence[Array],
    x: Mapping[Key, Array],
    y: Mapping[Key, Array],
    unlike: dict[Key, str],
    changed: dict[Key, int],
) -> None:
    """One sample."""
    last, mixed = a.channels_last, a.channels_last != b.channels_last
    found: list[tuple[Pair, Array, Array]] = []
    given: dict[Key, Array] = {}
    for p in pairs:
        want, raw = x.get(p.a), y.get(p.b)
        if want is None or raw is None or p.b in unlike:
            continue
        if want.dtype.kind not in "fiub" or raw.dtype.kind not in "fiub":
            continue
        raw_type = want.dtype
        want = _real(want, p.a_steps)
        got = _real(raw, p.steps)
        if p.layout is None:
            p.dtype, p.type = raw.dtype, f"{raw.dtype}[{','.join(map(str, raw.shape))}]"
            p.layout = Layout.between(want, got, mixed)
            if p.layout is None:
                unlike[p.b] = p.name
                continue
            p.axis = channel_axis(p.kinds, want.ndim)
            if last:
                p.axis = max(want.ndim - 1, 0)
        got = p.layout.to_a(got)
        by = _by(p, want)
        want = want / by
        if p.whole is None:
            p.whole = Sums.of(want.shape[p.axis] if want.ndim else 1)
        p.whole.add(want, got, p.axis, p.limits, _size(p))
        p.histogram.add(want, got)
        if want.size > 1 and want.ndim:
            changed[p.b] += int(np.argmax(want) != np.argmax(got))
        found.append((p, want, got))
        if p.a_steps is None:
            given[p.a] = np.ascontiguousarray((got * by).astype(raw_type))
    apart = a.run_apart(vector, given) if given else None
    for p, want, got in found if apart is not None else ():
        alone = apart.get(p.a) if apart is not None else None
        if alone is None or alone.shape != want.shape:
            continue
        if p.own is None:
            p.own = Sums.of(want.shape[p.axis] if want.ndim else 1)
        p.own.add(alone.astype(np.float64) / _by(p, alone), got, p.axis, p.limits, _size(p))


def _by(p: Pair, array: Array) -> Array:
    """The factors in a shape that broadcasts; 1 where the tensor was not equalised."""
    axis = p.axis if array.ndim != 2 else 1
    if p.divided is not None and p.divided.ndim > 1:
        fits = p.divided.ndim == array.ndim and all(
            n in (1, m) for n, m in zip(p.divided.shape, array.shape, strict=True)
        )
        return p.divided if fits else np.ones(())
    if p.divided is None or not array.ndim or array.shape[axis] % p.divided.size:
        return np.ones(())
    shape = [1] * array.ndim
    shape[axis] = -1
    return np.repeat(p.divided, array.shape[axis] // p.divided.size).reshape(shape)


def _size(p: Pair) -> float:
    return p.steps.size if p.steps is not None else 0.0


def _real(array: Array, steps: Steps | None) -> Array:
    return array.astype(np.float64) if steps is None or array.dtype.kind not in "iu" else steps.real(array)
