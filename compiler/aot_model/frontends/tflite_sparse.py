"""TFLite: sparse constants as dense ones.

A sparse tensor is a tree: each level is an axis of the tensor, or an axis of the blocks that it falls into,
in the order in which the file goes through them. A dense level has all its coordinates under every node of
the level above; a sparse one lists those under each node (segments of a list of indices, as in compressed
sparse rows). The leaves are the values. Source: SparsityParameters in schema.fbs of TensorFlow Lite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from flatbuffers.table import Table

MAX_LEAVES = 2**31 - 1

_VECTORS = {1: "Int32Vector", 2: "Uint16Vector", 3: "Uint8Vector"}
"""Members of the union SparseIndexVector."""


@dataclass(frozen=True)
class Levels:
    """Where each value goes: its place in the flattened dense tensor."""

    places: np.ndarray

    @property
    def count(self) -> int:
        return len(self.places)


def _numbers(kind: int, table: Table | None, size: int) -> np.ndarray:
    name = _VECTORS.get(kind)
    if name is None or table is None:
        raise ValueError("a sparse dimension has no indices")
    reader = getattr(tflite, name)()
    reader.Init(table.Bytes, table.Pos)
    if not 0 <= reader.ValuesLength() <= size:
        raise ValueError(f"a sparse dimension has {reader.ValuesLength()} indices")
    return np.asarray(reader.ValuesAsNumpy() if reader.ValuesLength() else [], dtype=np.int64)


def _block_sizes(s: Any, rank: int, order: list[int], metadata: list[Any]) -> list[int]:
    """Extents of the blocks' axes, which are dense, by number of the axis behind those of the tensor."""
    sizes = {axis: int(m.DenseSize()) for axis, m in zip(order, metadata, strict=True) if axis >= rank}
    if any(m.Format() for axis, m in zip(order, metadata, strict=True) if axis >= rank) or any(
        v < 1 for v in sizes.values()
    ):
        raise ValueError("the blocks of a sparse tensor are not dense")
    return [sizes[rank + k] for k in range(len(order) - rank)]


def sparsity(s: Any, shape: tuple[int, ...], size: int) -> Levels:
    """The places of the stored values of a tensor of this shape, in a file of `size` bytes. ValueError when
    they do not fit.
    """
    rank = len(shape)
    if not rank <= s.TraversalOrderLength() <= 2 * rank or s.DimMetadataLength() != s.TraversalOrderLength():
        raise ValueError(f"a sparse tensor of {rank} axes has {s.TraversalOrderLength()} levels")
    order = [int(v) for v in s.TraversalOrderAsNumpy()]
    metadata = [s.DimMetadata(k) for k in range(len(order))]
    if sorted(order) != list(range(len(order))) or s.BlockMapLength() != len(order) - rank:
        raise ValueError(f"levels {order} of a sparse tensor of {rank} axes")
    blocks = _block_sizes(s, rank, order, metadata)
    mapped = [int(v) for v in s.BlockMapAsNumpy()] if blocks else []
    if any(not 0 <= a < rank for a in mapped) or len(set(mapped)) != len(mapped):
        raise ValueError(f"blocks of a sparse tensor along axes {mapped}")
    inner = dict(zip(mapped, blocks, strict=True))
    if any(d % inner.get(a, 1) for a, d in enumerate(shape)):
        raise ValueError(f"shape {list(shape)} does not fall into blocks of {blocks}")
    extents = [d // inner.get(a, 1) for a, d in enumerate(shape)] + blocks
    coordinates: dict[int, np.ndarray] = {}
    nodes = 1
    for axis, m in zip(order, metadata, strict=True):
        extent = extents[axis]
        if m.Format() == 0:
            counts, found = np.full(nodes, extent, dtype=np.int64), None
        else:
            segments = _numbers(m.ArraySegmentsType(), m.ArraySegments(), size)
            found = _numbers(m.ArrayIndicesType(), m.ArrayIndices(), size)
            counts = np.diff(segments)
            if (
                len(segments) != nodes + 1
                or segments[0] != 0
                or (len(counts) and counts.min() < 0)
                or segments[-1] != len(found)
            ):
                raise ValueError(f"segments of axis {axis} of a sparse tensor do not fit its indices")
            if len(found) and (found.min() < 0 or found.max() >= extent):
                raise ValueError(f"an index of axis {axis} of a sparse tensor is outside its {extent}")
        total = int(counts.sum())
        if total > min(MAX_LEAVES, math.prod(shape)):
            raise ValueError("a sparse tensor has more values than elements")
        coordinates = {a: np.repeat(c, counts) for a, c in coordinates.items()}
        coordinates[axis] = np.tile(np.arange(extent, dtype=np.int64), nodes) if found is None else found
        nodes = total
    for k, a in enumerate(mapped):
        coordinates[a] = coordinates[a] * blocks[k] + coordinates[rank + k]
    places = np.zeros(nodes, dtype=np.int64)
    for a, d in enumerate(shape):
        places = places * d + coordinates[a]
    return Levels(places)


def dense(values: np.ndarray, levels: Levels, shape: tuple[int, ...]) -> np.ndarray:
    """The dense tensor: zeros where nothing is stored."""
    flat = np.zeros(math.prod(shape), dtype=values.dtype)
    flat[levels.places] = values
    return flat.reshape(shape)
