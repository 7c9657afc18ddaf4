"""The sum of two quantised tensors, int8, on hosts: the proven form of affine_sum.py with AVX2."""

from __future__ import annotations

from aot_model.kernels.int8.affine_sum import Affine
from aot_model.kernels.int8.sum_mve import RowSum


def row_kernel(form: Affine) -> RowSum:
    """The function of the runtime, with the form's numbers as its last arguments."""
    return RowSum("avx2_sum", (form.ma, form.mb, form.offset, form.shift, form.low, form.high),
                  header="aot_model/int8_avx2_rows.h")
