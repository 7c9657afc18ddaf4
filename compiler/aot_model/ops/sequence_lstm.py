"""The LSTM of TFLite over a sequence, in floats or in integers, with everything that its file format can ask
for.

    i, f, o = sigmoid(W x + R h + P c + b)    g = activation(W x + R h + b)
    c = f * c + i * g                         h = o * activation(c)

Options: peepholes P (diagonal), layer normalisation of the gates' sums, a projection of h, clipping of c and
of the projection, the input gate coupled as 1 - f. Integers: gates are int16 in Q3.12, the cell is int16,
every product is requantised. Source: TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.site import Site
from aot_model.ops.lstm_float import ACTIVATIONS, float_lstm
from aot_model.ops.lstm_integer import integer_lstm
from aot_model.ops.lstm_steps import LstmScales
from aot_model.ops.registry import operator, required
from aot_model.ops.requantise import Rescale


@operator("SequenceLstm", domain="aot")
class SequenceLstm(Operator):
    """Inputs: x, h, c, W [4, H, I], R [4, H, O], b [4, H], P [3, H], layer norm [4, H], projection [O, H],
    its bias [O].

    x is (B, T, I), or (T, B, I) when time_major. Results: y, h after the last step, c after the last step.
    """

    stores_itself: ClassVar[bool] = True

    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    coupled: bool = False
    activation: str = "TANH"
    scales: LstmScales | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, h, c, w, r, _ = (required(inputs, k) for k in range(6))
        if (
            x.type.rank != 3
            or w.type.rank != 3
            or r.type.rank != 3
            or w.shape[0] != 4
            or 0 in (*x.shape, *w.shape, *r.shape)
        ):
            raise OperatorError(f"x {x.type}, W {w.type} and R {r.type} do not fit each other")
        batch, units, out = x.shape[1 if self.time_major else 0], w.shape[1], r.shape[2]
        wanted = {
            1: (batch, out),
            2: (batch, units),
            3: (4, units, x.shape[2]),
            4: (4, units, out),
            5: (4, units),
            6: (3, units),
            7: (4, units),
            8: (out, units),
            9: (out,),
        }
        for k, shape in wanted.items():
            value = inputs[k] if k < len(inputs) else None
            if value is not None and value.shape != shape:
                raise OperatorError(f"input {k} is {value.type}, its shape should be {list(shape)}")
        if self._input(inputs, 8) is None and out != units:
            raise OperatorError(f"{units} units give {out} outputs without a projection")
        if self.scales is not None and any(self._input(inputs, k) is not None for k in range(6, 10)):
            raise OperatorError(
                "peepholes, layer normalisation and projection of integer LSTMs are not supported", "E202"
            )
        self._check_types(inputs)
        return [TensorType(x.dtype, (*x.shape[:2], out)), h.type, c.type]

    def _check_types(self, inputs: Inputs) -> None:
        x, h, c, w, r, b = (required(inputs, k) for k in range(6))
        if self.scales is None:
            if {v.dtype for v in inputs if v is not None} != {DType.FLOAT32}:
                raise OperatorError(
                    f"x {x.type}, states {h.type} and {c.type} and weights {w.type} without quantisation are "
                    "not all float32",
                    "E202",
                )
            if self.activation not in ACTIVATIONS:
                raise OperatorError(f"activation {self.activation} is not supported", "E202")
            return
        wide = x.dtype is DType.INT16
        fits = x.dtype in (DType.INT8, DType.INT16) and h.dtype is x.dtype and c.dtype is DType.INT16
        sums = DType.INT64 if wide else DType.INT32
        if not fits or {w.dtype, r.dtype} != {DType.INT8} or b.dtype is not sums:
            raise OperatorError(
                f"x {x.type}, states {h.type} and {c.type}, weights {w.type} and biases {b.type} do not go "
                "together",
                "E202",
            )
        if w.data is None or r.data is None or b.data is None:
            raise OperatorError("weights that are computed at run time are not supported", "E202")
        if self.activation != "TANH" or self.coupled:
            raise OperatorError(
                "integer LSTMs have the activation TANH and a gate of their own for the input", "E202"
            )

    @staticmethod
    def _input(inputs: Inputs, k: int) -> Value | None:
        return inputs[k] if k < len(inputs) else None

    def lower(self, site: Site) -> None:
        (float_lstm if self.scales is None else integer_lstm)(self, site)

    def sizes(self, site: Site) -> tuple[int, int, int, int, int]:
        """(batch, steps, inputs, units, outputs)."""
        x, w, r = site.input(0), site.input(3), site.input(4)
        batch, steps = (x.shape[1], x.shape[0]) if self.time_major else (x.shape[0], x.shape[1])
        return batch, steps, x.shape[2], w.shape[1], r.shape[2]

    def macs(self, site: Site) -> int:
        batch, steps, inputs, units, outputs = self.sizes(site)
        projection = outputs * units if site.node.input(8) is not None else 0
        return batch * steps * (4 * units * (inputs + outputs) + projection)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(17)

        def real(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), np.float32)

        def whole(dtype: type[Any], size: int, *shape: int) -> np.ndarray:
            return np.asarray(rng.integers(-size, size, shape), dtype)

        plain = (real(2, 3, 4), real(2, 5), real(2, 5), real(4, 5, 4), real(4, 5, 5), real(4, 5))
        short = (
            real(3, 2, 4),
            real(2, 3),
            real(2, 5),
            real(4, 5, 4),
            real(4, 5, 3),
            real(4, 5),
            real(3, 5),
            real(4, 5),
            real(3, 5),
            real(3),
        )
        fixed = frozenset(range(3, 10))
        given: list[dict[str, Any]] = [
            {},
            {"cell_clip": 0.5},
            {"coupled": True},
            {"activation": "RELU"},
            {"activation": "RELU6"},
            {"activation": "NONE"},
        ]
        samples = [Sample(plain, g, fixed, 3) for g in given] + [
            Sample((*plain, short[6]), {}, fixed, 3),
            Sample((*plain, None, short[7]), {}, fixed, 3),
            Sample((*plain, short[6], short[7]), {"coupled": True}, fixed, 3),
        ]
        samples += [
            Sample(short, {"time_major": True, "projection_clip": 0.8, "cell_clip": 0.9}, fixed, 3),
            Sample((*short[:6], None, None, short[8]), {"time_major": True}, fixed, 3),
        ]
        each = tuple(Rescale(0, 1503238553 + k * 2**26, -4 + k % 2) for k in range(4))
        scales = LstmScales(
            -6,
            each,
            each[::-1],
            Rescale(0, 2**30, -14),
            Rescale(0, 1503238553, -15),
            Rescale(9, 1717986918, -21),
            (3, 0),
        )
        narrow = (
            whole(np.int8, 128, 2, 3, 4),
            whole(np.int8, 128, 2, 5),
            whole(np.int16, 9000, 2, 5),
            whole(np.int8, 127, 4, 5, 4),
            whole(np.int8, 127, 4, 5, 5),
            whole(np.int32, 4000, 4, 5),
        )
        samples += [
            Sample(narrow, {"scales": s}, fixed, 3, tolerance=2)
            for s in (
                scales,
                replace(scales, cell_clip=5000),
                replace(scales, forget=Rescale(0, 2**15, 1)),  # the same factor, shifted to the left
            )
        ]
        left = replace(scales, x=tuple(replace(v, shift=1) for v in each))
        light = (*narrow[:3], narrow[3] // 32, *narrow[4:])
        samples.append(Sample(light, {"scales": left}, fixed, 3, tolerance=2))
        samples.append(
            Sample(
                (narrow[0][:, :1], *narrow[1:]),
                {"scales": replace(scales, cell_argument=(20000, 13))},
                fixed,
                3,
                tolerance=3,
            )
        )
        wide = (
            narrow[0].astype(np.int16) * 200,
            narrow[1].astype(np.int16) * 200,
            *narrow[2:5],
            narrow[5].astype(np.int64) * 200,
        )
        each = tuple(Rescale(0, 23000 + k * 1000, -12 + k % 2) for k in range(4))
        broad = [real(3, 2, 4), real(2, 18), real(2, 18), real(4, 18, 4), real(4, 18, 18), real(4, 18)]
        clipped = {"time_major": True, "cell_clip": 0.5}
        return [
            *samples,
            Sample(
                wide,
                {
                    "scales": replace(
                        scales, x=each, h=each, x_zero_point=0, output=Rescale(0, 1717986918, -14)
                    )
                },
                fixed,
                3,
                tolerance=256,
            ),
            Sample(plain, {}, fixed | {1}, 3),
            Sample(tuple(broad), clipped, fixed, 3),
            Sample((*broad, real(3, 18)), clipped, fixed, 3),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, h, c, w, r, b, *more = (None if a is None else np.asarray(a, np.float64) for a in arrays)
        p, norm, projection, q = (*more, None, None, None, None)[:4]
        assert x is not None and h is not None and c is not None
        assert w is not None and r is not None and b is not None
        s = self.scales
        steps, rows = x if self.time_major else x.swapaxes(0, 1), []

        def size(by: Rescale, word: int = 31) -> float:
            return by.multiplier * 2.0 ** (by.shift - word)

        for now in steps:
            if s is None:
                sums = (
                    np.einsum("kji,ni->knj", w, now)
                    + np.einsum("kji,ni->knj", r, h)
                    + (0 if norm is not None else b[:, None])
                )
            else:  # gates in Q3.12, the cell as it is stored
                word = 15 if np.asarray(arrays[0]).dtype == np.int16 else 31
                from_x = (np.einsum("kji,ni->knj", w, now - s.x_zero_point) + b[:, None]) * np.asarray(
                    [size(v, word) for v in s.x]
                )[:, None, None]
                from_h = (
                    np.einsum("kji,ni->knj", r, h - s.output.zero_point)
                    * np.asarray([size(v, word) for v in s.h])[:, None, None]
                )
                sums = (
                    np.clip(
                        np.clip(np.rint(from_x), -32768, 32767) + np.clip(np.rint(from_h), -32768, 32767),
                        -32768,
                        32767,
                    )
                    / 4096
                )

            def gate(k: int, peep: np.ndarray | None, sums: np.ndarray = sums) -> np.ndarray:
                total = sums[k] if peep is None or p is None or k == 2 else sums[k] + peep * p[min(k, 2)]
                if norm is not None:
                    total = (total - total.mean(1, keepdims=True)) / np.sqrt(
                        total.var(1, keepdims=True)
                    ) * norm[k] + b[k]
                return np.asarray(total if k == 2 else 1 / (1 + np.exp(-total)))

            functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
                "TANH": np.tanh,
                "RELU": lambda v: np.maximum(v, 0),
                "RELU6": lambda v: np.clip(v, 0, 6),
                "NONE": lambda v: v,
            }
            squash = functions[self.activation]
            forget = gate(1, c)
            take, candidate = 1 - forget if self.coupled else gate(0, c), squash(gate(2, None))
            if s is None:
                c = forget * c + take * candidate
                c = np.clip(c, -self.cell_clip, self.cell_clip) if self.cell_clip else c
                h = gate(3, c) * squash(c)
            else:
                c = np.rint(forget * 2**15 * c * size(s.forget)) + np.rint(
                    take * candidate * 2.0**30 * size(s.input)
                )
                c = np.clip(c, -(s.cell_clip or 32768), s.cell_clip or 32767)
                active = np.tanh(c * s.cell_argument[0] / 2.0 ** s.cell_argument[1] / (24 * 512))
                limits = np.iinfo(np.asarray(arrays[1]).dtype)
                h = np.clip(
                    np.rint(gate(3, None) * active * 2.0**30 * size(s.output)) + s.output.zero_point,
                    limits.min,
                    limits.max,
                )
            if projection is not None:
                h = h @ projection.T + (0 if q is None else q)
                h = np.clip(h, -self.projection_clip, self.projection_clip) if self.projection_clip else h
            rows.append(h)
        y = np.stack(rows, 0 if self.time_major else 1)
        return [v.astype(np.asarray(a).dtype) for v, a in zip((y, h, c), arrays, strict=False)]
