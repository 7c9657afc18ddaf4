"""The integer kernels of each instruction set: a row says which writers there are, and for which shapes they
are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from aot_model.ir.types import DType
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import (
    affine_sum,
    conv_c,
    conv_dsp,
    conv_host,
    conv_mve,
    depthwise_c,
    depthwise_dsp,
    depthwise_host,
    depthwise_mve,
    nibbles_dsp,
    pooling,
    requantise_mve,
    vectors,
)
from aot_model.kernels.int8.affine_sum import Affine, RowSum
from aot_model.kernels.int8.spec import QuantSpec, Writer
from aot_model.kernels.reading import Reading

PoolWriter = Callable[[str, ConvShape, str, "Tail | None"], KernelCode]
PoolFits = Callable[[ConvShape, str], bool]
Fits = Callable[[ConvShape, QuantSpec], bool]


@dataclass(frozen=True)
class Family:
    """The kernels of one instruction set. Each says for which shapes it is right; conv_c does all."""

    name: str
    conv: Writer
    conv_fits: Fits
    pool: PoolWriter
    depthwise: Writer = depthwise_c.depthwise
    depthwise_fits: Fits = depthwise_c.applicable
    pool_fits: PoolFits = lambda shape, dtype: dtype in ("int8", "uint8")
    """Of windows without dilation that count no padding, by the type of their elements."""
    sum_rows: Mapping[DType, Callable[[Affine], RowSum]] = field(default_factory=dict)
    """The sum with another tensor, by the type of all, for tails that take rows."""
    lookup_rows: Mapping[DType, RowSum] = field(default_factory=dict)
    """A table of 256 bytes at results of that type, name(results, table, y, n), for such tails."""
    dialects: tuple[str, ...] | None = None
    """Vector dialects of the target with which the family may be used; None: any."""
    winograd: bool = False
    """3x3 convolutions may be Winograd's, where there is room."""
    reading: Callable[[Family, Reading], Family] | None = None
    """The family for a core and a memory of constants; None: it is the same for all."""
    dot: str | None = None
    """What the target's option `dot` must say for that."""
    accumulators: bool = False
    """Whether a tail may take the accumulators as they are, where no requantisation follows."""
    channel_sums: bool = False
    """The same of depthwise convolutions alone, those that `depthwise_fits`."""
    int8_weights: bool = False
    """Whether weights are packed as int8, so that uint8 ones beyond 127 go to plain C."""

    nibbles: Callable[..., KernelCode | None] | None = None
    """A convolution whose weights of 4 bits are read where they lie; the arguments are a Writer's."""
    column_pairs: bool = False
    """Whether a convolution to one channel is computed as one to two (kernels/column_pairs.py)."""
    zero_points: bool = False
    """Whether int8 weights may have a zero point, so that uint8 ones become such."""
    one_channel: Writer | None = None
    """Of convolutions of one channel that are depthwise ones of several outputs, and which those are; weights
    [kernel_h, kernel_w, out_c]."""
    one_channel_fits: Callable[[ConvShape], bool] = lambda shape: False

    def packs(self, weights: np.ndarray) -> bool:
        return not self.int8_weights or weights.dtype.kind == "i" or int(weights.max(initial=0)) <= 127


def _pool(
    kind: str,
    shape: ConvShape,
    dtype: str,
    tail: Tail | None,
    dsp: bool = False,
    windows: pooling.Windows | None = None,
    compact: bool = False,
) -> KernelCode:
    if windows and windows.takes(shape, dtype):
        return windows.pool(kind, shape, *DType.of(dtype).limits, dtype, tail)  # type: ignore[arg-type]
    return pooling.pool(kind, shape, dtype, dsp, tail, compact)  # type: ignore[arg-type]


