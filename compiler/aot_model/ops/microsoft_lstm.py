"""com.microsoft: an LSTM over 8-bit weights. Source: ONNX Runtime's contrib operators.

Inputs and states are quantised while the model runs, as DynamicQuantizeLinear does: the inputs of all steps
together, the hidden state of all sequences in every step, as one thread of ONNX Runtime does (more of them
quantise groups of sequences). Gates are in the order i, o, f, c, and computed in float32. The hidden state of
sequences that ended is 0; ONNX Runtime without output Y quantises their last one with the others instead.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph
from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.control import Scan
from aot_model.ops.elementwise import Clip
from aot_model.ops.indexing import ReverseSequence
from aot_model.ops.microsoft_activation import activated, drawn
from aot_model.ops.microsoft_dynamic import scaled_product
from aot_model.ops.normalisation import scalar
from aot_model.ops.quantised_onnx import DynamicQuantizeLinear
from aot_model.ops.recurrent import RecurrentAttributes
from aot_model.ops.registry import Build, operator, ranked, required

_DEFAULTS = ("Sigmoid", "Tanh", "Tanh")
_NAMES = {
    n.lower(): n
    for n in (
        "Relu",
        "Tanh",
        "Sigmoid",
        "Softsign",
        "Softplus",
        "Affine",
        "LeakyRelu",
        "ThresholdedRelu",
        "ScaledTanh",
        "HardSigmoid",
        "Elu",
    )
}

Activation = tuple[str, float, float]
"""Name, alpha, beta."""


def _dynamic_product(a: Algebra, x: Value, w: Value, scale: Value, zero: Value | None) -> Value:
    """x, quantised as a whole, times w."""
    quantised, x_scale, x_zero = a.build.many(DynamicQuantizeLinear(), x)
    return scaled_product(a, quantised, w, x_scale, scale, x_zero, zero)


def _one(a: Algebra, value: Value, direction: int) -> Value:
    """What belongs to a direction: a number of it, or a row."""
    piece = a.cut(value, 0, direction, direction + 1)
    return a.reshape(piece, *value.shape[1:])


def _steps(a: Algebra, steps: int, lengths: Value) -> Value:
    """The number of each step, to compare with lengths."""
    return a.build.constant(np.arange(steps, dtype=lengths.dtype.numpy).reshape(steps, 1, 1))


def _within(step: Graph) -> Graph:
    """A step that knows which sequences go on: (h, c, last, gates, live) -> (h, c, last, h). Those that ended
    keep their cell; their hidden state is 0, in the next step's quantisation, too.
    """
    h, c, x = step.inputs
    last = Value(f"{h.name}.last", h.type)
    live = Value(f"{h.name}.live", TensorType(DType.BOOL, (h.shape[0], 1)))
    b = Algebra(Build(step.nodes, f"{h.name}.within"))
    hidden, cell = step.outputs[:2]
    hidden, ended = (b.of("Where", live, hidden, v) for v in (scalar(b.build, 0, h.dtype), last))
    cell = b.of("Where", live, cell, c)
    return Graph("step", [h, c, last, x, live], [hidden, cell, ended, b.of("Identity", hidden)], step.nodes)


@operator("DynamicQuantizeLSTM", domain="com.microsoft", inputs=12)
class DynamicQuantizeLSTM(RecurrentAttributes, Composition):
    """Inputs: x (steps, batch, inputs), W (directions, inputs, 4 H), R (directions, H, 4 H), B, lengths,
    initial h, c, P, then scale and zero point of W and of R. Outputs: all h, the last h, the last c."""

    input_forget: int = 0

    def _directions(self) -> list[int]:
        """0 forward, 1 in reverse."""
        found = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}.get(self.direction)
        if found is None:
            raise OperatorError(f"unknown direction '{self.direction}'")
        return found

    def _activations(self) -> list[list[Activation]]:
        """(name, alpha, beta) of the three activations of each direction."""
        count = len(self._directions())
        names = tuple(self.activations) or _DEFAULTS * count
        if len(names) != 3 * count:
            raise OperatorError(f"{len(names)} activations for {count} directions")
        all_of = [(_NAMES[n.lower()], *v) for n, v in zip(names, self.activation_numbers(names), strict=True)]
        return [all_of[3 * k : 3 * k + 3] for k in range(count)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x, w, r = Algebra(build), *(required(inputs, k) for k in range(3))
        directions, activations = self._directions(), self._activations()
        units = ranked(r, 3).shape[1]
        if (
            x.type.rank != 3
            or not x.type.elements
            or w.shape != (len(directions), x.shape[2], 4 * units)
            or r.shape != (len(directions), units, 4 * units)
        ):
            raise OperatorError(f"W {w.type} and R {r.type} do not fit {x.type}")
        for k, axes in ((3, 2), (5, 3), (6, 3), (7, 2), (8, None), (10, None)):
            given = present(inputs, k)
            if given is None:
                continue
            if (axes is not None and given.type.rank != axes) or given.shape[:1] != (len(directions),):
                raise OperatorError(f"input {k} {given.type} is not one for each direction")
            if axes == 3 and given.shape[1:] != (x.shape[1], units):
                raise OperatorError(f"the state {given.type} does not fit {x.type} and {units} units")
        steps, batch = x.shape[:2]
        lengths = present(inputs, 4)
        if lengths is not None and lengths.shape != (batch,):
            raise OperatorError(f"lengths {lengths.type} are not one for each of {batch} sequences")
        if lengths is not None and lengths.data is not None and (lengths.data == steps).all():
            lengths = None
        runs = [
            self._run(a, inputs, k, backwards, activations[k], lengths)
            for k, backwards in enumerate(directions)
        ]
        rows = [a.reshape(run[2], steps, 1, batch, units) for run in runs]
        last = [[a.reshape(run[k], 1, batch, units) for run in runs] for k in (0, 1)]
        return [a.concat(1, *rows), a.concat(0, *last[0]), a.concat(0, *last[1])]

    def _run(
        self,
        a: Algebra,
        inputs: Inputs,
        direction: int,
        backwards: int,
        activations: list[Activation],
        lengths: Value | None,
    ) -> list[Value]:
        """[last h, last c, all h] of a direction."""
        x, w, r = (required(inputs, k) for k in range(3))
        steps, batch, units = *x.shape[:2], r.shape[1]

        def weights(matrix: Value, k: int) -> tuple[Value, Value, Value | None]:
            zero = present(inputs, k + 1)
            return (
                _one(a, matrix, direction),
                _one(a, required(inputs, k), direction),
                None if zero is None else _one(a, zero, direction),
            )

        if lengths is not None:
            # steps beyond the longest sequence do not count for the scale
            longest = a.reshape(a.reduced("ReduceMax", lengths, 0), 1, 1, 1)
            counts = a.of("Less", _steps(a, steps, lengths), longest)
            x = a.of("Where", counts, x, scalar(a.build, 0, x.dtype))
        gates = _dynamic_product(a, a.reshape(x, steps * batch, x.shape[2]), *weights(w, 8))
        bias = present(inputs, 3)
        if bias is not None:
            both = _one(a, bias, direction)
            bias = a.add(a.cut(both, 0, 0, 4 * units), a.cut(both, 0, 4 * units, 8 * units))
        initial = [
            _one(a, v, direction)
            if (v := present(inputs, k)) is not None
            else a.build.constant(np.zeros((batch, units), np.float32))
            for k in (5, 6)
        ]
        peepholes = present(inputs, 7)
        recurrent = weights(r, 10)
        body = self._step(
            a,
            gates,
            initial,
            recurrent,
            bias,
            None if peepholes is None else _one(a, peepholes, direction),
            activations,
        )
        gates = a.reshape(gates, steps, batch, 4 * units)
        if lengths is None:
            scan = Scan(body, 1, scan_input_directions=(backwards,), scan_output_directions=(backwards,))
            return a.build.many(scan, *initial, gates)
        if backwards:
            gates = a(ReverseSequence(), gates, lengths)
        live = a.of("Less", _steps(a, steps, lengths), a.reshape(lengths, 1, batch, 1))
        nothing = a.build.constant(np.zeros((batch, units), np.float32))
        _, c, last, rows = a.build.many(Scan(_within(body), 2), *initial, nothing, gates, live)
        ran = a.of("Less", scalar(a.build, 0, lengths.dtype), a.reshape(lengths, batch, 1))
        return [
            last,
            a.of("Where", ran, c, scalar(a.build, 0, c.dtype)),
            a(ReverseSequence(), rows, lengths) if backwards else rows,
        ]

    def _step(
        self,
        a: Algebra,
        gates: Value,
        initial: list[Value],
        recurrent: tuple[Value, Value, Value | None],
        bias: Value | None,
        peepholes: Value | None,
        activations: list[Activation],
    ) -> Graph:
        """One step: (h, c, gates of the input) -> (h, c, h). Sums are in ONNX Runtime's order, the bias last:
        the next step quantises the hidden state, and a last bit decides to which integer.
        """
        prefix = f"{a.build.prefix}.step"
        batch, units = initial[0].shape
        h, c = (Value(f"{prefix}.{n}", v.type) for n, v in zip("hc", initial, strict=True))
        x = Value(f"{prefix}.x", type(gates.type)(gates.dtype, (batch, 4 * units)))
        graph = Graph("step", [h, c, x])
        b = Algebra(Build(graph.nodes, prefix))
        total = b.add(x, _dynamic_product(b, h, *recurrent))
        i, o, f, g = (b.cut(total, 1, k * units, (k + 1) * units) for k in range(4))
        pi, po, pf = (
            (None,) * 3
            if peepholes is None
            else tuple(b.cut(peepholes, 0, k * units, (k + 1) * units) for k in range(3))
        )
        bi, bo, bf, bg = (
            (None,) * 4
            if bias is None
            else tuple(b.cut(bias, 0, k * units, (k + 1) * units) for k in range(4))
        )

        def act(v: Value, add: Value | None, which: int) -> Value:
            v = b.add(v, add)
            if self.clip is not None:
                v = b(Clip(), v, scalar(b.build, -self.clip, v.dtype), scalar(b.build, self.clip, v.dtype))
            return activated(b.build, v, *activations[which])

        def seen(v: Value, cell: Value, weight: Value | None) -> Value:
            return v if weight is None else b.add(v, b.mul(cell, weight))

        into = act(seen(i, c, pi), bi, 0)
        kept = b.sub(1.0, into) if self.input_forget else act(seen(f, c, pf), bf, 0)
        cell = b.add(b.mul(kept, c), b.mul(into, act(g, bg, 1)))
        out = act(seen(o, cell, po), bo, 0)
        hidden = b.mul(out, activated(b.build, cell, *activations[2]))
        graph.outputs = [hidden, cell, b.of("Identity", hidden)]
        return graph

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(5)

        def weights(directions: int, dtype: type[np.integer]) -> tuple[np.ndarray | None, ...]:
            limits = np.iinfo(dtype)
            w, r = (
                np.asarray(rng.integers(limits.min, limits.max + 1, (directions, n, 16)), dtype)
                for n in (3, 4)
            )
            return drawn(6, 4, 1, 3), w, r, drawn(7, directions, 32)

        def scales(directions: int, dtype: type[np.integer], zero: int) -> tuple[np.ndarray, ...]:
            return tuple(
                v
                for s in (0.011, 0.0073)
                for v in (np.full(directions, s, np.float32), np.full(directions, zero, dtype))
            )

        constants = frozenset({1, 2, 3, 7, 8, 9, 10, 11})
        state = drawn(8, 1, 1, 4, most=1), drawn(9, 1, 1, 4)
        columns = tuple(
            v
            for s in (0.01, 0.02)
            for v in (np.linspace(s / 2, s, 16, dtype=np.float32)[None], np.zeros((1, 16), np.int8))
        )
        each = (*weights(1, np.int8), None, *state, drawn(3, 1, 12), *columns)
        return [
            Sample(
                (*weights(1, np.int8), None, None, None, None, *scales(1, np.int8, 0)),
                {"hidden_size": 4},
                constants,
                3,
            ),
            Sample(
                (*weights(2, np.uint8), None, None, None, None, *scales(2, np.uint8, 128)),
                {"hidden_size": 4, "direction": "bidirectional"},
                constants,
                3,
            ),
            Sample(each, {"hidden_size": 4, "direction": "reverse"}, constants, 3),
            Sample(
                (*each[:4], np.asarray([4], np.int32), *each[5:]),
                {"hidden_size": 4, "direction": "reverse"},
                constants,
                3,
            ),
            Sample(
                (*each[:7], None, *each[8:]),
                {"hidden_size": 4, "clip": 1.5, "activations": ("Sigmoid", "Relu", "Tanh")},
                constants,
                2,
            ),
            Sample(
                (*each[:7], None, *each[8:]),
                {
                    "hidden_size": 4,
                    "activations": ("Affine", "ScaledTanh", "HardSigmoid"),
                    "activation_alpha": (0.3, 1.2, 0.25),
                    "activation_beta": (0.4, 0.7, 0.5),
                },
                constants,
                2,
            ),
        ]
