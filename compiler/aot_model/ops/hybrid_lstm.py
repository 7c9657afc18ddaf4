"""The LSTM of TFLite with floats and weights of 8 bits: input and hidden state of every step are quantised
when it runs.

    gate = b + s_x * s_W * sum(W * q_x) + s_h * s_R * sum(R * q_h)        the rest is in floats

Source: TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM, hybrid form.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required

Floats = tuple[float, ...]


@operator("HybridLstm", domain="aot", stores_itself=True)
class HybridLstm(Operator):
    """Inputs: x, h, c, W [4, H, I] and R [4, H, H] int8, b [4, H]; gates in the order input, forget, cell,
    output.

    x is (B, T, I), or (T, B, I) when time_major. Results: y, h after the last step, c after the last step.
    """

    w_scales: Floats
    r_scales: Floats
    asymmetric: bool = False
    time_major: bool = False
    cell_clip: float = 0.0

    MOST: ClassVar[int] = 1 << 16
    """Elements of a row, so that sums of products fit 32 bits."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, h, c, w, r, b = (required(inputs, k).type for k in range(6))
        if x.rank != 3 or w.rank != 3 or 0 in (*x.shape, *w.shape) or max(x.shape[2], *w.shape) > self.MOST:
            raise OperatorError(f"x {x} and W {w} do not fit each other")
        batch, units = x.shape[1 if self.time_major else 0], w.shape[1]
        wanted = [TensorType(DType.FLOAT32, s) for s in (x.shape, (batch, units), (batch, units))]
        wanted += [TensorType(DType.INT8, (4, units, n)) for n in (x.shape[2], units)] + [
            TensorType(DType.FLOAT32, (4, units))
        ]
        if [x, h, c, w, r, b] != wanted or len(self.w_scales) != 4 or len(self.r_scales) != 4:
            raise OperatorError(f"states {h} and {c}, weights {w} and {r} and biases {b} do not fit {x}")
        return [TensorType(x.dtype, (*x.shape[:2], units)), h, c]

    def lower(self, site: Site) -> None:
        x, units = site.input(0), site.input(3).shape[1]
        batch, steps = (x.shape[1], x.shape[0]) if self.time_major else x.shape[:2]
        n = x.shape[2]
        at = f"(t * {batch} + i)" if self.time_major else f"(i * {steps} + t)"
        kind = "asymmetric" if self.asymmetric else "symmetric"
        text = CText()
        text.line(
            "static const float factors[8] = "
            f"{{{', '.join(float_literal(v, DType.FLOAT32) for v in (*self.w_scales, *self.r_scales))}}};"
        )
        text.line(f"memcpy(h, h0, {batch * units * 4}u);\nmemcpy(c, c0, {batch * units * 4}u);")
        with text.loop("t", str(steps)), text.loop("i", str(batch)):
            text.line(
                f"const float *const xt = x + {at} * {n};\nfloat *const ht = h + i * {units};\nfloat *const "
                f"ct = c + i * {units};\nint32_t zero_x;\nint32_t zero_h;"
            )
            text.line(
                f"const float scale_x = quantised_{kind}(xt, {n}, qx, &zero_x);\nconst float scale_h = "
                f"quantised_{kind}(ht, {units}, qh, &zero_h);"
            )
            with text.loop("k", "4"), text.loop("j", str(units)):
                text.line(
                    f"const float from_x = scale_x * factors[k] * (float)centred_product(w + (k * {units} + "
                    f"j) * {n}, qx, {n}, zero_x);"
                )
                text.line(
                    "const float from_h = scale_h * factors[4 + k] * (float)centred_product(r + (k * "
                    f"{units} + j) * {units}, qh, {units}, zero_h);"
                )
                text.line(f"gates[k * {units} + j] = b[k * {units} + j] + from_x + from_h;")
            with text.loop("j", str(units)):
                text.line(
                    f"float cell = aot_model_sigmoid_float32(gates[{units} + j]) * ct[j] + "
                    "aot_model_sigmoid_float32(gates[j]) * "
                    f"aot_model_libm_tanh_float32(gates[{2 * units} + j]);"
                )
                if self.cell_clip > 0:
                    bound = float_literal(self.cell_clip, DType.FLOAT32)
                    text.line(
                        f"cell = aot_model_min_float32(aot_model_max_float32(cell, -{bound}), {bound});"
                    )
                text.line(
                    f"ct[j] = cell;\nht[j] = aot_model_sigmoid_float32(gates[{3 * units} + j]) * "
                    "aot_model_libm_tanh_float32(cell);"
                )
            text.line(f"memcpy(y + {at} * {units}, ht, {units * 4}u);")
        arguments = [Argument(name, site.input(k)) for k, name in enumerate(("x", "h0", "c0", "w", "r", "b"))]
        arguments += [
            Argument(name, Scratch(name, size, 1, "int8_t")) for name, size in (("qx", n), ("qh", units))
        ]
        arguments.append(Argument("gates", Scratch("gates", 16 * units, 4, "float")))
        arguments += [written(name, site.node.outputs[k]) for k, name in enumerate(("y", "h", "c"))]
        helpers = (_ASYMMETRIC if self.asymmetric else _SYMMETRIC, _PRODUCT)
        macs = batch * steps * 4 * units * (n + units)
        site.call(
            "hybrid_lstm",
            block(text),
            arguments,
            includes=["string.h", "math.h", "aot_model/scalar.h"],
            helpers=helpers,
            macs=macs,
            note="LSTM",
        )

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, h, c, w, r, b = (np.asarray(a, np.float64) for a in arrays)
        rows = []

        def product(weights: np.ndarray, scales: Floats, real: np.ndarray) -> np.ndarray:
            low, high = np.minimum(real.min(1, keepdims=True), 0), np.maximum(real.max(1, keepdims=True), 0)
            step = (high - low) / 255 if self.asymmetric else np.abs(real).max(1, keepdims=True) / 127
            step = np.where(step == 0, 1, step)
            zero = np.rint(-128 - low / step) if self.asymmetric else 0
            near = (np.clip(np.rint(real / step + zero), -128, 127) - zero) * step
            return np.asarray(np.einsum("kji,ni->knj", weights * np.asarray(scales)[:, None, None], near))

        for now in x if self.time_major else x.swapaxes(0, 1):
            sums = product(w, self.w_scales, now) + product(r, self.r_scales, h) + b[:, None]
            take, forget, give = (1 / (1 + np.exp(-sums[k])) for k in (0, 1, 3))
            c = forget * c + take * np.tanh(sums[2])
            c = np.clip(c, -self.cell_clip, self.cell_clip) if self.cell_clip > 0 else c
            h = give * np.tanh(c)
            rows.append(h)
        return [v.astype(np.float32) for v in (np.stack(rows, 0 if self.time_major else 1), h, c)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(18)

        def real(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), np.float32)

        w, r = (np.asarray(rng.integers(-127, 128, (4, 5, n)), np.int8) for n in (7, 5))
        given: dict[str, Any] = {"w_scales": (0.01, 0.02, 0.015, 0.01), "r_scales": (0.02, 0.01, 0.01, 0.03)}
        forms: list[dict[str, Any]] = [{}, {"asymmetric": True}, {"time_major": True, "cell_clip": 0.4}]
        inputs = real(2, 2, 7), real(2, 5), real(2, 5), w, r, real(4, 5)
        still = np.zeros((2, 2, 7), np.float32), np.zeros((2, 5), np.float32), *inputs[2:]
        fixed = frozenset({3, 4, 5})
        return [Sample(i, {**given, **f}, fixed, 3, tolerance=1e-5) for i in (inputs, still) for f in forms]


