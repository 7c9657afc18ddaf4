"""docs/tflite.md from the rules of the frontend and the cases of the operators.

python tests/tflite_operators/tflite_page.py [--check]
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import tflite

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from all_cases import CASES

from aot_model.frontends.tflite import NEVER
from aot_model.frontends.tflite_conversion import RULES

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "tflite.md"
_LAST = tflite.BuiltinOperator.STABLEHLO_CBRT
"""Of the schema that the page counts: a newer package would make another page."""
_SCHEMA = {k: v for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int) and v <= _LAST}
_NO_OPERATORS = {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
_ORACLES = {"litert": "LiteRT", "litert-all": "LiteRT", "tflm": "TensorFlow Lite Micro", "numpy": "numpy"}
ELSEWHERE = {
    **dict.fromkeys(
        ("IF", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"),
        "tests/frontends/test_tflite_control_flow.py",
    ),
    "DENSIFY": "tests/frontends/test_tflite.py",
    "CUSTOM:TFLite_Detection_PostProcess": "models of the corpus",
}
"""Operators that need more than one run or graph, and what tests them."""


def operators_of(model: bytes) -> set[str]:
    """The operators in a file, all sub-graphs."""
    file = tflite.Model.GetRootAs(model, 0)
    names = {v: k for k, v in _SCHEMA.items()}
    codes = [file.OperatorCodes(k) for k in range(file.OperatorCodesLength())]
    return {
        f"CUSTOM:{c.CustomCode().decode()}"
        if c.CustomCode()
        else names[max(c.BuiltinCode(), c.DeprecatedBuiltinCode())]
        for c in codes
    }


def page() -> str:
    """The text of docs/tflite.md."""
    oracles = defaultdict(list)
    for case in CASES:
        for kind in operators_of(case.model):
            oracles[kind].append(_ORACLES[case.oracle])
    builtin = sorted(k for k in RULES if k in _SCHEMA)
    named = {k for k in _SCHEMA if k not in _NO_OPERATORS}
    missing = sorted(named - set(builtin))
    stable = [k for k in missing if k.startswith("STABLEHLO_") and not _advice(k)]
    lines = [
        "# Operators of TFLite",
        "",
        "Made by `tests/tflite_operators/tflite_page.py` from the rules of the frontend and the cases of the "
        "operators (`tests/tflite_operators`); do not edit.",
        "",
        f"{len(builtin)} of the {len(named)} built-in operators of the format are compiled, and those of its "
        "custom ones that microcontrollers and TensorFlow's converter use. Each case is a small model: the "
        "generated C against the oracle; integers agree in every bit. Types, options, extents and scales of "
        "the cases change with every commit (`drawn_operators.py`).",
        "",
        "Element types are those of the kernels of LiteRT and TensorFlow Lite Micro: floats, int8, uint8, "
        "int16 with 8-bit weights, 4-bit weights, floats with 8-bit weights; what neither computes is an "
        "error that says so. With `arithmetic=tflm`, the default, integers are rounded as TensorFlow Lite "
        "Micro's kernels for Cortex-M do, with `arithmetic=litert-ref` as LiteRT's reference kernels do "
        "([targets.md](targets.md)).",
        "",
        *_table(builtin, oracles),
        "",
        "## Custom operators",
        "",
        "Those that begin with Flex are TensorFlow's own, which its converter leaves in the file with "
        "SELECT_TF_OPS. LiteRT's packages run none of them: `aot-model verify` has nothing to compare them "
        "with, and here numpy is the oracle.",
        "",
        *_table(sorted(k for k in RULES if k.startswith("CUSTOM:")), oracles),
        "",
        "## What is refused",
        "",
        "| operator | instead |",
        "| --- | --- |",
        *(f"| {k} | {_advice(k) or '-'} |" for k in missing if k not in stable),
        f"| other Flex operators | {NEVER['CUSTOM:Flex']} |",
        "",
        "And StableHLO's operators for which LiteRT has no kernel either: "
        f"{', '.join(k.removeprefix('STABLEHLO_') for k in stable)}.",
    ]
    return "\n".join(lines) + "\n"


def _advice(kind: str) -> str:
    return next((text for begin, text in NEVER.items() if kind.startswith(begin)), "")


def _table(kinds: list[str], oracles: dict[str, list[str]]) -> list[str]:
    lines = ["| operator | cases | oracle |", "| --- | --- | --- |"]
    for kind in kinds:
        where = ", ".join(sorted(set(oracles[kind]))) or ELSEWHERE[kind]
        lines.append(f"| {kind.removeprefix('CUSTOM:')} | {len(oracles[kind]) or '-'} | {where} |")
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(PAGE.read_text() != page())
    PAGE.write_text(page())