def _pooled_by_helium(shape: ConvShape, dtype: str) -> bool:
    """One channel of int16 is left to a loop over the elements: a call for each window takes longer."""
    wide = dtype == "int16" and shape.in_c > 1 and pooling.HELIUM.takes(shape, dtype)
    return wide or dtype in ("int8", "uint8")


def _pooled_in_pairs(shape: ConvShape, dtype: str) -> bool:
    """Sums of int16 have 32 bits; one channel of them is left to a loop over the elements."""
    return dtype in ("int8", "uint8") or (shape.in_c > 1 and shape.kernel_h * shape.kernel_w < 1 << 16)


def _always(shape: ConvShape, quant: QuantSpec) -> bool:
    return True


PLAIN = Family("plain C", conv_c.conv, _always, _pool, accumulators=True)
OUTSIDE = replace(PLAIN, accumulators=False, int8_weights=True)
"""What families of plug-ins begin with: their kernels are given int8 weights and a requantisation."""
ARMV6M = replace(PLAIN, name="plain C, eight registers", conv=partial(conv_c.conv, block=(1, 2)))
HOST = Family(
    "AVX2", conv_host.conv, _always, partial(_pool, windows=pooling.AVX2), depthwise_host.depthwise,
    _always, sum_rows={DType.INT8: affine_sum.avx2_sum}, dialects=("v8", "v16"), accumulators=True,
)  # fmt: skip
AVX512_VNNI = replace(
    HOST, name=vectors.VNNI.name, conv=partial(conv_host.conv, dialect=vectors.VNNI), dot="vnni"
)
NEON_SDOT = replace(
    PLAIN,
    name=vectors.SDOT.name,
    conv=partial(conv_host.conv, dialect=vectors.SDOT),
    dialects=("neon",),
    dot="sdot",
)


def _dsp_for(family: Family, reading: Reading) -> Family:
    paired = None if reading.compact else depthwise_dsp.PAIRED
    by_channel: dict[str, Any] = {"overlaps": reading.overlaps, "paired_from": paired}
    return replace(
        family,
        conv=partial(conv_dsp.conv, reading=reading),
        pool=partial(_pool, dsp=True, compact=reading.compact),
        depthwise=partial(depthwise_dsp.depthwise, **by_channel),
        one_channel=partial(depthwise_dsp.one_channel, room=reading.room, **by_channel),
    )


DSP = Family(
    "DSP extension",
    conv_dsp.conv,
    conv_dsp.applicable,
    partial(_pool, dsp=True),
    depthwise_dsp.depthwise,
    depthwise_dsp.applicable,
    pool_fits=_pooled_in_pairs,
    accumulators=True,
    sum_rows={DType.INT8: affine_sum.dsp_sum},
    winograd=True,
    nibbles=nibbles_dsp.conv,
    column_pairs=True,
    reading=_dsp_for,
    int8_weights=True,
    zero_points=True,
    one_channel=depthwise_dsp.one_channel,
    one_channel_fits=depthwise_dsp.takes_one_channel,
)


def _helium_for(family: Family, reading: Reading) -> Family:
    return replace(
        family,
        conv=partial(conv_mve.conv, room=reading.room, compact=reading.compact),
        depthwise=partial(depthwise_mve.depthwise, room=reading.room, compact=reading.compact),
    )


HELIUM = Family(
    "Helium",
    conv_mve.conv,
    conv_mve.applicable,
    partial(_pool, windows=pooling.HELIUM),
    depthwise_mve.depthwise,
    depthwise_mve.applicable,
    pool_fits=_pooled_by_helium,
    sum_rows={DType.INT8: affine_sum.mve_sum, DType.UINT8: affine_sum.mve_sum_of_uint8},
    lookup_rows={
        kind: RowSum(f"aot_mve_lookup{of}", header=requantise_mve.HEADER)
        for kind, of in ((DType.INT8, ""), (DType.UINT8, "_uint8"))
    },
    reading=_helium_for,
    channel_sums=True,
    int8_weights=True,
    zero_points=True,
)
