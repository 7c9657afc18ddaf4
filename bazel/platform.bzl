"""aot_model_for_platform(): targets built for another platform than that of the command line."""

def _platform_impl(settings, attr):
    # buildifier: disable=unused-variable
    _ = settings
    return {"//command_line_option:platforms": [str(attr.platform)]}

_platform = transition(
    implementation = _platform_impl,
    inputs = [],
    outputs = ["//command_line_option:platforms"],
)

def _for_platform_impl(ctx):
    return [DefaultInfo(files = depset(ctx.files.srcs))]

aot_model_for_platform = rule(
    implementation = _for_platform_impl,
    doc = "The files of `srcs`, built for `platform`: firmware for several cores and host programs in one build.",
    attrs = {
        "platform": attr.label(mandatory = True, doc = "Such as @aot_model//toolchains/bazel:cortex-m4."),
        "srcs": attr.label_list(cfg = _platform, mandatory = True, doc = "What to build."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
)
