"""The kernels' table: for every kernel that a target registers, the layers that it is run on, and where.

The layers themselves are in the modules that this one imports, by type and by what they are odd in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from block_layers import block_products
from float32_layers import float_convolutions, float_products, products_of_apart
from forms_of_layers import (
    layers_before_floats,
    layers_of_all_forms,
    sums_of_channels,
    wide_windows,
    window_sums,
)
from images_of_table import images_of_int8
from int8_layers import int8_convolutions, int8_products, int8_transposed
from int16_layers import integer_convolutions, integer_products, integer_transposed
from large_layers import columns_of_floats, large_int8, large_pools
from layer import Layer, Step
from pooling_layers import integer_pools, pools
from single_windows import single_windows
from strided_products import strided_products

from aot_model.ir.graph import Graph
from aot_model.ops.registry import OPERATORS
from batch import Case


def samples_of(name: str) -> list[Layer]:
    """The samples of one of our own operators whose other inputs are constants."""
    kind = OPERATORS["aot", name]
    layers = []
    for k, sample in enumerate(kind.samples()):
        x, *others = (np.asarray(v) for v in sample.inputs if v is not None)
        layers.append(
            Layer(
                f"{k} {x.dtype}{list(x.shape)} {sample.attributes}",
                x,
                (Step(kind(**sample.attributes), tuple(others)),),
            )
        )
    return layers


_MADE: dict[str, Callable[[], list[Layer]]] = {
    "integer convolution": lambda: (
        integer_convolutions() + sums_of_channels(np.int16) + single_windows(np.int16)
    ),
    "integer transposed convolution": integer_transposed,
    "integer matrix product": lambda: integer_products() + strided_products(),
    "int8 convolution": lambda: (
        int8_convolutions()
        + images_of_int8()
        + large_int8()
        + layers_of_all_forms()
        + window_sums()
        + sums_of_channels(np.int8)
        + sums_of_channels(np.uint8)
        + single_windows(np.int8, np.uint8)
    ),
    "int8 transposed convolution": int8_transposed,
    "int8 matrix product": int8_products,
    "int8 pooling": lambda: integer_pools() + large_pools(),
    "float32 convolution": lambda: (
        float_convolutions(False) + layers_before_floats() + wide_windows(True) + single_windows(np.float32)
    ),
    "float32 transposed convolution": partial(float_convolutions, True),
    "float32 pooling": lambda: (
        pools(("max", np.float32), ("average", np.float32)) + columns_of_floats() + wide_windows(False)
    ),
    "float32 matrix product": lambda: float_products() + products_of_apart(),
    "float32 times blocks of 4 or 8 bits": lambda: samples_of("BlockMatMul") + block_products(),
}
GROUPS = {group: cache(made) for group, made in _MADE.items()}
"""What the kernels of a name fit (without the family in parentheses); drawn once: it takes half a second."""


def _graph(group: str, name: str) -> Graph:
    return next(layer for layer in GROUPS[group]() if layer.name == name).graph()


def case_of(group: str, layer: Layer, options: dict[str, str]) -> Case:
    """A layer of a group as a case that can travel between processes: it goes by its name."""
    return layer.case(partial(_graph, group, layer.name), options)


@dataclass(frozen=True)
class Place:
    """A target with options, and where its code runs: this machine, a board of qemu.BOARDS, or one of
    MACHINES.
    """

    target: str
    options: tuple[tuple[str, str], ...] = ()
    board: str | None = None


M4 = Place("cortex-m4", board="m4")
M4_MEMORIES = (M4, *(replace(M4, options=(("memory", name),)) for name in ("l4-art", "0ws")))
"""What code and constants are in decides which products are taken together, and what is copied to RAM."""

FLOATS = (Place("c"), Place("host", (("vector", "v4"),)), Place("host", (("vector", "v8"),)),
          *M4_MEMORIES, Place("cortex-m55", board="m55"))  # fmt: skip

PLACES: dict[str, tuple[Place, ...]] = {
    "plain C": (Place("c"),),
    "plain C, eight registers": (Place("cortex-m0", board="m0"),),
    "AVX2": (Place("host", (("vector", "v8"),)),),
    "AVX-512 VNNI": (Place("host", (("vector", "v8"), ("dot", "vnni")), "vnni"),),
    "SDOT": (Place("host", (("vector", "neon"), ("dot", "sdot")), "sdot"),),
    "DSP extension": M4_MEMORIES,
    "Helium": (Place("cortex-m55", board="m55"),),
    "float32": FLOATS,
    "float32 times blocks of 4 or 8 bits": (*FLOATS, Place("cortex-m7", board="m7")),
}
"""Where the kernels of a family run, or one kernel; those without a family are written for the vectors of the
target."""


def group_of(kernel: str) -> str:
    return kernel.split(" (")[0]


def places_of(kernel: str) -> tuple[Place, ...]:
    family = kernel.partition(" (")[2].removesuffix(")") or kernel.split()[0]
    return PLACES.get(kernel, PLACES.get(family, ()))
