"""A value for every keyword of a library, and the arguments of `aot-model compile` that it becomes."""

from __future__ import annotations

from aot_model.cli.keywords import LIBRARY, OPTIONS

SAMPLES: dict[str, object] = {
    "dims": {"batch": 1, "width": 4},
    "workspace": "static",
    "io": "caller",
    "pools": ["fast:64k", "slow"],
    "constant_pools": ["flash"],
    "pool_sections": {"fast": ".fast"},
    "pool_speeds": {"fast": 1},
    "pool_targets": {"fast": "host"},
    "planner": "greedy",
    "params": "external",
    "profile": True,
    "interfaces": ["module"],
    "string_bytes": "128",
    "metadata_level": "full",
    "max_ram": 100000,
    "max_flash": "200k",
}
"""For programs that record their arguments: the compiler would refuse pools of constants with external parameters."""


def words() -> list[str]:
    """In the order of the table."""
    assert set(SAMPLES) == {k.name for k in OPTIONS}, "each has a sample"
    found = []
    for keyword in OPTIONS:
        value = SAMPLES[keyword.name]
        if isinstance(value, dict):
            found += [f"{keyword.flag}={key}={one}" for key, one in value.items()]
        elif isinstance(value, list):
            found += [f"{keyword.flag}={one}" for one in value]
        else:
            found.append(keyword.flag if value is True else f"{keyword.flag}={value}")
    return found


def spellings(system: str) -> set[str]:
    """Every keyword that the documentation has for a library."""
    return {name for keyword in LIBRARY if (name := keyword.spelling(system))}


FILES = {"net.c", "net.h", "net.json", "net.params"}
"""What a library called `net` is made of, with these values; the report comes beside them."""
