"""The declaration of the command line: subcommands, options, their types and help."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from aot_model.cli import values
from aot_model.cli.keywords import OPTIONS, known_options
from aot_model.cli.quantise_options import declare_quantisation, declare_quantised_files

MODEL_OPTIONS = ("dims", "constants", "bounds", "string_bytes")
"""Keywords of the build rules that say how a model is read."""


class _Answer(argparse.Action):
    """An option that prints one thing and ends the program, like --version."""

    def __init__(self, option_strings: Sequence[str], dest: str, tell: Callable[[argparse.Namespace], str],
                 **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **more)
        self._tell = tell

    def __call__(self,
                 parser: argparse.ArgumentParser,
                 namespace: argparse.Namespace,
                 values: object,
                 option_string: str | None = None) -> None:
        setattr(namespace, self.dest, self._tell)


class _Command(argparse.ArgumentParser):
    """Says what is wrong first, and where to read on, instead of the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n  hint: see {self.prog} --help\n")


class _Parser(_Command):
    """Answers `--version`, `--cmake-dir` … where no subcommand is given."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        arguments = super().parse_args(_flags_joined(sys.argv[1:] if args is None else args), namespace)
        if tell := getattr(arguments, "answer", None):
            try:
                print(tell(arguments))
            except FileNotFoundError as error:
                self.exit(1, f"error: {error} [E101]\n")
            self.exit(0)
        if getattr(arguments, "handler", None) is None:
            self.error("a COMMAND is missing")
        return arguments


def _flags_joined(words: Sequence[str]) -> list[str]:
    """`--cflags -O3` as `--cflags=-O3`: argparse takes what begins with a dash for the next option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--cflags":
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _version(arguments: argparse.Namespace) -> str:
    if arguments.json:
        from aot_model.c.names import RESERVED_NAMES
        from aot_model.installation import describe

        return json.dumps({**describe(), "options": known_options(), "reserved": " ".join(RESERVED_NAMES)},
                          indent=1)
    from aot_model import __version__

    return f"aot-model {__version__}"


def _rules(system: str) -> Callable[[argparse.Namespace], str]:
    def tell(arguments: argparse.Namespace) -> str:
        from aot_model.installation import rules_dir

        return rules_dir(system).as_posix()

    return tell


