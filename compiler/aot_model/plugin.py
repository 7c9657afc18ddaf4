"""All that a target of one's own needs, in one place: see docs/targets.md and examples/accelerator.

    from aot_model.plugin import Argument, Claim, Offload, Target, constant, op, value, written
"""

from aot_model.errors import fail
from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import ANY, Pattern, absent, constant, op, sequence, value
from aot_model.ir.program import Device, Overlap, Program
from aot_model.ir.types import DType, Quantisation, TensorType
from aot_model.ir.values import Value
from aot_model.ir.values import constant as new_constant
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.target import Attribute, Target
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Blob, Claim, Offload, Source
from aot_model.partition.region import Match, Region

__all__ = [
    "ANY", "Argument", "Attribute", "Blob", "Claim", "DType", "Device", "Graph", "Match", "Node", "Offload", "Overlap", "Packed", "Pattern", "Program", "Quantisation",
    "Region", "RegionSite", "Scratch", "Source", "Target", "TensorType", "Value", "absent", "constant", "fail", "new_constant", "op", "sequence", "value", "written",
]  # fmt: skip
