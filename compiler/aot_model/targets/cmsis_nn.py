"""CMSIS-NN: integer layers as calls of Arm's library for Cortex-M, through its published C interface.

The arithmetic is that of TensorFlow Lite Micro, bit for bit. Weights, biases and multipliers are constants of
the model, scratch is planned with the tensors (cmsis_nn_scratch.py). What the library does not compute stays
with the processor's own kernels. Source: CMSIS-NN, Include/arm_nnfunctions.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aot_model.arithmetic.fixed_point import input_radius
from aot_model.ir.admissible import ANYTHING, SHIFTS, Range
from aot_model.ir.pattern import Pattern, absent, constant, op, value
from aot_model.ir.types import DType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.target import Attribute, Target
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedMul, QuantisedSum
from aot_model.ops.quantised_softmax import QuantisedSoftmax
from aot_model.ops.requantise import Requantise
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Claim, Offload
from aot_model.partition.region import Match, Region
from aot_model.targets import cmsis_nn_scratch
from aot_model.targets.cmsis_nn_layers import (
    check_convolution,
    check_mul,
    check_pool,
    check_product,
    check_softmax,
    check_sum,
    conv_shape_of,
    integer,
    pool_shape_of,
    softmax_factor,
)
from aot_model.targets.int8_part import Integer

HEADER = "arm_nnfunctions.h"


# --- calls --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layer:
    """A call of a layer's function: its struct of parameters, and what goes with it."""

    name: str
    function: str
    struct: str
    fields: Sequence[str]
    constants: Sequence[str]
    """Statements before the call."""
    arguments: str
    size: str
    """C expression of the scratch that the library needs now; empty when it needs none."""
    planned: int


def _body(layer: _Layer, buffer: str) -> str:
    fields = "".join(f"        {f},\n" for f in layer.fields)
    guard = (
        f"    if ({layer.size} > {layer.planned}) {{\n        return AOT_MODEL_ERROR_MEMORY; /* another "
        f"version or build of the library */\n    }}\n"
    )
    return (
        f"    const cmsis_nn_context context = {{ .buf = {buffer}, .size = {layer.planned} }};\n"
        f"    const {layer.struct} params = {{\n{fields}    }};\n"
        + "".join(f"    {line}\n" for line in layer.constants)
        + (f"\n{guard}" if layer.size else "\n")
        + f"    return {layer.function}(&context, {layer.arguments}) == ARM_CMSIS_NN_SUCCESS ? AOT_MODEL_OK : "  # noqa: E501
        "AOT_MODEL_ERROR_OPERATOR;"
    )


def _call(
    build: RegionSite,
    match: Match,
    name: str,
    body: str,
    arguments: Sequence[Argument],
    fails: bool,
    function: str,
) -> None:
    build.call(
        name, body, arguments, match=match, includes=(HEADER,), fails=fails, note=f"CMSIS-NN: {function}()"
    )


def _dims(name: str, n: int, h: int, w: int, c: int) -> str:
    return f"const cmsis_nn_dims {name} = {{ .n = {n}, .h = {h}, .w = {w}, .c = {c} }};"


def _tile(name: str, h: int, w: int) -> str:
    return f".{name} = {{ .w = {w}, .h = {h} }}"


def _activation(low: int, high: int) -> str:
    return f".activation = {{ .min = {low}, .max = {high} }}"


def _offsets(part: Integer) -> list[str]:
    return [f".input_offset = {-part.quant.x_zero_point}", f".output_offset = {part.quant.out_zero_point}"]


def _factors(part: Integer, channels: int) -> tuple[list[Argument], str]:
    """Multipliers and shifts, one for each channel. The library's struct has pointers to what it only
    reads.
    """
    multiplier, shift = (a.astype(np.int32) for a in part.quant.channels(channels))
    arguments = [
        Argument("multiplier", Packed("multiplier", multiplier, admissible=ANYTHING)),
        Argument("shift", Packed("shift", shift, admissible=(Range(*SHIFTS),))),
    ]
    return arguments, (
        "const cmsis_nn_per_channel_quant_params quant = { .multiplier = (int32_t "
        "*)(uintptr_t)multiplier, .shift = (int32_t *)(uintptr_t)shift };"
    )


