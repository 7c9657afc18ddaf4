"""Options of `aot-model quantise`."""

from __future__ import annotations

import argparse
from pathlib import Path

from aot_model.cli import values
from aot_model.cli.options import add_keep_unchanged, add_output


def declare_quantised_files(command: argparse.ArgumentParser) -> None:
    """What is written."""
    add_output(command, "FILE", "ONNX file to write")
    command.add_argument(
        "--write-plan",
        type=Path,
        metavar="FILE",
        help="write the plan: type, scale and zero point of each tensor",
    )
    command.add_argument("-q", "--quiet", action="store_true", help="do not say what was written")
    add_keep_unchanged(command)


def declare_quantisation(command: argparse.ArgumentParser) -> None:
    """How a model is quantised."""
    command.add_argument(
        "--holdout",
        default="0.25",
        metavar="SHARE|FILE|FOLDER",
        help="what choices are made on: a share of the samples, or others (default: 0.25)",
    )
    command.add_argument(
        "--metric",
        default="",
        metavar="top1|noise|mse|cosine|python:FILE.py:FUNCTION",
        help="what is good: right answers by the labels, or else the float model's; closeness to the float "
        "model's outputs; a function of outputs, the float model's and labels (default: top1 where there are "
        "labels or an output of classes, else noise)",
    )
    command.add_argument(
        "--method",
        choices=("auto", "minmax", "percentile", "mse", "entropy"),
        default="auto",
        help="how ranges are found (default: auto, the best of them on what is held back)",
    )
    command.add_argument(
        "--seed", type=values.not_negative, default=0, metavar="N", help="of what is held back (default: 0)"
    )
    command.add_argument(
        "--wide",
        type=values.share,
        default=0.25,
        metavar="SHARE",
        help="what tensors of 16 bits may cost, of the network's work, where they help (default: 25%%; 0: "
        "all are of 8; with --mixed costs are measured instead)",
    )
    command.add_argument(
        "--scales",
        choices=("any", "power-of-two"),
        default="any",
        help="of tensors and constants (default: any); a plan that is given has its own",
    )
    command.add_argument(
        "--mixed",
        action="store_true",
        help="let layers have int16 activations or int4 weights where that pays; implied by budgets",
    )
    command.add_argument(
        "--target", default="c", help="what budgets are for; cycles are of a Cortex-M (default: c)"
    )
    command.add_argument(
        "--frontier", type=Path, metavar="FILE", help="write all plans that were scored as JSON"
    )
    command.add_argument(
        "--max-cycles", type=values.quantity, metavar="N", help="budget of one run (5M), estimated in QEMU"
    )