def _include(arguments: argparse.Namespace) -> str:
    from aot_model.installation import include_dir

    return include_dir().as_posix()


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. `handler` of its result names the function of the subcommand."""
    result = _Parser(prog="aot-model",
                     description="Compile a trained network into a plain C static library.",
                     allow_abbrev=False)
    answers = result.add_argument_group("about this installation")
    answers.add_argument("--version", action=_Answer, dest="answer", tell=_version, help="print the version")
    answers.add_argument("--json",
                         action="store_true",
                         help="with --version: everything that build rules ask for")
    for system in ("cmake", "bazel", "scons", "toolchains"):
        answers.add_argument(f"--{system}-dir",
                             action=_Answer,
                             dest="answer",
                             tell=_rules(system),
                             help=f"print the folder of the {system} files")
    answers.add_argument("--include-dir",
                         action=_Answer,
                         dest="answer",
                         tell=_include,
                         help="print the folder of the C headers")
    commands = result.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Command)
    for declare in (_compile, _report, _export, _check, _quantise, _inputs, _inspect, _run, _verify,
                    _compare, _time, _targets, _ops, _explain, _test_main, _benchmark_main, _arena,
                    _params, _stack, _cycles):
        declare(commands)
    return result


Commands = Any  # argparse's class for this has no public name


def _command(commands: Commands, name: str, handler: str, help: str,
             aliases: Sequence[str] = ()) -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = commands.add_parser(name,
                                                         aliases=aliases,
                                                         help=help,
                                                         description=help[0].upper() + help[1:] + ".",
                                                         allow_abbrev=False)
    found.set_defaults(handler=handler)
    found.add_argument("--debug", action="store_true", help="show a traceback for errors")
    return found


def _model(command: argparse.ArgumentParser, target: str = "host") -> None:
    """What every command that compiles a model takes."""
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")
    _generation(command, target)


def _generation(command: argparse.ArgumentParser, target: str = "host") -> None:
    """What the code is like."""
    command.add_argument("--target",
                         default=target,
                         help=f"`NAME` or `NAME,key=value` (see `aot-model targets`; default: {target}); "
                         "targets that take over parts of the model come before it: `NAME,NAME`")
    command.add_argument(
        "--target-probe",
        type=Path,
        metavar="FILE",
        help=
        "what the C compiler is for, which --target auto takes: the output of `$CC $CFLAGS -dM -E -x c "
        "/dev/null`, "
        "or the object of the probe that `aot-model --version --json` names")
    _plugins(command)
    command.add_argument("--option",
                         type=values.pair,
                         action="append",
                         default=[],
                         metavar="K=V",
                         help="option of the target")
    _declare(command, *MODEL_OPTIONS)


def _declare(command: argparse.ArgumentParser, *names: str) -> None:
    """Options that are keywords of the build rules too."""
    for keyword in OPTIONS:
        if keyword.name in names:
            command.add_argument(keyword.flag, **keyword.argparse())


def _plugins(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target-plugin",
                         type=Path,
                         action="append",
                         default=[],
                         metavar="FILE",
                         help="Python file with further TARGETS; repeat for more")


def _planning(command: argparse.ArgumentParser) -> None:
    _declare(command, "io", "pools", "pool_speeds", "pool_targets", "planner")


def _library(command: argparse.ArgumentParser) -> None:
    """What a library is like."""
    _declare(command, *(k.name for k in OPTIONS if k.name not in MODEL_OPTIONS))


def _depfile(command: argparse.ArgumentParser) -> None:
    command.add_argument("--depfile", type=Path, metavar="FILE", help="write a Makefile rule with all inputs")
    command.add_argument(
        "--depfile-target",
        metavar="TEXT",
        help="its target, as it is (default: the absolute path of the C), like -MT of gcc; with -MP")


def _compile(commands: Commands) -> None:
    command = _command(commands, "compile", "build:compile_", "compile a model to C")
    _model(command)
    command.add_argument("-o",
                         "--output",
                         type=Path,
                         required=True,
                         metavar="DIR",
                         help="folder for the generated files")
    command.add_argument("--name", help="name of the library, a C identifier (default: from the file's name)")
    _library(command)
    _depfile(command)
    command.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help=
        "write a table of layers and memory; FILE.html: a page with the graph, memory over time and the cost "
        "of each layer"
    )
    command.add_argument("-q", "--quiet", action="store_true", help="do not say what was written")
    command.add_argument("--keep-unchanged",
                         action="store_true",
                         help="leave files alone that have the same content")
    command.add_argument("--dump-after",
                         action="append",
                         default=[],
                         metavar="PASS",
                         help="print the graph after a pass")
    command.add_argument("--explain",
                         action="append",
                         default=[],
                         metavar="PASS",
                         help="say where a pass did not fire, and why")


def _report(commands: Commands) -> None:
    command = _command(
        commands, "report", "build:report",
        "write a page to look at: the graph as compiled, memory over time, the cost of each layer; one HTML "
        "file"
    )
    _model(command)
    command.add_argument("-o",
                         "--output",
                         type=Path,
                         required=True,
                         metavar="FILE",
                         help="HTML file to write")
    command.add_argument("--name", help="name of the library, a C identifier (default: from the file's name)")
    _library(command)
    command.add_argument("--keep-unchanged",
                         action="store_true",
                         help="leave the file alone if it has the same content")
    for name, what in (("comparison", "accuracy by layer: what `compare --json` wrote"),
                       ("times", "time by layer: what `time --json` wrote of the same build"),
                       ("against", "what grew: <name>.json of an older build"),
                       ("frontier", "points to choose from, with the chosen one")):  # fmt: skip
        command.add_argument(f"--{name}", type=Path, metavar="JSON", help=what)


def _export(commands: Commands) -> None:
    command = _command(
        commands, "export", "build:export",
        "write an archive of compiled models with build files, for projects without this compiler")
    command.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="ONNX or TFLite files")
    _generation(command)
    command.add_argument(
        "--name",
        action="append",
        help="name of the library, a C identifier (default: from the file's name); once for each model")
    command.add_argument("-o",
                         "--output",
                         type=Path,
                         required=True,
                         metavar="FILE",
                         help="archive to write: .tar.gz, .tgz, .zip, .tar, or .pack of CMSIS")
    command.add_argument("--format",
                         choices=("tar.gz", "zip", "tar", "pack"),
                         help="its kind (default: as its name ends)")
    command.add_argument("--package-version",
                         default="1.0.0",
                         metavar="X.Y.Z",
                         help="version that package managers are told (default: 1.0.0)")
    command.add_argument("--package-url", default="", metavar="URL", help="where the package is from")
    command.add_argument("--cmsis-pack",
                         metavar="VENDOR",
                         help="write VENDOR.<name>.pdsc too, for a pack of CMSIS")
    _library(command)


def _check(commands: Commands) -> None:
    command = _command(commands, "check", "build:check",
                       "say everything that is wrong with a model for a target; write nothing")
    _model(command)
    command.add_argument("--json", action="store_true", help="problems as JSON")


def _quantise(commands: Commands) -> None:
    command = _command(commands, "quantise", "quantise:quantise_",
                       "make integers of a float model, and say what that costs in accuracy", ("quantize",))
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX file; if quantised, passed on")
    _declare(command, "dims", "constants", "bounds", "calibration", "quantisation_plan", "accuracy",
             "max_ram", "max_flash")
    declare_quantisation(command)
    declare_quantised_files(command)
    _depfile(command)


def _inputs(commands: Commands) -> None:
    command = _command(
        commands, "inputs", "build:inputs",
        "list the files that a model is made of: itself and its external data, one path a line")
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")


def _inspect(commands: Commands) -> None:
    command = _command(
        commands, "inspect", "inspect:inspect",
        "show what is in a model, or in a program with models in it: inputs, outputs, operators, MACs, "
        "parameters, memory over time"
    )
    _model(command)
    _planning(command)
    command.add_argument("--json", action="store_true", help="as JSON")


def _host_build(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cc",
        metavar="COMMAND",
        help="C compiler to build with, of this machine or one that crosses (default: $CC, cc or gcc)")
    command.add_argument(
        "--cflags",
        metavar="FLAGS",
        help="its flags, in one argument: '-O3 -flto' (default: -O2 and those of the target; "
        "`--target host` has the vectors that the compiler has with them)")
    command.add_argument(
        "--runner",
        metavar="COMMAND",
        help="what runs the program, such as an emulator: --runner 'qemu-aarch64 -L /usr/aarch64-linux-gnu'")
    command.add_argument(
        "--on",
        metavar="qemu|COMMAND",
        help=
        "for Cortex-M: build firmware and run it in QEMU, or by a command that brings it to a board and "
        "shows what it "
        "prints, such as 'probe-rs run --chip … {elf}'; start-up code and linker script of the board: --with")
    command.add_argument("--sanitize",
                         action="store_true",
                         help="build with address and undefined-behaviour sanitizers")
    command.add_argument(
        "--with",
        type=Path,
        action="append",
        default=[],
        dest="sources",
        metavar="FILE",
        help=
        "C file or library that the target's functions need, such as a driver; its folder is searched for "
        "headers"
    )


def _run(commands: Commands) -> None:
    command = _command(commands, "run", "execute:run",
                       "compile a model, build it with a C compiler and run it")
    _model(command)
    command.add_argument(
        "--inputs",
        type=Path,
        required=True,
        metavar="FILE",
        help=".npz: arrays by name of input, or in_<i> stacked on a leading axis; .npy: that of the only "
             "input"
    )
    command.add_argument("--outputs",
                         type=Path,
                         metavar="NPZ",
                         help="file for the outputs (default: print them)")
    _host_build(command)


def _time(commands: Commands) -> None:
    command = _command(
        commands, "time", "time:time",
        "say how long each layer takes on a Cortex-M: estimated cycles in QEMU, measured ones on a board")
    _model(command, "cortex-m4")
    _estimated(command)
    command.add_argument("--runs",
                         type=values.whole,
                         default=1,
                         metavar="N",
                         help="runs on random inputs, of which the mean is shown (default: 1)")
    command.add_argument("--json", action="store_true", help="as JSON")
    _host_build(command)


def _estimated(command: argparse.ArgumentParser) -> None:
    """What an estimate of cycles takes."""
    command.add_argument("--memory",
                         metavar="NAME",
                         help="what code and constants are in: 0ws (no wait states; the default), tcm, "
                         "l4-art, f4-art, nrf53, m7-cache")
    command.add_argument("--clock",
                         type=values.quantity,
                         metavar="HERTZ",
                         help="of the core, for microseconds: 120M (default: that of the memory)")
    command.add_argument("--max-cycles",
                         type=values.quantity,
                         metavar="N",
                         help="fail, with the table, when the estimate is more: 4.2M")


def _tolerances(command: argparse.ArgumentParser, atol: float | None, rtol: float) -> None:
    said = "1e-4 of the output's range" if atol is None else f"{atol:g}"
    command.add_argument("--atol",
                         type=values.tolerance,
                         default=atol,
                         help=f"absolute tolerance of floats (default: {said})")
    command.add_argument("--rtol",
                         type=values.tolerance,
                         default=rtol,
                         help=f"relative tolerance of floats (default: {rtol:g})")
    command.add_argument("--max-lsb",
                         type=values.not_negative,
                         default=0,
                         metavar="N",
                         help="tolerance of integers (default: 0)")


def _verify(commands: Commands) -> None:
    command = _command(commands, "verify", "layers:verify",
                       "run a model on test vectors and compare its outputs with theirs")
    _model(command)
    command.add_argument("--vectors",
                         type=Path,
                         metavar="FILE|FOLDER",
                         help=".npz with in_<i>, out_<i>, or a folder of ONNX test data; "
                         "with --layers they may be left out: the inputs are random then")
    _tolerances(command, None, 1e-3)
    layers = command.add_argument_group(
        "by layer",
        "compare every tensor that the program and the model file both have, with what a reference "
        "implementation gives"
    )
    layers.add_argument(
        "--layers",
        action="store_true",
        help="say which layer is the first that is off, by how much, and what it was fused with")
    layers.add_argument("--reference",
                        choices=("onnxruntime", "onnx", "litert"),
                        help="the implementation (default: ONNX Runtime if it is installed, "
                        "else onnx's reference evaluator; LiteRT for TFLite)")
    layers.add_argument("--random",
                        type=values.whole,
                        default=3,
                        metavar="N",
                        help="vectors of random inputs, without --vectors (default: 3)")
    layers.add_argument("--seed",
                        type=values.not_negative,
                        default=0,
                        metavar="N",
                        help="of the random inputs (default: 0)")
    layers.add_argument("--all", action="store_true", help="list all tensors, not only those that differ")
    layers.add_argument("--json", action="store_true", help="as JSON")
    command.add_argument(
        "--sequence",
        action="store_true",
        help="the vectors are consecutive runs: state carries over (default: each starts afresh)")
    _host_build(command)


def _compare(commands: Commands) -> None:
    command = _command(commands, "compare", "compare:compare",
                       "say which layer of a model loses what another one has: signal to noise, saturation "
                       "and histograms of every tensor that both have")  # fmt: skip
    command.add_argument("a_model", type=Path, metavar="A",
                         help="what is right: ONNX or TFLite file, such as the float model")  # fmt: skip
    command.add_argument("model", type=Path, metavar="B",
                         help="what is judged: ONNX or TFLite file, such as the quantised model")  # fmt: skip
    _generation(command)
    command.add_argument("--inputs", type=Path, required=True, metavar="FILE",
                         help=".npz: samples on the leading axis, by name of input or in_<i>; "
                         ".npy: of the only input")  # fmt: skip
    command.add_argument("--limit", type=values.whole, default=32, metavar="N",
                         help="samples to take, the first of the file (default: 32)")  # fmt: skip
    command.add_argument("--a", choices=("reference", "library"), default="reference",
                         help="what runs A: a reference implementation, or code that is generated and built "
                         "for this machine (default: reference)")  # fmt: skip
    command.add_argument("--b", choices=("library", "reference"), default="library",
                         help="what runs B (default: the generated library, on this machine or --on another)")
    command.add_argument("--reference", choices=("onnxruntime", "onnx", "litert"),
                         help="the reference implementation (default: ONNX Runtime if it is installed, "
                         "else onnx's reference evaluator; LiteRT for TFLite)")  # fmt: skip
    command.add_argument("--least-snr", type=float, metavar="DB",
                         help="the least signal to noise of a layer: one that has less loses, and the exit "
                         "status is 1 (default: 20, and 0)")  # fmt: skip
    command.add_argument("--all", action="store_true", help="list all tensors, not only those that lose most")
    command.add_argument("--json", action="store_true", help="as JSON, which `report --comparison` shows")
    _host_build(command)


def _listing(command: argparse.ArgumentParser) -> None:
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")


def _targets(commands: Commands) -> None:
    command = _command(commands, "targets", "listing:targets_",
                       "list targets, their options and compiler flags")
    _plugins(command)
    _listing(command)


def _ops(commands: Commands) -> None:
    command = _command(commands, "ops", "listing:operators",
                       "list supported operators, or say which of a model are")
    command.add_argument("operators", nargs="*", metavar="NAME", help="these alone: Conv, LSTM, CONV_2D")
    command.add_argument("--supported",
                         type=Path,
                         metavar="MODEL",
                         help="the operators of this model: how often each, and whether it is supported")
    _listing(command)


def _explain(commands: Commands) -> None:
    command = _command(commands, "explain", "explanations:explain",
                       "say what an error code means and what to do")
    command.add_argument("code",
                         nargs="?",
                         metavar="CODE",
                         help="such as E203 (default: a list of all, and of the exit statuses)")


def _program(commands: Commands, name: str, handler: str, help: str) -> argparse.ArgumentParser:
    command = _command(commands, name, handler, help)
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of a generated library")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="C file to write")
    _depfile(command)
    return command


def _test_main(commands: Commands) -> None:
    command = _program(commands, "test-main", "programs:test_main",
                       "write the C of a program that tests a generated library")
    command.add_argument("--vectors",
                         type=Path,
                         required=True,
                         metavar="FILE|FOLDER",
                         help=".npz with in_<i>, out_<i>, or a folder of ONNX test data")
    _tolerances(command, 1e-5, 1e-4)


def _benchmark_main(commands: Commands) -> None:
    command = _program(commands, "benchmark-main", "programs:benchmark_main",
                       "write the C of a program that measures a generated library")
    command.add_argument("--runs", type=values.whole, default=100, help="runs to measure (default: 100)")
    command.add_argument("--objects",
                         type=Path,
                         nargs="+",
                         metavar="OBJECT",
                         help="of the library: their cycles are estimated, for where none are counted")
    command.add_argument("--compiler", metavar="COMMAND", help="that links them, with flags like -mcpu")
    command.add_argument("--memory", metavar="NAME", help="what code and constants are in: 0ws, l4-art …")


def _arena(commands: Commands) -> None:
    command = _command(commands, "arena", "programs:arena",
                       "write the C of one memory for libraries that were compiled with --workspace caller")
    command.add_argument("libraries",
                         nargs="+",
                         type=Path,
                         metavar="JSON",
                         help="<name>.json of a generated library")
    command.add_argument("-o",
                         "--output",
                         type=Path,
                         required=True,
                         metavar="DIR",
                         help="folder for NAME.h and NAME.c")
    command.add_argument("--name", required=True, help="name of the memory, a C identifier")
    command.add_argument("--pool-section",
                         type=values.section,
                         action="append",
                         default=[],
                         metavar="POOL=SECTION",
                         help="linker section of a pool's array")
    command.add_argument("--keep-unchanged",
                         action="store_true",
                         help="leave files alone that have the same content")


def _params(commands: Commands) -> None:
    command = _command(
        commands, "params", "parameters:params",
        "write the parameters of a retrained model for a library built with --params external")
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")
    _declare(command, "dims", "constants", "bounds")
    _plugins(command)
    command.add_argument("--for",
                         type=Path,
                         required=True,
                         dest="library",
                         metavar="JSON",
                         help="<name>.json of the library")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="file to write")


def _stack(commands: Commands) -> None:
    command = _command(
        commands, "stack", "stack:stack",
        "say how much stack a compiled library needs, from what GCC wrote with -fcallgraph-info=su")
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of the library")
    command.add_argument("objects",
                         type=Path,
                         nargs="+",
                         metavar="OBJECT",
                         help="its object, which has the .ci beside it, or the .ci")
    command.add_argument("--max-stack",
                         type=values.byte_count,
                         metavar="BYTES",
                         help="fail when it is more, or cannot be counted")
    command.add_argument(
        "--stack-allowance",
        type=values.byte_count,
        metavar="BYTES",
        help="what a function that cannot be counted may need (of other libraries, and beyond pointers)")
    command.add_argument(
        "--compiler",
        metavar="COMMAND",
        help="the command that links, with its flags: functions of its libraries are counted, for Cortex-M")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: print)")


def _cycles(commands: Commands) -> None:
    command = _command(commands, "cycles", "cycles:cycles",
                       "estimate the cycles of a compiled library on a Cortex-M, from a run in QEMU")
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of the library")
    command.add_argument("objects",
                         type=Path,
                         nargs="+",
                         metavar="OBJECT",
                         help="its object, compiled with -g, or the archive")
    command.add_argument("--compiler",
                         required=True,
                         metavar="COMMAND",
                         help="the command that links, with flags like -mcpu")
    _estimated(command)
    command.add_argument("-o",
                         "--output",
                         type=Path,
                         metavar="FILE",
                         help="file to write (default: print)")
