"""All that a target of one's own needs, in one place: see docs/targets.md and examples/accelerator, for
kernels docs/developing/kernels.md.

    from aot_model.plugin import Argument, Claim, Offload, Target, constant, op, value, written
"""

from aot_model.errors import fail
from aot_model.ir.admissible import ANYTHING, SHIFTS, Range
from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import ANY, Pattern, absent, constant, op, sequence, value
from aot_model.ir.program import Device, Overlap, Program
from aot_model.ir.types import DType, Quantisation, TensorType
from aot_model.ir.values import Value
from aot_model.ir.values import constant as new_constant
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.finish import raw_constants, requantise_helper
from aot_model.kernels.int8.instructions import Instruction, InstructionSet, Operand
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, room_for_bias
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.overlap import by_pixels, by_rows, slack
from aot_model.kernels.site import Site
from aot_model.kernels.tail import Chain
from aot_model.kernels.target import Attribute, Kernel, Target
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Blob, Claim, Offload, Source
from aot_model.partition.region import Match, Region
from aot_model.targets.builtin import BUILTIN
from aot_model.targets.int8 import kernels as int8_kernels
from aot_model.targets.int8_families import OUTSIDE as PLAIN_INT8
from aot_model.targets.int8_families import Family

PROCESSORS = {t.name: t for t in BUILTIN if t.is_processor}
"""Targets that may be parents."""

__all__ = [
    "ANY",
    "ANYTHING",
    "PLAIN_INT8",
    "PROCESSORS",
    "SHIFTS",
    "Argument",
    "Attribute",
    "Blob",
    "Chain",
    "Claim",
    "ConvShape",
    "DType",
    "Device",
    "Family",
    "Graph",
    "Instruction",
    "InstructionSet",
    "Kernel",
    "KernelCode",
    "Match",
    "Node",
    "Offload",
    "Operand",
    "Overlap",
    "Packed",
    "Pattern",
    "Program",
    "QuantSpec",
    "Quantisation",
    "Range",
    "Region",
    "RegionSite",
    "Scratch",
    "Site",
    "Source",
    "Tail",
    "Target",
    "TensorType",
    "Value",
    "absent",
    "bounds",
    "by_pixels",
    "by_rows",
    "constant",
    "fail",
    "fold_zero_point",
    "int8_kernels",
    "new_constant",
    "op",
    "raw_constants",
    "requantise_helper",
    "room_for_bias",
    "sequence",
    "slack",
    "value",
    "written",
]  # fmt: skip
