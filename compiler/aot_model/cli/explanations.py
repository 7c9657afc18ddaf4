"""`aot-model explain`: what an error code means, why it comes, what to do. docs/errors.md has the same
words.
"""

from __future__ import annotations

import argparse

from aot_model.errors import CODES, fail

EXIT_STATUS = {
    0: "everything is well; what was asked for is written",
    1: "the model, the options or the machine: errors with codes are on the standard error, nothing is "
    "written",
    2: "the command line is not understood",
    70: "a mistake of the compiler itself (E901), which should be reported",
    130: "interrupted",
}

EXPLANATIONS = {
    "E101": "The path is wrong, or the file cannot be opened. Relative paths are from where the command "
    "runs; build rules take them from the folder of the build file.",
    "E102": "The file is neither ONNX nor TFLite, is cut off, or breaks a rule of its format. Models of "
    "Keras, PyTorch, scikit-learn … are exported to ONNX or TFLite first. "
    "A file that Git LFS keeps elsewhere is a few lines of text: `git lfs pull`.",
    "E103": "An ONNX file may keep its values in files beside it. They were not copied with it, are shorter "
    "than the model says, or lie outside its folder, where nothing is read.",
    "E104": "Arrays of test vectors or inputs have other names, types or shapes than the model. `aot-model "
    "inspect` shows the model's; an .npz for `verify` has `in_<i>`, `out_<i>` or "
    "arrays by the names of tensors, with the vectors on a leading axis; one for `run` may have one run "
    "by the names of inputs.",
    "E105": "The folder cannot be written (permissions, space, a file where a folder should be), or the kind "
    "of archive is not known.",
    "E201": "No rule for this operator. `aot-model ops` lists what there is; newer exports often use "
    "composites that are; an operator can be added (README: To add an operator), "
    "or given to a target of one's own (docs/targets.md).",
    "E202": "The operator is known, but an attribute, a type or a constant is used in a way that is not. The "
    "message says which; a converter's option or a fixed value often helps.",
    "E203": "The size of a tensor is not known before the program runs, and memory is planned when it is "
    "compiled. Fix it: --dim NAME=N for a symbolic dimension, --constant "
    "for an input that says a shape, --bound for a value whose number of rows depends on data "
    "(docs/shapes.md).",
    "E301": "What the model says of shapes and types does not fit together: often a --dim that no layer can "
    "have, or a file that was edited.",
    "E302": "Scale or zero point of a quantised tensor is missing, not positive, or not of the form that its "
    "operator allows: quantise again, with a newer converter.",
    "E303": "The parameters file is of another structure than the library (other layers, another layout): "
    "make both from the same model with the same options.",
    "E401": "The tensors that live at the same time do not fit the pools, or are more than a program may "
    "have (2 GB). The table says which: enlarge a pool, add one, try --planner optimal or --option "
    "optimize=size, make the input smaller.",
    "E402": "--max-ram, --max-flash, --max-stack or --max-cycles is less than what is needed. The table "
    "says where the bytes or the cycles are, the hint what other options need.",
    "E501": "A name is not known, is used twice, or options exclude each other. "
    "The hint lists what there is.",
    "E502": "A target of a plug-in raised an error or returned what it should not: the message names the "
    "hook and the region of the model; or it names a phase or an operator that does not exist.",
    "E503": "The target is taken from the C compiler, and its flags name no core. Give the library the "
    "firmware's flags (FLAGS_FROM in CMake), or name the target.",
    "E601": "`run`, `verify` and `time` build a program, and the C compiler is missing or failed: its words "
    "are below. --cc, --cflags and --on say how to build.",
    "E602": "The outputs are further from the vectors than the tolerance, or the program failed. `verify "
    "--layers` says which layer is the first that is off.",
    "E603": "`verify --layers` needs ONNX Runtime, onnx or LiteRT, and it cannot run this model: choose with "
    "--reference, or install aot-model[reference].",
    "E604": "Cycles are estimated from a run in QEMU with a plug-in, which the C compiler of this machine "
    "builds: qemu-system-arm with plug-ins (Debian's has them) and cc must be there.",
    "E901": "A mistake of the compiler: please report it with the model, or what of it may be shown, and the "
    "output with --debug.",
    "E902": "A package that the compiler needs is not in this Python. On systems that manage their Python "
    "(PEP 668) make a virtual environment: "
    "`python3 -m venv .venv && .venv/bin/pip install aot-model`.",
    "E903": "The machine's memory is not enough for the constants of this model and what is computed from "
    "them.",
}


def explain(arguments: argparse.Namespace) -> int:
    """The text of a code; a table of all without one."""
    from aot_model.cli.table import table

    if arguments.code is None:
        print(table(("code", "means"), list(CODES.items())))
        print(f"\n{table(('exit status', ''), list(EXIT_STATUS.items()))}")
        return 0
    code = arguments.code.strip("[]").upper()
    if code not in CODES:
        raise fail("E501", f"there is no error {code}", hint=f"the codes are {', '.join(CODES)}")
    print(f"{code}: {CODES[code]}\n\n{EXPLANATIONS[code]}")
    return 0


def markdown() -> str:
    """docs/errors.md."""
    lines = [
        "# Errors",
        "",
        "Errors say what is wrong, where, and what to do; the code is what `aot-model explain E203` says "
        "more about. All problems of a model are said at once.",
        "",
        "| exit status | |",
        "| --- | --- |",
        *(f"| {status} | {text} |" for status, text in EXIT_STATUS.items()),
        "",
        "| code | means | |",
        "| --- | --- | --- |",
        *(f"| {code} | {CODES[code]} | {text} |" for code, text in EXPLANATIONS.items()),
        "",
    ]
    return "\n".join(lines)
