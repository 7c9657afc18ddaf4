"""The table of rules: what it says of itself, and that the documentation says the same."""

from __future__ import annotations

from pathlib import Path

from aot_model.cycles.rules import CORES, MEMORIES, RULES, SOURCES, core_of, markdown
from aot_model.targets.cores import CORES as TARGETS

DOCS = Path(__file__).resolve().parents[2] / "docs/cycles.md"


def test_every_number_has_a_source_and_a_use() -> None:
    text = "".join(file.read_text() for file in Path(__file__).resolve().parents[2].glob(
        "compiler/aot_model/cycles/*.py") if file.name != "rules.py")  # fmt: skip
    for rule in RULES:
        assert rule.values and rule.sources and set(rule.sources) <= set(SOURCES), rule.name
        assert f'"{rule.name}"' in text, f"nobody asks for {rule.name}"
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(set(memory.sources) <= set(SOURCES) for memory in MEMORIES)
    assert all(memory.sources for memory in MEMORIES if memory.code or memory.data)


def test_every_core_has_rules() -> None:
    assert all(core_of(core.name) for core in TARGETS)
    assert core_of("cortex-m33+nodsp") == "m33" and core_of("cortex-a53") is None
    assert set(CORES) == {core for rule in RULES for core in rule.values}


def test_the_documentation_has_the_same() -> None:
    assert DOCS.read_text().endswith(markdown()), "docs/cycles.md says how its tables are written"
    for called, trust in CORES.values():
        row = next(line for line in DOCS.read_text().splitlines()
                   if line.startswith("| Cortex-M") and _names(line, called))  # fmt: skip
        assert trust.error in row


def _names(row: str, core: str) -> bool:
    wanted = core.removeprefix("cortex-").upper().replace("PLUS", "+")
    return wanted in row.split("|")[1].replace("Cortex-", "").replace(",", " ").split()
