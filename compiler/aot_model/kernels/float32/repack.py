"""Weights that are an input: what is packed when a model is compiled is packed at the start of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import KernelCode, Scratch

GIVEN = "given"
"""The parameter of the weights as they are given: [output channel][tap]."""


def repacked(code: KernelCode, blocks: Sequence[tuple[int, int, int]], lanes: int, groups: int, out_c: int,
             order: np.ndarray, head: int) -> KernelCode:
    """A kernel that reads constant `weights` [group][block][head, then taps][channel of the block], as one
    that packs them itself. blocks: (first channel, number of blocks, vectors of a block); channels beyond the
    last of a group are zeros. out_c: channels of a group; order: which of the given taps is each packed one;
    head: zeros before the taps of a channel.
    """
    taps = order.size
    size = groups * sum(count * vectors * lanes for _, count, vectors in blocks) * (head + taps)
    text = CText()
    with text.block():
        text.line("/* the weights to the order in which they are read */")
        place = "t"
        if not np.array_equal(order, np.arange(taps)):
            place = "order[t]"
            kind = "uint8_t" if taps <= 256 else "uint16_t" if taps <= 65536 else "int32_t"
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
                            value = f"{GIVEN}[({row}) * {taps} + {place}]"
                            if first + count * width > out_c:
                                value = f"channel < {out_c} ? {value} : 0.0f"
                            text.line(f"to[(t + {head}) * {width} + v] = {value};")
                    text.line(f"to += {(taps + head) * width};")
    return replace(code, body=str(text) + code.body,
                   constants=tuple(c for c in code.constants if c.name != "weights"),
                   scratch=(*code.scratch, Scratch("weights", 4 * size, 4 * lanes, "float")),
                   note=f"{code.note}; weights packed at the start")  # fmt: skip
