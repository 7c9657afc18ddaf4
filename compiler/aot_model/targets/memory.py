"""What a target's options say of how the constants of a node are read."""

from __future__ import annotations

from aot_model.cycles.rules import Memory, memory_named
from aot_model.kernels.site import Site


def memory_of_constants(site: Site) -> Memory | None:
    """Where they are, by the option `memory`; None: nothing is known."""
    return memory_named(str(site.target.option("memory"))) if site.target.has_option("memory") else None
