"""aot_model_arena(): one memory for several models."""

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load(":info.bzl", "AotModelInfo", "identifier", "sources_of")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _arena_impl(ctx):
    name = ctx.attr.arena_name
    source, header = [ctx.actions.declare_file("%s/%s%s" % (ctx.label.name, name, suffix)) for suffix in [".c", ".h"]]
    models = [sources[AotModelInfo].metadata for sources in ctx.attr.models]
    arguments = ctx.actions.args()
    arguments.add("arena")
    arguments.add_all(models)
    arguments.add("-o", source.dirname)
    arguments.add(name, format = "--name=%s")
    for pool, section in sorted(ctx.attr.pool_sections.items()):
        arguments.add("--pool-section=%s=%s" % (pool, section))
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = models,
        outputs = [source, header],
        mnemonic = "AotModelArena",
        message = "Generating %{label}",
    )
    return [
        DefaultInfo(files = depset([source, header])),
        OutputGroupInfo(srcs = depset([source]), hdrs = depset([header])),
    ]

_aot_model_arena = rule(
    implementation = _arena_impl,
    attrs = {
        "arena_name": attr.string(mandatory = True),
        "models": attr.label_list(mandatory = True, providers = [AotModelInfo]),
        "pool_sections": attr.string_dict(),
    },
    toolchains = [TOOLCHAIN_TYPE],
)

def aot_model_arena(name, libraries, pool_sections = {}, deps = [], tags = [], testonly = None, visibility = None, **cc_library_kwargs):
    """A cc_library of memory for models that do not run at the same time: as large as the one that needs most.

    Args:
        name: of the cc_library; as a C identifier, of its header and symbols.
        libraries: labels of aot_model_library()s with workspace = "caller". They become deps.
        pool_sections: linker sections of the pools' arrays.
        deps: as in cc_library.
        tags: as in cc_library.
        testonly: as in cc_library.
        visibility: as in cc_library.
        **cc_library_kwargs: any other attribute of cc_library.
    """
    sources = name + "_sources"
    _aot_model_arena(
        name = sources,
        arena_name = identifier(name),
        models = [sources_of(library) for library in libraries],
        pool_sections = pool_sections,
        tags = tags,
        testonly = testonly,
    )
    for group in ["srcs", "hdrs"]:
        native.filegroup(
            name = "%s_%s" % (name, group),
            srcs = [sources],
            output_group = group,
            tags = tags + ["manual"],
            testonly = testonly,
        )
    cc_library(
        name = name,
        srcs = [name + "_srcs"],
        hdrs = [name + "_hdrs"],
        includes = [sources],
        tags = tags,
        testonly = testonly,
        visibility = visibility,
        deps = deps + libraries + [str(Label("//compiler:runtime"))],
        **cc_library_kwargs
    )
