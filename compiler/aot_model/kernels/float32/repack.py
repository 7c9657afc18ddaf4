"""Weights that are an input: what is packed when a model is compiled is packed at the start of a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import KernelCode, Scratch

GIVEN = "given"
"""The parameter of the weights as they are given: [output channel][tap]."""


@dataclass(frozen=True)
class Weights:
    """What an input is multiplied by, and where the sums begin."""

    values: np.ndarray
    """[out_c, (planes,) kernel_h, kernel_w, in_c / groups]"""
    bias: np.ndarray | None = None
    """[out_c]; None: zero."""
    given: bool = False
    """They are an input, read from the parameter GIVEN as they lie there; `values` says no more than their
    shape.
    """

    @property
    def of_channel(self) -> int:
        """Taps of an output channel."""
        return math.prod(self.values.shape[1:])

    def given_order(self, in_order: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Which of the taps of a channel, as they are given, is which of those that are read; in_order:
        [channel, …] to [channel, tap] in the order of reading.
        """
        order: np.ndarray = in_order(np.arange(self.of_channel).reshape(1, *self.values.shape[1:]))[0]
        return order


def repacked(
    code: KernelCode,
    weights: Weights,
    blocks: Sequence[tuple[int, int, int]],
    lanes: int,
    groups: int,
    out_c: int,
    order: np.ndarray,
    head: int,
) -> KernelCode:
    """A kernel that reads constant `weights` [group][block][head, then taps][channel of the block], as one
    that packs them itself. blocks: (first channel, number of blocks, vectors of a block); channels beyond the
    last of a group are zeros. out_c: channels of a group; order: which of the given taps is each packed one
    (of a transposed convolution some may meet no output); head: zeros before the taps of a channel.
    """
    taps, of_channel = order.size, weights.of_channel
    size = groups * sum(count * vectors * lanes for _, count, vectors in blocks) * (head + taps)
    text = CText()
    with text.block():
        text.line("/* the weights to the order in which they are read */")
        place = "t"
        if not np.array_equal(order, np.arange(taps)):
            place = "order[t]"
            kind = f"{np.min_scalar_type(of_channel - 1)}_t"
            text.line(f"static const {kind} order[{taps}] = {{{', '.join(str(t) for t in order.tolist())}}};")
        text.line("float *to = weights;")
        with text.loop("g", str(groups), needed=groups > 1):
            for first, count, vectors in blocks:
                width = vectors * lanes
                with text.loop("b", str(count)):
                    with text.loop("v", str(width)):
                        channel = total(product("b", width), "v", str(first))
                        text.line(f"const int32_t channel = {channel};")
                        if head:
                            text.line("to[v] = 0.0f;")
                        row = total("channel", product("g", out_c) if groups > 1 else "0")
                        with text.loop("t", str(taps)):
                            value = f"{GIVEN}[({row}) * {of_channel} + {place}]"
                            if first + count * width > out_c:
                                value = f"channel < {out_c} ? {value} : 0.0f"
                            text.line(f"to[(t + {head}) * {width} + v] = {value};")
                    text.line(f"to += {(taps + head) * width};")
    return replace(code, body=str(text) + code.body,
                   constants=tuple(c for c in code.constants if c.name != "weights"),
                   scratch=(*code.scratch, Scratch("weights", 4 * size, 4 * lanes, "float")),
                   note=f"{code.note}; weights packed at the start")  # fmt: skip
