"""SCons tool: libraries of models.

    env = Environment(tools=["default", "aot_model"], toolpath=[<what `aot-model --scons-dir` prints>])
    kws = env.AotModelLibrary("kws", "models/kws.tflite")
    env.Program("app", ["main.c"], LIBS=[kws, "m"], CPPPATH=kws.include_dirs)
    env.AotModelTest("kws_test", kws, "vectors.npz")     # scons test

env.AotModelLibrary(name, model, ...) makes a static library of the generated C, compiled with the
environment's own compiler and flags. env.AotModelSources(name, model, ...) stops at the C. Both have these
arguments:

    model           the ONNX or TFLite file; one that the build makes, too
    model_name      prefix of the generated files and symbols; default: the library's name as a C identifier,
                    with `_model` where `<name>.h` would hide a header of C
    target          what to generate code for (`aot-model targets`), with its options:
                    `cortex-m4,optimize=size`; default: what the library is compiled for, which the C compiler
                    is asked
    offload         targets that take over parts of the model first, in order of preference: docs/targets.md
    target_plugins  Python files that define further targets
    signature       which signature of a TFLite file with several is the model (default: its first sub-graph)
    dims            extents of the model's symbolic dimensions
    workspace       who owns the workspace: the library, or the caller of <name>_run(): static|caller
    io              where inputs and outputs are: caller|workspace
    pools           pools of the workspace, the most preferred first
    constant_pools  pools of the constants, the most preferred first
    pool_sections   linker sections of the pools' arrays
    pool_speeds     classes of speed: pools of a higher one are preferred (default: 0)
    pool_targets    targets that may touch a pool (default: all)
    planner         memory planner: auto (default), greedy, best-fit, local-search, optimal, or a plug-in's
    memory          what code and constants of a Cortex-M are in, for which the code is written and max_cycles
                    are estimated: 0ws, tcm, l4-art, f4-art, nrf53, m7-cache
    constants       inputs as constants: one number for each element, or one for all
    bounds          room for n rows of a value, whose number depends on data (Range, Loop)
    string_bytes    size of an element of tensors of strings, its NUL included: 64|16|32|128|256|512|1024
    params          constants in the code, or in <name>.params, which is made beside it: linked|external
    profile         count the ticks of each layer, by a clock of the program
    trace           tell each tensor to a function of the program as soon as it is complete
    fetch           weights are copied to the workspace while the layer before computes, by DMA of the
                    program; so many bytes (64k) at most at a time
    interfaces      what the library offers beside its structs: module|positional|packed|tvm-ffi
    metadata_level  how much of the metadata is in flash: full|size|none
    max_ram         budget of the workspace (16k, 1m): more is an error of the build, with a table by layer
    max_flash       budget of the constants; with count_code, of the code as well
    quantise        make integers of a float model first: docs/quantise.md
    calibration     samples for `quantise`: .npz, .npy or a folder
    quantisation_plan the plan for `quantise` to carry out, with calibration or without
    accuracy        how much worse than the float model `quantise` may be on held-back samples: 0.5%
    metric          what `quantise` chooses by on held-back samples, and what ACCURACY is of:
                    top1|noise|mse|cosine
    within          the best of mixed precision that `quantise` finds within so many times the cycles (of a
                    Cortex-M), RAM and flash of 8 bits alone: 1.3x, or of some of them: cycles=1.3x,ram=2x
    count_code      count the code as well, when it is compiled: its size by layer is told, and max_flash is
                    of code and constants
    max_stack       budget of the stack of <name>_run(): measured when the C is compiled, with GCC
    stack_allowance what each function that max_stack cannot count may need of the stack; default: such a
                    function is an error
    max_cycles      budget of the estimated cycles of an inference on a Cortex-M (4.2M): what was compiled is
                    run in QEMU; more is an error of the build, with a table by layer
    clock           of the core (120M), for microseconds in the table of max_cycles
    options         any other arguments of `aot-model compile`
    depends         what else is read or must be there first: <file|target>
    report          receives the path of the report, and has it written; a variable that is called `html`: the
                    page (docs/report.md); SCons: True or "html"

Construction variables by keyword (CCFLAGS=...) hold for this library alone. The result is the list of nodes
that a builder returns, with the attributes .source, .header, .metadata, .params, .report, .include_dirs,
.target and, for libraries, .library. Everything generated is in <name>.aot/ of the current (variant)
directory.

env.AotModelArena(name, libraries, pool_sections={}) makes a library of memory for models that do not run at
the same time: as large as the one that needs most. It stands for the libraries too, in LIBS and with its
.include_dirs.

env.AotModelTest(name, library, vectors, atol=, rtol=, max_lsb=, alias="test") makes the program <name>, which
has the vectors in it, and runs it when `alias` is built; a test that passed runs again when the program has
changed. env.AotModelBenchmark(name, library, runs=) makes a program that prints the time of one inference.

Construction variables:

    AOT_MODEL            command that runs the compiler, a list; default: this installation's
    AOT_MODEL_PYTHON     the interpreter of that default
    AOT_MODEL_TARGET     default of `target`
    AOT_MODEL_EMULATOR   command that runs programs of the target; without one, tests of a cross build are
                         built only
    AOT_MODEL_TEST_SOURCES, AOT_MODEL_TEST_LINKFLAGS   start-up code and linker script of test programs
    AOT_MODEL_COMSTR     what is shown instead of the command line
"""

