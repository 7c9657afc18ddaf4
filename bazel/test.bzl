"""aot_model_test() and aot_model_benchmark(): programs around a library of a model."""

load("@rules_cc//cc:cc_binary.bzl", "cc_binary")
load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load(":compile.bzl", "compiler_of")
load(":info.bzl", "AotModelInfo", "sources_of")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

def _main_impl(ctx):
    main = ctx.actions.declare_file(ctx.label.name + "/main.c")
    metadata = ctx.attr.sources[AotModelInfo].metadata
    arguments = ctx.actions.args()
    arguments.add(ctx.attr.subcommand)
    arguments.add(metadata)
    arguments.add("-o", main)
    if ctx.files.vectors:
        arguments.add(_vectors(ctx), format = "--vectors=%s")
    arguments.add_all(ctx.attr.options)
    inputs = [metadata] + ctx.files.vectors
    tools = depset()
    if ctx.files.measured and "qemu-system-arm" in ctx.toolchains[TOOLCHAIN_TYPE].aot_model.emulator:
        # An emulator counts no cycles: the program has the estimate of the library's in it.
        archives = [file for file in ctx.files.measured if file.extension == "a"]
        compiler, tools = compiler_of(ctx)
        arguments.add(compiler, format = "--compiler=%s")
        arguments.add_all(["--objects"] + archives)
        inputs += archives + ctx.attr.sources[DefaultInfo].files.to_list() + ctx.files._board + ctx.files._headers
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = inputs,
        tools = tools,
        outputs = [main],
        mnemonic = "AotModelMain",
        message = "Generating %{label}",
    )
    return [DefaultInfo(files = depset([main]))]

def _vectors(ctx):
    """The .npz, or the folder that has the test_data_set_<n>/ folders of the .pb files."""
    first = ctx.files.vectors[0]
    if len(ctx.files.vectors) == 1 and first.extension == "npz":
        return first.path
    if [file for file in ctx.files.vectors if file.extension != "pb"]:
        fail("aot_model_test(%s): vectors are one .npz, or the .pb files of ONNX test data" % ctx.label.name)
    folder = first.dirname
    return folder.rpartition("/")[0] if folder.rpartition("/")[2].startswith("test_data_set_") else folder

_aot_model_main = rule(
    implementation = _main_impl,
    attrs = {
        "measured": attr.label_list(doc = "The library, for what an emulator cannot measure."),
        "options": attr.string_list(),
        "sources": attr.label(providers = [AotModelInfo], mandatory = True),
        "subcommand": attr.string(mandatory = True),
        "vectors": attr.label_list(allow_files = True),
        "_board": attr.label(default = Label("//toolchains/qemu:files")),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_headers": attr.label(default = Label("//compiler:files")),
    },
    fragments = ["cpp"],
    toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
)

def _run_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    program = ctx.file.program
    words = ctx.toolchains[TOOLCHAIN_TYPE].aot_model.emulator + [program.short_path]
    command = " ".join(["'%s'" % word.replace("'", "'\\''") for word in words])
    ctx.actions.write(script, "#!/bin/sh\nexec %s\n" % command, is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = [program]))]

aot_model_run_test = rule(
    implementation = _run_test_impl,
    doc = "Runs a program on the platform of the build (Cortex-M: in QEMU); its exit status is the result.",
    attrs = {"program": attr.label(allow_single_file = True, mandatory = True, doc = "A cc_binary.")},
    test = True,
    toolchains = [TOOLCHAIN_TYPE],
)

def _program(name, library, subcommand, options, vectors, tags, testonly, measured = []):
    main = name + ".main"
    _aot_model_main(name = main, measured = measured, options = options, sources = sources_of(library), subcommand = subcommand, tags = tags + ["manual"], testonly = testonly, vectors = vectors)
    return {
        "deps": [library, str(Label("//toolchains/bazel:test_program"))],
        "srcs": [main],
        "testonly": testonly,
    }

def aot_model_test(name, library, vectors, atol = None, rtol = None, max_lsb = None, tags = [], **kwargs):
    """A test that compares the outputs of a library with vectors, on the platform of the build.

    Programs of the Cortex-M platforms run in QEMU. Also makes <name>.program, the cc_binary.

    Args:
        name: of the test.
        library: label of an aot_model_library().
        vectors: .npz with in_<i>, out_<i>, or the list of the .pb files of ONNX test data.
        atol: real outputs: |got - want| <= atol + rtol * |want|.
        rtol: as above.
        max_lsb: integer outputs: |got - want| <= max_lsb.
        tags: as in every test.
        **kwargs: any other attribute of a test.
    """
    said = [("atol", atol), ("rtol", rtol), ("max-lsb", max_lsb)]
    options = ["--%s=%s" % (option, value) for option, value in said if value != None]
    files = vectors if type(vectors) == type([]) else [vectors]
    cc_binary(
        name = name + ".program",
        tags = tags + ["manual"],
        **_program(name, library, "test-main", options, files, tags, True)
    )
    aot_model_run_test(name = name, program = name + ".program", tags = tags, **dict({"size": "small"}, **kwargs))

def aot_model_benchmark(name, library, runs = None, tags = [], **cc_binary_kwargs):
    """A program that prints the time of one inference.

    Args:
        name: of the cc_binary.
        library: label of an aot_model_library().
        runs: how many runs to measure.
        tags: as in cc_binary.
        **cc_binary_kwargs: any other attribute of cc_binary.
    """
    options = [] if runs == None else ["--runs=%d" % runs]
    attributes = _program(name, library, "benchmark-main", options, [], tags, None, measured = [library])
    cc_binary(name = name, tags = tags + ["manual"], **dict(attributes, **cc_binary_kwargs))
