"""The declaration of the command line: subcommands, their options, types and help."""

from __future__ import annotations

import argparse
from pathlib import Path

from aot_model.cli import values
from aot_model.cli.library_commands import (
    add_arena,
    add_benchmark_main,
    add_cycles,
    add_params,
    add_size,
    add_stack,
    add_test_main,
)
from aot_model.cli.options import (
    Commands,
    add_command,
    add_depfile,
    add_estimate,
    add_generation,
    add_host_build,
    add_keep_unchanged,
    add_keywords,
    add_library,
    add_listing,
    add_model,
    add_name,
    add_output,
    add_planning,
    add_plugins,
    add_tolerances,
)
from aot_model.cli.parsing import Answer, Command, Parser, tell_include, tell_rules, tell_version
from aot_model.cli.quantise_options import declare_quantisation, declare_quantised_files


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. `handler` of its result names the function of the subcommand."""
    result = Parser(
        prog="aot-model",
        description="Compile a trained network into a plain C static library.",
        allow_abbrev=False,
    )
    answers = result.add_argument_group("about this installation")
    answers.add_argument(
        "--version", action=Answer, dest="answer", tell=tell_version, help="print the version"
    )
    answers.add_argument(
        "--json", action="store_true", help="with --version: everything that build rules ask for"
    )
    for system in ("cmake", "bazel", "scons", "toolchains"):
        answers.add_argument(
            f"--{system}-dir",
            action=Answer,
            dest="answer",
            tell=tell_rules(system),
            help=f"print the folder of the {system} files",
        )
    answers.add_argument(
        "--include-dir",
        action=Answer,
        dest="answer",
        tell=tell_include,
        help="print the folder of the C headers",
    )
    commands = result.add_subparsers(title="commands", metavar="COMMAND", parser_class=Command)
    for declare in (
        _compile,
        _report,
        _export,
        _check,
        _quantise,
        _inputs,
        _inspect,
        _run,
        _verify,
        _compare,
        _time,
        _targets,
        _ops,
        _explain,
        add_test_main,
        add_benchmark_main,
        add_arena,
        add_params,
        add_stack,
        add_size,
        add_cycles,
    ):
        declare(commands)
    return result


def _compile(commands: Commands) -> None:
    command = add_command(commands, "compile", "build:compile_", "compile a model to C")
    add_model(command)
    add_output(command, "DIR", "folder for the generated files")
    add_name(command)
    add_library(command)
    add_depfile(command)
    command.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a table of layers and memory; FILE.html: a page with the graph, memory over time and the cost "  # noqa: E501
        "of each layer",
    )
    command.add_argument("-q", "--quiet", action="store_true", help="do not say what was written")
    add_keep_unchanged(command)
    command.add_argument(
        "--dump-after", action="append", default=[], metavar="PASS", help="print the graph after a pass"
    )
    command.add_argument(
        "--explain",
        action="append",
        default=[],
        metavar="PASS",
        help="say where a pass did not fire, and why",
    )


def _report(commands: Commands) -> None:
    command = add_command(
        commands,
        "report",
        "build:report",
        "write a page to look at: the graph as compiled, memory over time, the cost of each layer; one HTML "
        "file",
    )
    add_model(command)
    add_output(command, "FILE", "HTML file to write")
    add_name(command)
    add_library(command)
    add_keep_unchanged(command)
    for name, what in (
        ("comparison", "accuracy by layer: what `compare --json` wrote"),
        ("times", "time by layer: what `time --json` wrote of the same build"),
        ("against", "what grew: <name>.json of an older build"),
        ("frontier", "points to choose from, with the chosen one"),
    ):
        command.add_argument(f"--{name}", type=Path, metavar="JSON", help=what)


def _export(commands: Commands) -> None:
    command = add_command(
        commands,
        "export",
        "build:export",
        "write an archive of compiled models with build files, for projects without this compiler",
    )
    command.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="ONNX or TFLite files")
    add_generation(command)
    command.add_argument(
        "--name",
        action="append",
        help="name of the library, a C identifier (default: from the file's name); once for each model",
    )
    add_output(command, "FILE", "archive to write: .tar.gz, .tgz, .zip, .tar, or .pack of CMSIS")
    command.add_argument(
        "--format", choices=("tar.gz", "zip", "tar", "pack"), help="its kind (default: as its name ends)"
    )
    command.add_argument(
        "--package-version",
        default="1.0.0",
        metavar="X.Y.Z",
        help="version that package managers are told (default: 1.0.0)",
    )
    command.add_argument("--package-url", default="", metavar="URL", help="where the package is from")
    command.add_argument(
        "--cmsis-pack", metavar="VENDOR", help="write VENDOR.<name>.pdsc too, for a pack of CMSIS"
    )
    add_library(command)


def _check(commands: Commands) -> None:
    command = add_command(
        commands,
        "check",
        "build:check",
        "say everything that is wrong with a model for a target; write nothing",
    )
    add_model(command)
    command.add_argument("--json", action="store_true", help="problems as JSON")
    command.add_argument(
        "--pareto",
        type=Path,
        metavar="FILE",
        help="build with each way to optimise, within smaller and smaller workspaces, and "
        "write what RAM buys as JSON for `report --frontier`: cycles of a Cortex-M, "
        "elsewhere bytes of constants",
    )
    command.add_argument(
        "--explain",
        action="store_true",
        help="say too which layers run as generic loops of expressions, their share of the "
        "MACs and of all operations, and why no kernel took them",
    )


def _quantise(commands: Commands) -> None:
    command = add_command(
        commands,
        "quantise",
        "quantise:quantise_",
        "make integers of a float model, and say what that costs in accuracy",
        ("quantize",),
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX file; if quantised, passed on")
    add_keywords(
        command,
        "dims",
        "constants",
        "bounds",
        "calibration",
        "quantisation_plan",
        "accuracy",
        "within",
        "max_ram",
        "max_flash",
    )
    declare_quantisation(command)
    declare_quantised_files(command)
    add_depfile(command)


def _inputs(commands: Commands) -> None:
    command = add_command(
        commands,
        "inputs",
        "build:inputs",
        "list the files that a model is made of: itself and its external data, one path a line",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")


def _inspect(commands: Commands) -> None:
    command = add_command(
        commands,
        "inspect",
        "inspect:inspect",
        "show what is in a model, or in a program with models in it: inputs, outputs, operators, MACs, "
        "parameters, memory over time",
    )
    add_model(command)
    add_planning(command)
    command.add_argument("--json", action="store_true", help="as JSON")


def _run(commands: Commands) -> None:
    command = add_command(
        commands, "run", "execute:run", "compile a model, build it with a C compiler and run it"
    )
    add_model(command)
    command.add_argument(
        "--inputs",
        type=Path,
        required=True,
        metavar="FILE",
        help=".npz: arrays by name of input, or in_<i> stacked on a leading axis; .npy: that of the only "
        "input",
    )
    command.add_argument(
        "--outputs", type=Path, metavar="NPZ", help="file for the outputs (default: print them)"
    )
    add_host_build(command)


def _time(commands: Commands) -> None:
    command = add_command(
        commands,
        "time",
        "time:time",
        "say how long each layer takes on a Cortex-M: estimated cycles in QEMU, measured ones on a board",
    )
    add_model(command, "cortex-m4")
    add_estimate(command)
    command.add_argument(
        "--runs",
        type=values.drawn,
        default=1,
        metavar="N",
        help="runs on random inputs, of which the mean is shown (default: 1)",
    )
    command.add_argument("--json", action="store_true", help="as JSON")
    add_host_build(command)


def _verify(commands: Commands) -> None:
    command = add_command(
        commands, "verify", "layers:verify", "run a model on test vectors and compare its outputs with theirs"
    )
    add_model(command)
    command.add_argument(
        "--vectors",
        type=Path,
        metavar="FILE|FOLDER",
        help=".npz with in_<i>, out_<i> or names of tensors, or a folder of ONNX test data; "
        "with --layers they may be left out: the inputs are random then",
    )
    add_tolerances(command, None, 1e-3)
    layers = command.add_argument_group(
        "by layer",
        "compare every tensor that the program and the model file both have, with what a reference "
        "implementation gives",
    )
    layers.add_argument(
        "--layers",
        action="store_true",
        help="say which layer is the first that is off, by how much, and what it was fused with",
    )
    layers.add_argument(
        "--reference",
        choices=("onnxruntime", "onnx", "litert"),
        help="the implementation (default: ONNX Runtime if it is installed, "
        "else onnx's reference evaluator; LiteRT for TFLite)",
    )
    layers.add_argument(
        "--random",
        type=values.drawn,
        default=3,
        metavar="N",
        help="vectors of random inputs, without --vectors (default: 3)",
    )
    layers.add_argument(
        "--seed", type=values.not_negative, default=0, metavar="N", help="of the random inputs (default: 0)"
    )
    layers.add_argument("--all", action="store_true", help="list all tensors, not only those that differ")
    layers.add_argument("--json", action="store_true", help="as JSON")
    command.add_argument(
        "--sequence",
        action="store_true",
        help="the vectors are consecutive runs: state carries over (default: each starts afresh)",
    )
    add_host_build(command)


def _compare(commands: Commands) -> None:
    command = add_command(commands, "compare", "compare:compare",
                       "say which layer of a model loses what another one has: signal to noise, saturation "
                       "and histograms of every tensor that both have")  # fmt: skip
    command.add_argument("a_model", type=Path, metavar="A",
                         help="what is right: ONNX or TFLite file, such as the float model")  # fmt: skip
    command.add_argument("model", type=Path, metavar="B",
                         help="what is judged: ONNX or TFLite file, such as the quantised model")  # fmt: skip
    add_generation(command)
    command.add_argument("--inputs", type=Path, required=True, metavar="FILE",
                         help=".npz: samples on the leading axis, by name of input or in_<i>; "
                         ".npy: of the only input")  # fmt: skip
    command.add_argument("--limit", type=values.whole, default=32, metavar="N",
                         help="samples to take, the first of the file (default: 32)")  # fmt: skip
    command.add_argument("--a", choices=("reference", "library"), default="reference",
                         help="what runs A: a reference implementation, or code that is generated and built "
                         "for this machine (default: reference)")  # fmt: skip
    command.add_argument(
        "--b",
        choices=("library", "reference"),
        default="library",
        help="what runs B (default: the generated library, on this machine or --on another)",
    )
    command.add_argument("--reference", choices=("onnxruntime", "onnx", "litert"),
                         help="the reference implementation (default: ONNX Runtime if it is installed, "
                         "else onnx's reference evaluator; LiteRT for TFLite)")  # fmt: skip
    command.add_argument("--least-snr", type=float, metavar="DB",
                         help="the least signal to noise of a layer: one that has less loses, and the exit "
                         "status is 1 (default: 20, and 0)")  # fmt: skip
    command.add_argument("--all", action="store_true", help="list all tensors, not only those that lose most")
    command.add_argument("--json", action="store_true", help="as JSON, which `report --comparison` shows")
    add_host_build(command)


def _targets(commands: Commands) -> None:
    command = add_command(
        commands, "targets", "listing:targets_", "list targets, their options and compiler flags"
    )
    add_plugins(command)
    add_listing(command)


def _ops(commands: Commands) -> None:
    command = add_command(
        commands, "ops", "listing:operators", "list supported operators, or say which of a model are"
    )
    command.add_argument("operators", nargs="*", metavar="NAME", help="these alone: Conv, LSTM, CONV_2D")
    command.add_argument(
        "--supported",
        type=Path,
        metavar="MODEL",
        help="the operators of this model: how often each, and whether it is supported",
    )
    add_listing(command)


def _explain(commands: Commands) -> None:
    command = add_command(
        commands, "explain", "explanations:explain", "say what an error code means and what to do"
    )
    command.add_argument(
        "code",
        nargs="?",
        metavar="CODE",
        help="such as E203 (default: a list of all, and of the exit statuses)",
    )
