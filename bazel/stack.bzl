"""The budget of the stack: GCC's call graph of the generated C, summed up by the compiler."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":compile.bzl", "compile_c")
load(":info.bzl", "AotModelInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _call_graph(ctx, model):
    """What each function needs and calls (a File), the command of the compiler, and its files (a depset).

    cc_library declares no such output, so this compiles once more.
    """
    runtime = ctx.attr._runtime[CcInfo].compilation_context
    object, graph = [ctx.actions.declare_file("%s/%s%s" % (ctx.label.name, model.name, suffix)) for suffix in [".o", ".ci"]]
    compiler, files = compile_c(
        ctx,
        source = model.source,
        outputs = [object, graph],
        flags = ctx.attr.copts + ["-fcallgraph-info=su"],
        mnemonic = "AotModelCallGraph",
        message = "Measuring the stack of model %s" % model.name,
        headers = depset([model.header], transitive = [runtime.headers]),
        includes = depset([model.header.dirname], transitive = [runtime.includes, runtime.system_includes]),
        quote_includes = runtime.quote_includes,
    )
    return graph, compiler, files

def _stack_impl(ctx):
    model = ctx.attr.sources[AotModelInfo]
    graph, compiler, files = _call_graph(ctx, model)
    report = ctx.actions.declare_file("%s/%s.stack.txt" % (ctx.label.name, model.name))
    arguments = ctx.actions.args()
    arguments.add_all(["stack", model.metadata, graph, "-o", report])
    arguments.add(compiler, format = "--compiler=%s")
    if ctx.attr.stack_allowance:
        arguments.add(ctx.attr.stack_allowance, format = "--stack-allowance=%s")
    arguments.add(ctx.attr.max_stack, format = "--max-stack=%s")
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = [model.metadata, model.source, graph],
        tools = files,
        outputs = [report],
        mnemonic = "AotModelStack",
        message = "Checking the stack of model %s" % model.name,
    )
    return [DefaultInfo(files = depset([report]))]

aot_model_stack = rule(
    implementation = _stack_impl,
    doc = "A table of what the functions of a model need of the stack; fails the build when the sum exceeds `max_stack`.",
    attrs = {
        "copts": attr.string_list(doc = "Of the library."),
        "max_stack": attr.string(mandatory = True, doc = "Budget in bytes."),
        "stack_allowance": attr.string(doc = "Bytes for each function that cannot be counted."),
        "sources": attr.label(mandatory = True, providers = [AotModelInfo], doc = "An aot_model_sources()."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_runtime": attr.label(default = Label("//compiler:runtime"), providers = [CcInfo]),
    },
    fragments = ["cpp"],
    toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
)