from __future__ import annotations

import shlex

from SCons.Action import Action
from SCons.Builder import Builder
from SCons.Errors import UserError
from SCons.Scanner import Scanner

from .compiler import PACKAGE, Environment, describe, python, scan_model
from .libraries import aot_model_arena, aot_model_library, aot_model_sources, file_arguments
from .programs import aot_model_benchmark, aot_model_test


def generate(env: Environment) -> None:
    """Add the methods and their builders to an environment; asks the compiler whether it can work."""
    env.SetDefault(
        AOT_MODEL_EMULATOR=[],
        AOT_MODEL_TEST_SOURCES=[],
        AOT_MODEL_TEST_LINKFLAGS=[],
        _AOT_MODEL_FILES=file_arguments,
        AOT_MODEL_COM="$AOT_MODEL compile $SOURCE --quiet -o $TARGET.dir $AOT_MODEL_ARGUMENTS $_AOT_MODEL_FILES "  # noqa: E501
        "$AOT_MODEL_REPORT",
        AOT_MODEL_COMSTR="Compiling model $AOT_MODEL_NAME for $AOT_MODEL_TARGET",
        AOT_MODEL_STACKCOM="$AOT_MODEL stack $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_SIZECOM="$AOT_MODEL size $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_CYCLESCOM="$AOT_MODEL cycles $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_MAINCOM="$AOT_MODEL $AOT_MODEL_SUBCOMMAND $SOURCE -o $TARGET $AOT_MODEL_ARGUMENTS",
    )
    if not env.get("AOT_MODEL"):
        # -B: no .pyc in a tree that may be read-only or shared
        env["AOT_MODEL"] = [python(env), "-B", str(PACKAGE)]
    elif isinstance(env["AOT_MODEL"], str):
        env["AOT_MODEL"] = shlex.split(env["AOT_MODEL"])
    describe(env)
    env["BUILDERS"]["_AotModelCompile"] = Builder(
        action=Action("$AOT_MODEL_COM", "$AOT_MODEL_COMSTR"),
        source_scanner=Scanner(function=scan_model, name="aot-model", recursive=False),
    )
    env["BUILDERS"]["_AotModelStack"] = Builder(
        action=Action("$AOT_MODEL_STACKCOM", "Measuring the stack of $TARGET")
    )
    env["BUILDERS"]["_AotModelSize"] = Builder(
        action=Action("$AOT_MODEL_SIZECOM", "Counting code and constants of $TARGET")
    )
    env["BUILDERS"]["_AotModelCycles"] = Builder(
        action=Action("$AOT_MODEL_CYCLESCOM", "Estimating the cycles of $TARGET")
    )
    env["BUILDERS"]["_AotModelArena"] = Builder(
        action=Action("$AOT_MODEL arena $SOURCES -o $TARGET.dir $AOT_MODEL_ARGUMENTS", "Generating $TARGET")
    )
    env["BUILDERS"]["_AotModelMain"] = Builder(action=Action("$AOT_MODEL_MAINCOM", "Generating $TARGET"))
    env.AddMethod(aot_model_sources, "AotModelSources")
    env.AddMethod(aot_model_library, "AotModelLibrary")
    env.AddMethod(aot_model_arena, "AotModelArena")
    env.AddMethod(aot_model_test, "AotModelTest")
    env.AddMethod(aot_model_benchmark, "AotModelBenchmark")


def exists(env: Environment) -> bool:
    """Whether the compiler can work here."""
    try:
        generate(env.Clone())
    except UserError:
        return False
    return True
