"""docs/operators.md from the registry of operators and the results of the conformance suite.

python tests/conformance/document.py [--check]
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import onnx.defs

from aot_model.ops import experimental
from aot_model.ops.registry import OPERATORS, load_all

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "operators.md"


def page() -> str:
    """The text of docs/operators.md."""
    load_all()
    results = json.loads(RESULTS.read_text())
    dropped = sorted(k.name for k in OPERATORS.values() if k.__module__ == experimental.__name__)
    cases = results["cases"]
    fixed = sum(c["message"] == "shape operands are constants" for c in cases.values())
    counts = Counter(c["status"] for c in cases.values())
    lines = [
        "# Operators",
        "",
        "Made by `tests/conformance/document.py` from the registry of operators and the conformance suite of",
        f"onnx {results['onnx']} (`tests/conformance/suite.py`); do not edit.",
        "",
        f"{counts['pass']} of {len(cases)} cases pass: compiled to C, built with strict warnings, run, "
        "compared with the suite's tolerances.",
        "Where the suite feeds what decides a shape (axes, pads, a target shape) at run time, it is made a "
        f"constant with `--constant`: {fixed} cases.",
        "The suite's Bernoulli cases hold a draw of numpy's that no seed gives; of them type, shape and "
        "possible values are compared.",
        f"Beside them there are {', '.join(dropped)} of ONNX's first releases, and what ONNX Runtime's tools "
        "write ([onnx_runtime.md](onnx_runtime.md)).",
        "",
        "| operator | opset | how | cases | pass | element types of those that pass |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    latest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        if key not in latest or schema.since_version > latest[key].since_version:
            latest[key] = schema
    for (domain, name), schema in sorted(latest.items()):
        label = f"{domain}.{name}" if domain else name
        own = [c for c in cases.values() if label in c["operators"]]
        cls = OPERATORS.get((domain, name))
        how = (
            _how(cls)
            if cls
            else "function of ONNX"
            if schema.has_function or schema.has_context_dependent_function
            else "import"
            if label in _IMPORT
            else "-"
        )
        if own or how != "-":
            passed = [c for c in own if c["status"] == "pass"]
            types = sorted({t for c in passed if c["operators"] == [label] for t in c["types"]})
            lines.append(
                f"| {label} | {schema.since_version} | {how} | {len(own)} | {len(passed)} | "
                f"{' '.join(types)} |"
            )
    lines += ["", "## Cases that do not pass", "", "| case | status | reason |", "| --- | --- | --- |"]
    for name, c in sorted(cases.items()):
        if c["status"] != "pass":
            reason = next(
                (why for pattern, why in _REASONS.items() if fnmatch(name, pattern)),
                " ".join(c["message"].replace("|", "/").split())[:160],
            )
            lines.append(f"| {name} | {c['status']} | {reason} |")
    return "\n".join(lines) + "\n"


_REASONS = {
    "test_attention*_bf16*": "the suite's softmax adds up in bfloat16, rounding after every element; ours "
    "adds in float32 and rounds once: results are a unit of bfloat16 apart, and "
    "ours nearer to the exact ones",
    "test_dft_inverse*": "where the exact result is 0 the suite has 1.9e-7, the rounding noise of numpy's "
    "float32 FFT; ours rounds otherwise, beyond the tolerance of 1e-7",
    "test_image_decoder*": "the operator decodes a file (JPEG, PNG, TIFF …), whose size and work depend on "
    "its content: decode before the network, and take the pixels as its input",
}
"""Why cases do not pass, where the message of the compiler or the comparison does not say it."""

_IMPORT = frozenset(
    {
        "Constant",
        "If",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SplitToSequence",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "Upsample",
        "ai.onnx.preview.training.Gradient",
    }
)


def _how(cls: type) -> str:
    """Expressions fuse, compositions are taken apart, kernels are functions of their own."""
    return next(
        text
        for method, text in (
            ("expand", "composition"),
            ("express", "expression"),
            ("lower", "kernel"),
            ("infer", "constant"),
        )
        if cls.has(method)
    )  # type: ignore[attr-defined]


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE} is stale: run {Path(__file__).name}", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
