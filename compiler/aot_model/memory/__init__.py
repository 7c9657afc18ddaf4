"""The memory planner: blocks with live ranges in, offsets inside pools out.

Independent of the rest of the compiler. Read in this order: blocks (what is asked), bodies (the one form that
all constraints take), bound, layout, heuristics, optimal, planner.

    result = plan([Block("x", 400, 16, 0, 1), Block("y", 400, 16, 1, 2)], [Overlap("x", "y")])
    result.offsets["y"]  # Placement(pool='workspace', offset=0): written over x
"""

from .blocks import Block, Overlap, Placement, PlanError, Pool, Unplaced, View
from .bodies import Problem
from .layout import Layout
from .planner import DEFAULT, Algorithm, MemoryPlan, PoolPlan, algorithm_names, around, plan
from .verify import verify

__all__ = [
    "DEFAULT",
    "Algorithm",
    "Block",
    "Layout",
    "MemoryPlan",
    "Overlap",
    "Placement",
    "PlanError",
    "Pool",
    "PoolPlan",
    "Problem",
    "Unplaced",
    "View",
    "algorithm_names",
    "around",
    "plan",
    "verify",
]
