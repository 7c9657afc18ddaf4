"""The budget of cycles: what the generated C takes on a Cortex-M, estimated from a run in QEMU."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":compile.bzl", "compile_c")
load(":info.bzl", "AotModelInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _cycles_impl(ctx):
    model = ctx.attr.sources[AotModelInfo]
    runtime = ctx.attr._runtime[CcInfo].compilation_context
    object = ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, model.name))
    compiler, files = compile_c(
        ctx,
        source = model.source,
        outputs = [object],
        flags = ctx.attr.copts + ["-g"],
        mnemonic = "AotModelTimed",
        message = "Compiling model %s to be timed" % model.name,
        headers = depset([model.header], transitive = [runtime.headers]),
        includes = depset([model.header.dirname], transitive = [runtime.includes, runtime.system_includes]),
        quote_includes = runtime.quote_includes,
    )
    report = ctx.actions.declare_file("%s/%s.cycles.txt" % (ctx.label.name, model.name))
    arguments = ctx.actions.args()
    arguments.add_all(["cycles", model.metadata, object, "-o", report])
    arguments.add(compiler, format = "--compiler=%s")
    for option in ["memory", "clock"]:
        if getattr(ctx.attr, option):
            arguments.add(getattr(ctx.attr, option), format = "--" + option + "=%s")
    arguments.add(ctx.attr.max_cycles, format = "--max-cycles=%s")
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = [model.metadata, model.source, model.header, object] + ctx.files._board + ctx.files._headers,
        tools = files,
        outputs = [report],
        mnemonic = "AotModelCycles",
        message = "Estimating the cycles of model %s" % model.name,
    )
    return [DefaultInfo(files = depset([report]))]

aot_model_cycles = rule(
    implementation = _cycles_impl,
    doc = "A table of the cycles that the layers of a model take; fails the build when they exceed `max_cycles`.",
    attrs = {
        "clock": attr.string(doc = "Of the core, in hertz (120M)."),
        "copts": attr.string_list(doc = "Of the library."),
        "max_cycles": attr.string(mandatory = True, doc = "Budget in cycles."),
        "memory": attr.string(doc = "What code and constants are in."),
        "sources": attr.label(mandatory = True, providers = [AotModelInfo], doc = "An aot_model_sources()."),
        "_board": attr.label(default = Label("//toolchains/qemu:files")),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_headers": attr.label(default = Label("//compiler:files")),
        "_runtime": attr.label(default = Label("//compiler:runtime"), providers = [CcInfo]),
    },
    fragments = ["cpp"],
    toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
)
