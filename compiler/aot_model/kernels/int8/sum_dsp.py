"""The sum of two quantised tensors, int8, DSP extension: the proven form of affine_sum.py."""

from __future__ import annotations

from aot_model.kernels.int8.affine_sum import Affine
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.sum_mve import RowSum


def row_kernel(form: Affine) -> RowSum:
    """The function of the runtime, with the form's numbers as its last arguments."""
    numbers = (form.ma, form.mb, form.offset, form.shift)
    if (form.low, form.high) == (-128, 127):
        return RowSum("dsp_sum", numbers, header=HEADER)
    return RowSum("dsp_sum_between", (*numbers, form.low, form.high), header=HEADER)
