"""Results whose size depends on data fit into the shape that the operator promises, axis by axis."""

from __future__ import annotations

import numpy as np
import pytest
from rows import Row, label_of, registry_rows, values_of
from variants import oracles

SIZED = [row for row in registry_rows() if row.operator.sized_by_data(values_of(row))]
ROWS = [row for row in SIZED if row.operator.has("fold")]
OF_ORACLES = [row for row in SIZED if not row.operator.has("fold") and row.in_onnx]


@pytest.mark.parametrize("row", SIZED, ids=lambda row: row.label)
def test_what_depends_on_data_is_an_axis(row: Row) -> None:
    values = values_of(row)
    types = row.operator.infer(values)
    assert all(0 <= axis < types[k].rank for k, axis in row.operator.sized_by_data(values).items())


@pytest.mark.parametrize("row", OF_ORACLES, ids=lambda row: row.label)
def test_shapes_of_oracles_are_within_the_promised_ones(row: Row) -> None:
    values = values_of(row)
    sized, types = row.operator.sized_by_data(values), row.operator.infer(values)
    for results in oracles(row).outputs.values():
        for k, (result, promised) in enumerate(zip(results, types, strict=False)):
            assert result.ndim == promised.rank, k
            for axis, (actual, room) in enumerate(zip(result.shape, promised.shape, strict=True)):
                assert actual <= room if sized.get(k) == axis else actual == room, (k, axis)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_actual_shapes_are_within_the_promised_ones(row: Row) -> None:
    values = values_of(row)
    arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
    sized, types = row.operator.sized_by_data(values), row.operator.infer(values)
    results = row.operator.fold(arrays)
    assert len(results) == len(types)
    for k, (result, promised) in enumerate(zip(results, types, strict=True)):
        assert result.ndim == promised.rank, k
        for axis, (actual, room) in enumerate(zip(result.shape, promised.shape, strict=True)):
            assert actual <= room if sized.get(k) == axis else actual == room, (k, axis)
    for shape, k in zip(results[len(types) - len(sized) :], sized, strict=True):
        np.testing.assert_array_equal(shape, results[k].shape)


def test_there_are_some() -> None:
    assert {"NonZero", "aot.NonZeroRows", "Compress"} <= {label_of(row.kind) for row in ROWS}
