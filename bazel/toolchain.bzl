"""The compiler as a toolchain: how it is run, and what it generates code for on which platform."""

AotModelToolchainInfo = provider(
    doc = "The compiler for one kind of platform.",
    fields = {
        "compiler": "FilesToRunProvider of a compiler that is a program, or None",
        "emulator": "words of the command that runs programs of the platform; empty when this machine does",
        "files": "depset of the files of a compiler that an interpreter runs",
        "interpreter": "File that runs them",
        "main": "File whose folder the interpreter is given",
        "target": "what to generate code for",
    },
)

# A string for rule(toolchains), which in Bazel 4 takes no Label; absolute, so that it holds in other repositories.
TOOLCHAIN_TYPE = str(Label("//bazel:toolchain_type"))

def _aot_model_toolchain_impl(ctx):
    compiler = ctx.attr.compiler[DefaultInfo].files_to_run if ctx.attr.compiler else None
    return [platform_common.ToolchainInfo(aot_model = AotModelToolchainInfo(
        compiler = compiler,
        emulator = ctx.attr.emulator,
        files = depset(ctx.files._compiler_files + ctx.files.versions + ctx.files.interpreter),
        interpreter = ctx.file.interpreter,
        main = ctx.file._main,
        target = ctx.attr.target,
    ))]

_aot_model_toolchain = rule(
    implementation = _aot_model_toolchain_impl,
    attrs = {
        "compiler": attr.label(executable = True, cfg = "exec"),
        "emulator": attr.string_list(),
        "interpreter": attr.label(allow_single_file = True, cfg = "exec"),
        "target": attr.string(mandatory = True),
        "versions": attr.label(allow_single_file = True, cfg = "exec"),
        "_compiler_files": attr.label(default = Label("//compiler:files"), cfg = "exec"),
        "_main": attr.label(default = Label("//compiler:aot_model/__main__.py"), allow_single_file = True, cfg = "exec"),
    },
)

def aot_model_toolchain(name, target, compiler = None, **kwargs):
    """A toolchain for //bazel:toolchain_type.

    Args:
        name: of the target.
        target: what to generate code for (`aot-model targets`).
        compiler: the compiler as a program, such as a py_binary with packages of its own, which needs no Python of the
            machine. Default: the interpreter of @aot_model_python.
        **kwargs: emulator, the command that runs programs of the platform, a list that they are put behind; and what any
            rule has.
    """
    if compiler == None:
        kwargs["interpreter"] = str(Label("@aot_model_python//:python"))
        kwargs["versions"] = str(Label("@aot_model_python//:versions.json"))
    _aot_model_toolchain(name = name, compiler = compiler, target = target, **kwargs)

def run_compiler(ctx, arguments, inputs, outputs, mnemonic, message, tools = depset()):
    """Registers an action that runs the compiler.

    Args:
        ctx: of a rule with TOOLCHAIN_TYPE.
        arguments: actions.args() of the compiler.
        inputs: Files that it reads.
        outputs: Files that it writes.
        mnemonic: of the action.
        message: what Bazel shows meanwhile.
        tools: further Files, of a C compiler.
    """
    toolchain = ctx.toolchains[TOOLCHAIN_TYPE].aot_model
    if toolchain.compiler:
        ctx.actions.run(
            executable = toolchain.compiler,
            arguments = [arguments],
            inputs = depset(inputs, transitive = [tools]),
            outputs = outputs,
            mnemonic = mnemonic,
            progress_message = message,
            use_default_shell_env = True,
        )
    else:
        ctx.actions.run(
            executable = toolchain.interpreter,
            arguments = ["-B", toolchain.main.dirname, arguments],
            inputs = depset(inputs, transitive = [toolchain.files, tools]),
            outputs = outputs,
            mnemonic = mnemonic,
            progress_message = message,
            use_default_shell_env = True,
        )