def _bias(part: Integer, channels: int) -> Argument:
    bias = part.bias if part.bias is not None else np.zeros(channels, np.int32)
    return Argument("bias", Packed("bias", bias.astype(np.int32), admissible=ANYTHING))


def extension_of(build: RegionSite) -> str:
    """The instruction set that the library is built for: the option, or that of the processor's kernels."""
    chosen = build.target.option("extension")
    names = {t.name for t in build.processor.lineage()}
    return (
        str(chosen)
        if chosen != "auto"
        else "mve"
        if "cortex-m55" in names
        else "dsp"
        if "cortex-m4" in names
        else "none"
    )


def _scratch(size: int) -> tuple[list[Argument], str]:
    return ([Argument("scratch", Scratch("scratch", size, 4))], "scratch") if size else ([], "NULL")


def _convolution(build: RegionSite, match: Match) -> None:
    part, shape, w = integer(match, "conv"), conv_shape_of(match), match.value("w")
    assert isinstance(part, Integer) and w.data is not None
    s, by_channel = shape, shape.groups > 1
    weights = w.data.reshape(s.out_c, s.kernel_h, s.kernel_w, -1)
    name = "depthwise_conv" if by_channel else "convolve"
    if by_channel:
        weights = np.ascontiguousarray(weights.transpose(3, 1, 2, 0))
    planned = (cmsis_nn_scratch.depthwise if by_channel else cmsis_nn_scratch.convolution)(
        s, extension_of(build)
    )
    factors, quant = _factors(part, s.out_c)
    scratch, buffer = _scratch(planned)
    layer = _Layer(
        f"cmsis_nn_{name}_{s.kernel_h}x{s.kernel_w}",
        f"arm_{name}_wrapper_s8",
        "cmsis_nn_dw_conv_params" if by_channel else "cmsis_nn_conv_params",
        [
            *_offsets(part),
            *([f".ch_mult = {s.out_c // s.in_c}"] if by_channel else []),
            _tile("stride", s.stride_h, s.stride_w),
            _tile("padding", s.pad_top, s.pad_left),
            _tile("dilation", s.dilation_h, s.dilation_w),
            _activation(part.quant.act_min, part.quant.act_max),
        ],
        [
            quant,
            _dims("x_dims", s.batch, s.in_h, s.in_w, s.in_c),
            _dims("w_dims", weights.shape[0], s.kernel_h, s.kernel_w, weights.shape[3]),
            _dims("bias_dims", 1, 1, 1, s.out_c),
            _dims("y_dims", s.batch, s.out_h, s.out_w, s.out_c),
        ],
        "&params, &quant, &x_dims, x, &w_dims, w, &bias_dims, bias, &y_dims, y",
        f"arm_{name}_wrapper_s8_get_buffer_size(&params, &x_dims, &w_dims, &y_dims)",
        planned,
    )
    arguments = [
        Argument("x", match.value("x")),
        Argument("w", Packed("w", weights, admissible=ANYTHING)),
        _bias(part, s.out_c),
        *factors,
        *scratch,
    ]
    _call(
        build,
        match,
        layer.name,
        _body(layer, buffer),
        [*arguments, written("y", match.result.outputs[0])],
        True,
        layer.function,
    )


