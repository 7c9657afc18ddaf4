"""What the int8 kernels of hosts must know of an instruction set: a handful of C functions on eight channels.

The kernels (conv_host, depthwise_host, pooling_host) are written in terms of these functions, so another instruction set
is another row of `DIALECTS`. All names begin with q8_. Types: `q8_acc` is eight int32 accumulators, `q8_weights` what one
step of a dot product takes of the weights of eight channels, [channel][group], `q8_inputs` the inputs of that step.

Accumulators of 16 channels are two: channels 0-3, 8-11 and channels 4-7, 12-15, as interleaving within 128-bit lanes
gives them; packing to bytes undoes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from aot_model.kernels.int8.host_x86 import AVX2_FUNCTIONS, VNNI_FUNCTIONS


@dataclass(frozen=True)
class HostDialect:
    """One instruction set."""

    name: str
    group: int
    """Inputs of one step of the dot product."""
    element: str
    """Type of an activation in the tile that the micro-kernels read."""
    flip: int
    """Added to int8 inputs on their way into the tile."""
    functions: Mapping[str, str]
    """C text by name, each after those it calls."""
    order: tuple[int, ...] = (0, 2, 1, 3)
    """Lane of each four that q8_scale and q8_round leave at an index."""
    includes: frozenset[str] = frozenset({"immintrin.h", "string.h"})

    @property
    def element_bytes(self) -> int:
        return np.dtype(self.element.removesuffix("_t")).itemsize

    prefix: str = "q8_"

    def named(self, text: str) -> str:
        """C text with the names of this dialect: layers of several may be in one model."""
        return text.replace("q8_", self.prefix)

    def weights_fit(self, weights: np.ndarray) -> bool:
        """Whether the dot product takes these weights (less their zero point)."""
        limit = 1 << (15 if self.group == 2 else 7)
        return bool((weights >= -limit).all() and (weights < limit).all())

    def helpers(self, *texts: str) -> list[str]:
        """The functions that the texts call, directly or not (an unused one would be a warning)."""
        wanted = "\n".join(texts)
        found: list[str] = []
        for name, text in reversed(list(self.functions.items())):
            if f"{name}(" in wanted or f"{name} " in wanted:
                found.append(text)
                wanted += text
        return found[::-1]


AVX2 = HostDialect("avx2", 2, "int16_t", 0, AVX2_FUNCTIONS)
AVX_VNNI = HostDialect("avx-vnni", 4, "uint8_t", 128, VNNI_FUNCTIONS, prefix="q8v_")

DIALECTS: dict[str, HostDialect] = {d.name: d for d in (AVX2, AVX_VNNI)}
