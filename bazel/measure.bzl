"""Budgets of what the C compiler made: a model's C is compiled once more, with what the measure needs, and the compiler says
of it how much stack, cycles or flash it takes."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":compile.bzl", "compile_c", "compiler_of")
load(":info.bzl", "AotModelInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _measure(ctx, what, flags, options, doing, beside = [], files = []):
    """The table that `aot-model <what>` writes of the compiled C, as the result of a rule.

    Args:
        ctx: of a rule with _ATTRS.
        what: the subcommand.
        flags: of the C compiler, beside the library's.
        options: of the subcommand; by name, and those that are empty are not given.
        doing: what Bazel shows meanwhile.
        beside: endings of what the flags have written beside the object.
        files: further inputs.

    Returns:
        Providers.
    """
    model = ctx.attr.sources[AotModelInfo]
    runtime = ctx.attr._runtime[CcInfo].compilation_context
    outputs = [ctx.actions.declare_file("%s/%s%s" % (ctx.label.name, model.name, ending)) for ending in [".o"] + beside]
    compile_c(
        ctx,
        source = model.source,
        outputs = outputs,
        flags = ctx.attr.copts + flags,
        mnemonic = "AotModelMeasured",
        message = "Compiling model %s to be measured" % model.name,
        headers = depset([model.header], transitive = [runtime.headers]),
        includes = depset([model.header.dirname], transitive = [runtime.includes, runtime.system_includes]),
        quote_includes = runtime.quote_includes,
    )
    compiler, tools = compiler_of(ctx, ctx.attr.copts)
    report = ctx.actions.declare_file("%s/%s.%s.txt" % (ctx.label.name, model.name, what))
    arguments = ctx.actions.args()
    arguments.add_all([what, model.metadata, outputs[0], "-o", report])
    arguments.add(compiler, format = "--compiler=%s")
    for option, value in options.items():
        if value:
            arguments.add(value, format = "--" + option + "=%s")
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = [model.metadata, model.source, model.header] + outputs + files,
        tools = tools,
        outputs = [report],
        mnemonic = "AotModelMeasure",
        message = "%s of model %s" % (doing, model.name),
    )
    return [DefaultInfo(files = depset([report]))]

def _measure_rule(implementation, doc, **attrs):
    return rule(
        implementation = implementation,
        doc = doc,
        attrs = dict(
            attrs,
            copts = attr.string_list(doc = "Of the library."),
            sources = attr.label(mandatory = True, providers = [AotModelInfo], doc = "An aot_model_sources()."),
            _cc_toolchain = attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
            _runtime = attr.label(default = Label("//compiler:runtime"), providers = [CcInfo]),
        ),
        fragments = ["cpp"],
        toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
    )

def _stack_impl(ctx):
    # GCC's call graph, which is summed up.
    options = {"max-stack": ctx.attr.max_stack, "stack-allowance": ctx.attr.stack_allowance}
    return _measure(ctx, "stack", ["-fcallgraph-info=su"], options, "Checking the stack", beside = [".ci"])

aot_model_stack = _measure_rule(
    implementation = _stack_impl,
    doc = "A table of what the functions of a model need of the stack; fails the build when the sum exceeds `max_stack`.",
    max_stack = attr.string(mandatory = True, doc = "Budget in bytes."),
    stack_allowance = attr.string(doc = "Bytes for each function that cannot be counted."),
)

def _cycles_impl(ctx):
    options = {"memory": ctx.attr.memory, "clock": ctx.attr.clock, "max-cycles": ctx.attr.max_cycles}
    files = ctx.files._board + ctx.files._headers
    return _measure(ctx, "cycles", ["-g"], options, "Estimating the cycles", files = files)

aot_model_cycles = _measure_rule(
    implementation = _cycles_impl,
    doc = "A table of the cycles that the layers of a model take on a Cortex-M; fails the build when they exceed `max_cycles`.",
    clock = attr.string(doc = "Of the core, in hertz (120M)."),
    max_cycles = attr.string(mandatory = True, doc = "Budget in cycles."),
    memory = attr.string(doc = "What code and constants are in."),
    _board = attr.label(default = Label("//toolchains/qemu:files")),
    _headers = attr.label(default = Label("//compiler:files")),
)

def _size_impl(ctx):
    return _measure(ctx, "size", ["-g"], {"max-flash": ctx.attr.max_flash}, "Counting code and constants")

aot_model_size = _measure_rule(
    implementation = _size_impl,
    doc = "A table of the code and constants of the layers of a model; fails the build when they exceed `max_flash`.",
    max_flash = attr.string(doc = "Budget in bytes."),
)