def _fully_connected(build: RegionSite, match: Match) -> None:
    part, x, w = integer(match, "product"), match.value("x"), match.value("w")
    assert isinstance(part, Integer) and w.data is not None
    depth, units = w.shape
    planned = cmsis_nn_scratch.fully_connected(units, extension_of(build))
    weights = np.ascontiguousarray(w.data.T)
    per_channel = len({*zip(*part.quant.channels(units), strict=True)}) > 1
    factors: list[Argument] = []
    if per_channel:
        factors, quant = _factors(part, units)
    else:
        multiplier, shift = (int(a[0]) for a in part.quant.channels(units))
        quant = (
            f"const cmsis_nn_per_tensor_quant_params quant = {{ .multiplier = {multiplier}, .shift = "
            f"{shift} }};"
        )
    bias = _bias(part, units)
    sums: list[Argument] = []
    if planned:
        # With Helium the library reads here what does not depend on the input.
        constant_part = weights.astype(np.int64).sum(axis=1) * -part.quant.x_zero_point + (
            part.bias if part.bias is not None else 0
        )
        sums = [Argument("sums", Packed("sums", constant_part.astype(np.int32), admissible=ANYTHING))]
    layer = _Layer(
        "cmsis_nn_fully_connected",
        "arm_fully_connected_per_channel_s8" if per_channel else "arm_fully_connected_s8",
        "cmsis_nn_fc_params",
        [*_offsets(part), ".filter_offset = 0", _activation(part.quant.act_min, part.quant.act_max)],
        [
            quant,
            _dims("x_dims", x.type.elements // depth, 1, 1, depth),
            _dims("w_dims", depth, 1, 1, units),
            _dims("bias_dims", 1, 1, 1, units),
            _dims("y_dims", x.type.elements // depth, 1, 1, units),
        ],
        "&params, &quant, &x_dims, x, &w_dims, w, &bias_dims, bias, &y_dims, y",
        "arm_fully_connected_s8_get_buffer_size(&w_dims)",
        planned,
    )
    arguments = [
        Argument("x", x),
        Argument("w", Packed("w", weights, admissible=ANYTHING)),
        bias,
        *factors,
        *sums,
        written("y", match.result.outputs[0]),
    ]
    _call(
        build,
        match,
        layer.name,
        _body(layer, "(void *)(uintptr_t)sums" if planned else "NULL"),
        arguments,
        True,
        layer.function,
    )


def _pool(build: RegionSite, match: Match) -> None:
    node, x, s = match.node("pool"), match.value("x"), pool_shape_of(match)
    assert isinstance(node.op, Pool)
    average = node.op.mode == "average"
    low, high = -128, 127
    if match.has("clip"):
        bounds = [
            None if v is None or v.data is None else int(v.data.reshape(-1)[0])
            for v in (match.node("clip").input(1), match.node("clip").input(2))
        ]
        low, high = (b if b is not None else d for b, d in zip(bounds, (low, high), strict=True))
    planned = cmsis_nn_scratch.average_pool(s, extension_of(build)) if average else 0
    scratch, buffer = _scratch(planned)
    layer = _Layer(
        f"cmsis_nn_{node.op.mode}_pool_{s.kernel_h}x{s.kernel_w}",
        "arm_avgpool_s8" if average else "arm_max_pool_s8",
        "cmsis_nn_pool_params",
        [
            _tile("stride", s.stride_h, s.stride_w),
            _tile("padding", s.pad_top, s.pad_left),
            _activation(low, high),
        ],
        [
            _dims("x_dims", s.batch, s.in_h, s.in_w, s.in_c),
            _dims("window", 1, s.kernel_h, s.kernel_w, 1),
            _dims("y_dims", s.batch, s.out_h, s.out_w, s.out_c),
        ],
        "&params, &x_dims, x, &window, &y_dims, y",
        "arm_avgpool_s8_get_buffer_size(y_dims.w, x_dims.c)" if average else "",
        planned,
    )
    arguments = [Argument("x", x), *scratch, written("y", match.result.outputs[0])]
    _call(build, match, layer.name, _body(layer, buffer), arguments, True, layer.function)


def _pair(build: RegionSite, match: Match, function: str, numbers: Callable[[str], str]) -> None:
    """A call for two tensors of one shape. numbers: its arguments but the count, given those of the
    operands.
    """
    node, out = match.result, match.result.outputs[0]
    same = node.inputs[0] is node.inputs[1]
    inputs = [
        Argument(n, v) for n, v in zip("ab", node.inputs[: 1 if same else 2], strict=False) if v is not None
    ]
    body = (
        f"    return {function}({numbers('a, a' if same else 'a, b')}, {out.type.elements}) == "
        "ARM_CMSIS_NN_SUCCESS ? AOT_MODEL_OK : AOT_MODEL_ERROR_OPERATOR;"
    )
    _call(build, match, f"cmsis_nn_{match.pattern}", body, [*inputs, written("y", out)], True, function)


def _sum(build: RegionSite, match: Match) -> None:
    o = match.result.op
    assert isinstance(o, QuantisedSum)
    terms = ", ".join(f"{-r.zero_point}, {r.multiplier}, {r.shift}" for r in (o.a, o.b))
    result = f"{o.result.zero_point}, {o.result.multiplier}, {o.result.shift}, {o.low}, {o.high}"
    _pair(build, match, "arm_elementwise_add_s8", lambda ab: f"{ab}, {terms}, {o.left_shift}, y, {result}")


def _mul(build: RegionSite, match: Match) -> None:
    o = match.result.op
    assert isinstance(o, QuantisedMul)
    result = f"{o.result.zero_point}, {o.result.multiplier}, {o.result.shift}, {o.low}, {o.high}"
    _pair(
        build,
        match,
        "arm_elementwise_mul_s8",
        lambda ab: f"{ab}, {-o.a_zero_point}, {-o.b_zero_point}, y, {result}",
    )


def _softmax(build: RegionSite, match: Match) -> None:
    x, o = match.value("x"), match.result.op
    assert isinstance(o, QuantisedSoftmax)
    multiplier, shift = softmax_factor(o)
    row = x.shape[-1]
    body = (
        f"    arm_softmax_s8(x, {x.type.elements // row}, {row}, {multiplier}, {shift}, "
        f"{-input_radius(5, shift)}, y);"
    )
    _call(
        build,
        match,
        "cmsis_nn_softmax",
        body,
        [Argument("x", x), written("y", match.result.outputs[0])],
        False,
        "arm_softmax_s8",
    )


# --- the target ---------------------------------------------------------------------------------------------


def _requantised(accumulators: Pattern) -> Pattern:
    """Accumulators with a bias, if there is one, as int8."""
    biased = op("Add", accumulators, constant("bias")) | accumulators
    return op(
        "Requantise",
        biased,
        constant("multiplier"),
        constant("shift"),
        name="requantise",
        where=lambda n: isinstance(n.op, Requantise),
    )


def _patterns() -> tuple[Claim, ...]:
    x, w = value("x", constant=False), constant("w")
    padded = op("Pad", x, constant("pads"), constant("fill") | absent(), absent(), name="pad")
    pool = op("Pool", value("x", constant=False, dtype=DType.INT8), name="pool")
    limit = (constant() | absent(), constant() | absent())
    return (
        Claim("pad_convolution", _requantised(op("Convolution", padded, w, name="conv")), check_convolution),
        Claim("convolution", _requantised(op("Convolution", x, w, name="conv")), check_convolution),
        Claim(
            "fully_connected",
            _requantised(op("MatMul", x, constant("w", rank=2), name="product")),
            check_product,
        ),
        Claim("pool", pool.optional(lambda p: op("Clip", p, *limit, name="clip")), check_pool),
        Claim("add", op("QuantisedSum"), check_sum),
        Claim("mul", op("QuantisedMul"), check_mul),
        Claim("softmax", op("QuantisedSoftmax", x), check_softmax),
    )


_LOWER: dict[str, Callable[[RegionSite, Match], None]] = {
    "pad_convolution": _convolution,
    "convolution": _convolution,
    "fully_connected": _fully_connected,
    "pool": _pool,
    "add": _sum,
    "mul": _mul,
    "softmax": _softmax,
}


def _lower(region: Region, build: RegionSite) -> None:
    for match in region.matches:
        _LOWER[match.pattern](build, match)


_EXTENSION = Attribute(
    "auto",
    "instruction set that the library is built for; auto: that of the processor",
    ("auto", *cmsis_nn_scratch.EXTENSIONS),
)

CMSIS_NN = Target(
    "cmsis-nn",
    "int8 layers as calls of Arm's CMSIS-NN; before a Cortex-M",
    attributes={"extension": _EXTENSION},
    c_checks=(
        (
            "!defined(CMSIS_NN_USE_SINGLE_ROUNDING)",
            "build the library and this file without CMSIS_NN_USE_SINGLE_ROUNDING",
        ),
    ),
    offload=Offload(_patterns(), lower=_lower, keep=frozenset({"QuantisedSoftmax"}), merge=False),
)
