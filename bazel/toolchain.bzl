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
        files = depset(ctx.files._compiler_files + [ctx.file._versions, ctx.file._interpreter]),
        interpreter = ctx.file._interpreter,
        main = ctx.file._main,
        target = ctx.attr.target,
    ))]

aot_model_toolchain = rule(
    implementation = _aot_model_toolchain_impl,
    doc = "A toolchain for //bazel:toolchain_type.",
    attrs = {
        "compiler": attr.label(executable = True, cfg = "exec", doc = "The compiler as a program, such as a py_binary with packages of its own. Default: the interpreter of @aot_model_python."),
        "emulator": attr.string_list(doc = "Command that runs programs of the platform, which is put behind it."),
        "target": attr.string(mandatory = True, doc = "What to generate code for (`aot-model targets`)."),
        "_compiler_files": attr.label(default = Label("//compiler:files"), cfg = "exec"),
        "_interpreter": attr.label(default = "@aot_model_python//:python", allow_single_file = True, cfg = "exec"),
        "_main": attr.label(default = Label("//compiler:aot_model/__main__.py"), allow_single_file = True, cfg = "exec"),
        "_versions": attr.label(default = "@aot_model_python//:versions.json", allow_single_file = True, cfg = "exec"),
    },
)

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