_SYMMETRIC = """\
/* Integers of a row, the largest of which is 127; the scale. */
AOT_MODEL_OPAQUE static float quantised_symmetric(const float *x, int32_t n, int8_t *q, int32_t *zero)
{
    float most = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(x[i]));
    }
    const float inverse = (most > 0.0f) ? 127.0f / most : 0.0f;
    for (int32_t i = 0; i < n; i++) {
        q[i] = (int8_t)fminf(fmaxf(roundf(x[i] * inverse), -127.0f), 127.0f);
    }
    *zero = 0;
    return most / 127.0f;
}"""

_ASYMMETRIC = """\
/* Integers of a row, from -128 for its least number (at most 0) to 127 for its largest (at least 0); the scale. */
AOT_MODEL_OPAQUE static float quantised_asymmetric(const float *x, int32_t n, int8_t *q, int32_t *zero)
{
    float least = 0.0f;
    float most = 0.0f;
    for (int32_t i = 0; i < n; i++) {
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    const float scale = (most > least) ? (most - least) / 255.0f : 1.0f;
    const float inverse = 1.0f / scale;
    const float point = (most > least) ? fminf(fmaxf(roundf(-128.0f - least / scale), -128.0f), 127.0f) : 0.0f;
    for (int32_t i = 0; i < n; i++) {
        q[i] = (int8_t)fminf(fmaxf(roundf(point + x[i] * inverse), -128.0f), 127.0f);
    }
    *zero = (int32_t)point;
    return scale;
}"""  # noqa: E501

_PRODUCT = """\
AOT_MODEL_OPAQUE static int32_t centred_product(const int8_t *w, const int8_t *q, int32_t n, int32_t zero)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += w[i] * (q[i] - zero);
    }
    return sum;
}"""
