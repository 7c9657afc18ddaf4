"""What the build rules take, said once: CMake's functions, Bazel's rules and SCons' methods have the same
keywords.

From these tables come the options of `aot-model compile`, the keywords that CMake and SCons know (by
`aot-model --version --json`), `bazel/options.bzl`, and the tables of docs/build-systems.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aot_model.cli import values


@dataclass(frozen=True)
class Keyword:
    """One argument of a rule. Bazel and SCons call it `name`; CMake, the same in upper case."""

    name: str
    value: str
    """What it looks like: `<bytes>`, `a|b` … in the words of the documentation."""
    help: str
    kind: str = "text"
    """text: one value; list: several; map: several of the form key=value; flag: given or not; file: one
    that is tracked."""
    flag: str = ""
    """The option of the command line that it becomes, which a rule passes on as it is; for `list` and `map`
    once for each value.
    """
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Build systems (`cmake`, `bazel`, `scons`) where it has another name; nothing where it is not a keyword.
    """
    type: Callable[[str], object] | None = None
    """Of argparse."""

    def spelling(self, system: str) -> str:
        """Its name in a build system; empty where it has none."""
        return self.spelled.get(system, self.name.upper() if system == "cmake" else self.name)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that there are, the default first; none when there is no end of them."""
        return tuple(self.value.split("|")) if "|" in self.value else ()

    def argparse(self) -> dict[str, Any]:
        """Arguments of add_argument() for `flag`."""
        help = self.help.replace("%", "%%")  # argparse formats it
        if self.kind == "flag":
            return {"action": "store_true", "help": help}
        if self.kind in ("list", "map"):
            more = {"action": "append", "default": [], "help": f"{help}; repeat for more"}
        elif self.choices:
            more = {"default": self.choices[0], "help": f"{help} (default: {self.choices[0]})"}
        else:
            more = {"help": help}
        form = (
            {"choices": self.choices}
            if self.choices
            else {"type": self.type, "metavar": re.sub("[<>]", "", self.value).upper()}
        )
        return {**form, **more}


OPTIONS = (
    Keyword(
        "signature",
        "<name>",
        "which signature of a TFLite file with several is the model (default: its first sub-graph)",
        flag="--signature",
    ),
    Keyword(
        "dims",
        "<symbol>=<n>",
        "extents of the model's symbolic dimensions",
        "map",
        "--dim",
        type=values.dimension,
    ),
    Keyword(
        "workspace",
        "static|caller",
        "who owns the workspace: the library, or the caller of <name>_run()",
        flag="--workspace",
    ),
    Keyword("io", "caller|workspace", "where inputs and outputs are", flag="--io"),
    Keyword(
        "pools",
        "<name>[:<size>[:<align>]]",
        "pools of the workspace, the most preferred first",
        "list",
        "--pool",
        type=values.pool,
    ),
    Keyword(
        "constant_pools",
        "<name>[:<size>[:<align>]]",
        "pools of the constants, the most preferred first",
        "list",
        "--constant-pool",
        type=values.pool,
    ),
    Keyword(
        "pool_sections",
        "<pool>=<section>",
        "linker sections of the pools' arrays",
        "map",
        "--pool-section",
        type=values.section,
    ),
    Keyword(
        "pool_speeds",
        "<pool>=<n>",
        "classes of speed: pools of a higher one are preferred (default: 0)",
        "map",
        "--pool-speed",
        type=values.speed,
    ),
    Keyword(
        "pool_targets",
        "<pool>=<target>[+<target>]",
        "targets that may touch a pool (default: all)",
        "map",
        "--pool-targets",
        type=values.pair,
    ),
    Keyword(
        "planner",
        "<name>",
        "memory planner: auto (default), greedy, best-fit, local-search, optimal, or a plug-in's",
        flag="--planner",
    ),
    Keyword(
        "memory",
        "<name>",
        "what code and constants of a Cortex-M are in, for which the code is written and "
        "max_cycles are estimated: 0ws, tcm, l4-art, f4-art, nrf53, m7-cache",
        flag="--memory",
    ),
    Keyword(
        "constants",
        "<input>=<v>,…",
        "inputs as constants: one number for each element, or one for all",
        "map",
        "--constant",
        type=values.elements,
    ),
    Keyword(
        "bounds",
        "<value>=<n>",
        "room for n rows of a value, whose number depends on data (Range, Loop)",
        "map",
        "--bound",
        type=values.dimension,
    ),
    Keyword(
        "string_bytes",
        "64|16|32|128|256|512|1024",
        "size of an element of tensors of strings, its NUL included",
        flag="--string-bytes",
    ),
    Keyword(
        "params",
        "linked|external",
        "constants in the code, or in <name>.params, which is made beside it",
        flag="--params",
    ),
    Keyword("profile", "", "count the ticks of each layer, by a clock of the program", "flag", "--profile"),
    Keyword(
        "trace",
        "",
        "tell each tensor to a function of the program as soon as it is complete",
        "flag",
        "--trace",
    ),
    Keyword(
        "fetch",
        "<bytes>",
        "weights are copied to the workspace while the layer before computes, by DMA of the program; "
        "so many bytes (64k) at most at a time",
        flag="--fetch",
        type=values.byte_count,
    ),
    Keyword(
        "interfaces",
        "module|positional|packed|tvm-ffi",
        "what the library offers beside its structs",
        "list",
        "--interface",
    ),
    Keyword("metadata_level", "full|size|none", "how much of the metadata is in flash", flag="--metadata"),
    Keyword(
        "max_ram",
        "<bytes>",
        "budget of the workspace (16k, 1m): more is an error of the build, with a table by layer",
        flag="--max-ram",
        type=values.byte_count,
    ),
    Keyword(
        "max_flash",
        "<bytes>",
        "budget of the constants; with count_code, of the code as well",
        flag="--max-flash",
        type=values.byte_count,
    ),
    Keyword("quantise", "", "make integers of a float model first: docs/quantise.md", "flag", "--quantise"),
    Keyword(
        "calibration",
        "<file>",
        "samples for `quantise`: .npz, .npy or a folder",
        "file",
        "--calibration",
        type=Path,
    ),
    Keyword(
        "quantisation_plan",
        "<file>",
        "the plan for `quantise` to carry out, with calibration or without",
        "file",
        "--plan",
        type=Path,
    ),
    Keyword(
        "accuracy",
        "<share>",
        "how much worse than the float model `quantise` may be on held-back samples: 0.5%",
        flag="--max-drop",
        type=values.share,
    ),
    Keyword(
        "metric",
        "top1|noise|mse|cosine",
        "what `quantise` chooses by on held-back samples, and what ACCURACY is of",
        flag="--metric",
    ),
    Keyword(
        "within",
        "<times>",
        "the best of mixed precision that `quantise` finds within so many times the cycles (of a "
        "Cortex-M), RAM and flash of 8 bits alone: 1.3x, or of some of them: cycles=1.3x,ram=2x",
        flag="--within",
        type=values.times,
    ),
)
"""Options of `aot-model compile` that are keywords of the rules."""

LIBRARY = (
    Keyword("model", "<file>", "the ONNX or TFLite file; one that the build makes, too"),
    Keyword(
        "model_name",
        "<identifier>",
        "prefix of the generated files and symbols; default: the library's name as a C identifier, with "
        "`_model` where `<name>.h` would hide a header of C",
        spelled={"cmake": "NAME"},
    ),
    Keyword(
        "target",
        "<target>",
        "what to generate code for (`aot-model targets`), with its options: `cortex-m4,optimize=size`; "
        "default: what the library is compiled for, which the C compiler is asked",
    ),
    Keyword(
        "flags_from",
        "<target>",
        "targets whose flags the library is compiled with; default: where a platform keeps them in a target "
        "(zephyr_interface), that one",
        "list",
        spelled={"bazel": "", "scons": ""},
    ),
    Keyword(
        "offload",
        "<target>",
        "targets that take over parts of the model first, in order of preference: docs/targets.md",
        "list",
    ),
    Keyword("target_plugins", "<file>", "Python files that define further targets", "list"),
    *OPTIONS,
    Keyword(
        "count_code",
        "",
        "count the code as well, when it is compiled: its size by layer is told, and max_flash is of code "
        "and constants",
        "flag",
    ),
    Keyword(
        "max_stack",
        "<bytes>",
        "budget of the stack of <name>_run(): measured when the C is compiled, with GCC",
    ),
    Keyword(
        "stack_allowance",
        "<bytes>",
        "what each function that max_stack cannot count may need of the stack; default: such a function is "
        "an error",
    ),
    Keyword(
        "max_cycles",
        "<n>",
        "budget of the estimated cycles of an inference on a Cortex-M (4.2M): what was compiled is run in "
        "QEMU; more is an error of the build, with a table by layer",
    ),
    Keyword("clock", "<hertz>", "of the core (120M), for microseconds in the table of max_cycles"),
    Keyword("options", "<argument>", "any other arguments of `aot-model compile`", "list"),
    Keyword(
        "depends",
        "<file|target>",
        "what else is read or must be there first; Bazel: the model's external data",
        "list",
        spelled={"bazel": "data"},
    ),
    Keyword(
        "metadata",
        "<variable>",
        "receives the path of the generated JSON",
        spelled={"bazel": "", "scons": ""},
    ),
    Keyword(
        "report",
        "<variable>",
        "receives the path of the report, and has it written; a variable that is called `html`: the page "
        '(docs/report.md); SCons: True or "html"; Bazel: "html", and an output group',
    ),
    Keyword(
        "exclude_from_all",
        "",
        "built only when something needs it",
        "flag",
        spelled={"bazel": "", "scons": ""},
    ),
)
"""aot_model_library(), AotModelLibrary()."""

ARENA = (
    Keyword(
        "libraries", "<library>", "what aot_model_library() made, with the workspace of the caller", "list"
    ),
    Keyword(
        "pool_sections", "<pool>=<section>", "linker sections of the pools' arrays", "map", "--pool-section"
    ),
)
"""aot_model_arena(), AotModelArena()."""

TEST = (
    Keyword("library", "<library>", "what aot_model_library() made"),
    Keyword(
        "vectors",
        "<file|folder>",
        "`.npz` with arrays `in_<i>`, `out_<i>` or by name of tensor, or ONNX test data",
    ),
    Keyword("atol", "<x>", "real outputs: |got - want| <= atol + rtol * |want|", flag="--atol"),
    Keyword("rtol", "<x>", "as above", flag="--rtol"),
    Keyword("max_lsb", "<n>", "integer outputs: |got - want| <= max_lsb", flag="--max-lsb"),
    Keyword(
        "labels", "<label>", "of the CTest; Bazel has tags", "list", spelled={"bazel": "tags", "scons": ""}
    ),
    Keyword("alias", "<name>", "what runs it; default: test", spelled={"cmake": "", "bazel": ""}),
)
"""aot_model_test(), AotModelTest()."""

BENCHMARK = (
    Keyword("library", "<library>", "what aot_model_library() made"),
    Keyword("runs", "<n>", "how many to measure", flag="--runs"),
)
"""aot_model_benchmark(), AotModelBenchmark()."""


def known_options() -> dict[str, dict[str, str]]:
    """By kind: the options that a rule passes on as they are, keyword to flag."""
    kinds = ("text", "list", "map", "flag", "file")
    return {kind: {k.name: k.flag for k in OPTIONS if k.kind == kind} for kind in kinds}
