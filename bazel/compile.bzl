"""Compiling one C file with the flags of a cc_library, for outputs that cc_library does not declare."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")

def compile_c(ctx, source, outputs, flags, mnemonic, message, headers = depset(), includes = depset(), quote_includes = depset()):
    """Registers an action that compiles a C file.

    Args:
        ctx: of a rule with the fragment cpp, _cc_toolchain and use_cc_toolchain().
        source: the File.
        outputs: Files that the compiler writes; the first is the object.
        flags: behind those of the toolchain and of the command line.
        mnemonic: of the action.
        message: what Bazel shows meanwhile.
        headers: depset of Files that the source includes.
        includes: depset of folders for -I.
        quote_includes: depset of folders for -iquote.
    """
    toolchain, features, compiler = _compiler(ctx)
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = source.path,
        output_file = outputs[0].path,
        include_directories = includes,
        quote_include_directories = quote_includes,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.conlyopts + flags,
    )
    ctx.actions.run(
        executable = compiler,
        arguments = _words(features, variables),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = ACTION_NAMES.c_compile,
            variables = variables,
        ),
        inputs = depset([source], transitive = [toolchain.all_files, headers]),
        outputs = outputs,
        mnemonic = mnemonic,
        progress_message = message,
        use_default_shell_env = True,
    )

def compiler_of(ctx, flags = []):
    """The C compiler as the compiler's option --compiler has it.

    Args:
        ctx: as above.
        flags: behind those of the toolchain and of the command line.

    Returns:
        The compiler, with the flags that choose a processor: a string; and its files, a depset.
    """
    toolchain, features, compiler = _compiler(ctx)
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.conlyopts + flags,
    )
    words = [word for word in _words(features, variables) if word.startswith("-m")]
    return " ".join([compiler] + words), toolchain.all_files

def _compiler(ctx):
    """The C toolchain, its features and its compiler."""
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    return toolchain, features, cc_common.get_tool_for_action(feature_configuration = features, action_name = ACTION_NAMES.c_compile)

def _words(features, variables):
    return cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.c_compile,
        variables = variables,
    )
