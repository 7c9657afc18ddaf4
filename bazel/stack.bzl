"""The budget of the stack: GCC's call graph of the generated C, summed up by the compiler."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":info.bzl", "AotModelInfo")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _call_graph(ctx, model):
    """File: what each function needs and calls. cc_library declares no such output, so this compiles once more."""
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    runtime = ctx.attr._runtime[CcInfo].compilation_context
    object, graph = [ctx.actions.declare_file("%s/%s%s" % (ctx.label.name, model.name, suffix)) for suffix in [".o", ".ci"]]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = model.source.path,
        output_file = object.path,
        include_directories = depset([model.header.dirname], transitive = [runtime.includes, runtime.system_includes]),
        quote_include_directories = runtime.quote_includes,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.conlyopts + ctx.attr.copts + ["-fcallgraph-info=su"],
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = ACTION_NAMES.c_compile),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = ACTION_NAMES.c_compile,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = ACTION_NAMES.c_compile,
            variables = variables,
        ),
        inputs = depset([model.source, model.header], transitive = [toolchain.all_files, runtime.headers]),
        outputs = [object, graph],
        mnemonic = "AotModelCallGraph",
        progress_message = "Measuring the stack of model %s" % model.name,
        use_default_shell_env = True,
    )
    return graph

def _stack_impl(ctx):
    model = ctx.attr.sources[AotModelInfo]
    graph = _call_graph(ctx, model)
    report = ctx.actions.declare_file("%s/%s.stack.txt" % (ctx.label.name, model.name))
    arguments = ctx.actions.args()
    arguments.add_all(["stack", model.metadata, graph, "-o", report])
    arguments.add(ctx.attr.max_stack, format = "--max-stack=%s")
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = [model.metadata, model.source, graph],
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
        "sources": attr.label(mandatory = True, providers = [AotModelInfo], doc = "An aot_model_sources()."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_runtime": attr.label(default = Label("//compiler:runtime"), providers = [CcInfo]),
    },
    fragments = ["cpp"],
    toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
)
