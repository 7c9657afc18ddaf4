"""aot_model_library(): a cc_library of a model, and the rule that generates its C."""

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@rules_cc//cc:find_cc_toolchain.bzl", "use_cc_toolchain")
load(":compile.bzl", "compile_c")
load(":info.bzl", "AotModelInfo", "identifier", "is_identifier")
load(":measure.bzl", "aot_model_cycles", "aot_model_size", "aot_model_stack")
load(":options.bzl", "OPTION_ATTRS", "OPTION_FILES", "OPTION_FLAGS")
load(":toolchain.bzl", "TOOLCHAIN_TYPE", "run_compiler")

TargetFlagInfo = provider(doc = "Value of the flag //bazel:target.", fields = {"value": "a target, or nothing"})

def _target_flag_impl(ctx):
    return [TargetFlagInfo(value = ctx.build_setting_value)]

target_flag = rule(
    implementation = _target_flag_impl,
    doc = "A flag of the command line.",
    build_setting = config.string(flag = True),
)

def _probe(ctx, target):
    """A list with the object that says what the library is compiled for, where the target follows the flags."""
    if "auto" not in target.split(",") and "host" not in target.split(","):
        return []
    object = ctx.actions.declare_file("%s/probe.o" % ctx.label.name)
    compile_c(
        ctx,
        source = ctx.file._probe,
        outputs = [object],
        flags = ctx.attr.copts + ["-fno-lto", "-w"],
        mnemonic = "AotModelProbe",
        message = "Asking the C compiler what model %s is for" % ctx.attr.model_name,
    )
    return [object]

def _sources_impl(ctx):
    name = ctx.attr.model_name
    if not is_identifier(name):
        fail("aot_model_library(%s): model_name '%s' is not a C identifier" % (ctx.label.name, name))
    target = ctx.attr.target or ctx.attr._target_flag[TargetFlagInfo].value or ctx.toolchains[TOOLCHAIN_TYPE].aot_model.target
    target = ",".join(ctx.attr.offload + [target])

    # A folder for this target alone: nothing else is on its include path, and two may use the same file names.
    source, header, metadata, report = [
        ctx.actions.declare_file("%s/%s%s" % (ctx.label.name, name, suffix))
        for suffix in [".c", ".h", ".json", ".report." + ctx.attr.report]
    ]
    arguments = ctx.actions.args()
    arguments.add("compile")
    arguments.add("--quiet")
    arguments.add(ctx.file.model)
    arguments.add("-o", source.dirname)
    arguments.add(name, format = "--name=%s")
    arguments.add(target, format = "--target=%s")
    probe = _probe(ctx, target)
    arguments.add_all(probe, format_each = "--target-probe=%s")
    arguments.add(report, format = "--report=%s")
    files = []
    for attribute, flag in OPTION_FLAGS.items():
        arguments.add_all(_words(flag, getattr(ctx.attr, attribute)))
    for attribute, flag in OPTION_FILES.items():
        arguments.add_all(getattr(ctx.files, attribute), format_each = flag + "=%s")
        files.extend(getattr(ctx.files, attribute))
    arguments.add_all(ctx.files.target_plugins, format_each = "--target-plugin=%s")
    arguments.add_all(ctx.attr.options)
    parameters = []
    if ctx.attr.params == "external" or "--params=external" in ctx.attr.options:
        parameters.append(ctx.actions.declare_file("%s/%s.params" % (ctx.label.name, name)))
    run_compiler(
        ctx,
        arguments = arguments,
        inputs = [ctx.file.model] + probe + files + ctx.files.data + ctx.files.target_plugins,
        outputs = [source, header, metadata, report] + parameters,
        mnemonic = "AotModelCompile",
        message = "Compiling model %s for %s" % (name, "what the C toolchain is for" if probe else target),
    )
    return [
        DefaultInfo(files = depset([source, header, metadata] + parameters)),
        OutputGroupInfo(
            srcs = depset([source]),
            hdrs = depset([header]),
            metadata = depset([metadata]),
            params = depset(parameters),
            report = depset([report]),
        ),
        AotModelInfo(
            header = header,
            metadata = metadata,
            name = name,
            params = parameters[0] if parameters else None,
            report = report,
            source = source,
            target = target,
        ),
    ]

aot_model_sources = rule(
    implementation = _sources_impl,
    doc = "The C of a model. Output groups: srcs, hdrs, metadata, report, params.",
    attrs = dict(
        OPTION_ATTRS,
        copts = attr.string_list(doc = "Of the library."),
        data = attr.label_list(allow_files = True, doc = "Files that the model refers to (ONNX external data)."),
        model = attr.label(allow_single_file = True, mandatory = True, doc = "ONNX or TFLite file."),
        model_name = attr.string(mandatory = True, doc = "Prefix of the generated files and symbols."),
        offload = attr.string_list(doc = "Targets that take over parts of the model first, in order of preference."),
        options = attr.string_list(doc = "Any other arguments of `aot-model compile`."),
        report = attr.string(default = "txt", values = ["txt", "html"], doc = "What the report is: a table, or a page."),
        target = attr.string(doc = "What to generate code for; default: the flag //bazel:target, else what the C toolchain compiles for."),
        target_plugins = attr.label_list(allow_files = [".py"], doc = "Python files that define further targets."),
        _cc_toolchain = attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        _probe = attr.label(default = Label("//compiler:aot_model/runtime/probe.c"), allow_single_file = True),
        _target_flag = attr.label(default = Label("//bazel:target")),
    ),
    fragments = ["cpp"],
    provides = [AotModelInfo],
    toolchains = [TOOLCHAIN_TYPE] + use_cc_toolchain(),
)

def _words(flag, value):
    """Arguments of the command line for the value of an attribute."""
    if type(value) == "list":
        return ["%s=%s" % (flag, one) for one in value]
    if type(value) == "dict":
        return ["%s=%s=%s" % (flag, key, value[key]) for key in sorted(value)]
    if type(value) == "bool":
        return [flag] if value else []
    return ["%s=%s" % (flag, value)] if value else []

def _attribute(value):
    """Numbers, which BUILD files may give, as the strings that the rule's attributes are."""
    if type(value) == "int":
        return str(value)
    if type(value) == "dict":
        return {key: str(one) for key, one in value.items()}
    return value

def aot_model_library(
        name,
        model,
        data = [],
        model_name = None,
        target = None,
        offload = [],
        target_plugins = [],
        count_code = False,
        max_stack = None,
        stack_allowance = None,
        max_cycles = None,
        clock = None,
        options = [],
        report = "txt",
        deps = [],
        tags = [],
        testonly = None,
        target_compatible_with = [],
        visibility = None,
        **kwargs):
    """A cc_library of a model.

    Also makes <name>_sources (AotModelInfo, the output groups srcs, hdrs, metadata, report and params) and, of these groups,
    <name>_metadata, <name>_report and <name>_params.

    Args:
        name: of the cc_library.
        model: ONNX or TFLite file.
        data: files that the model refers to (ONNX external data).
        model_name: prefix of the generated files and symbols; default: the name as a C identifier.
        target: what to generate code for (`aot-model targets`); default: the flag --@aot_model//bazel:target, else
            what the C compiler says, with the flags of the library.
        offload: targets that take over parts of the model first, in order of preference.
        target_plugins: Python files that define further targets.
        count_code: count the code, too: <name>_size has its size by layer, and max_flash is of code and constants.
        max_stack: budget in bytes of the stack of <name>_run(), measured when the C is compiled (GCC 10 or newer).
        stack_allowance: bytes of the stack for each function that max_stack cannot count; default: that is an error.
        max_cycles: budget of the estimated cycles of an inference on a Cortex-M (4.2M): what was compiled is run in
            QEMU; more is an error of the build, with a table by layer.
        clock: of the core (120M), for microseconds in the table of max_cycles.
        options: any other arguments of `aot-model compile`.
        report: "html" makes the report, which is the output group of that name, a page to look at.
        deps: as in cc_library.
        tags: as in cc_library.
        testonly: as in cc_library.
        target_compatible_with: as in cc_library.
        visibility: as in cc_library.
        **kwargs: the options of the compiler by their names in options.bzl (max_ram, workspace, dims, ...), and any
            other attribute of cc_library.
    """
    sources = name + "_sources"
    common = {"tags": tags, "target_compatible_with": target_compatible_with, "testonly": testonly, "visibility": visibility}
    given = {key: _attribute(kwargs.pop(key)) for key in OPTION_ATTRS if key in kwargs}
    aot_model_sources(
        name = sources,
        copts = kwargs.get("copts", []),
        data = data,
        model = model,
        model_name = identifier(name) if model_name == None else model_name,
        offload = offload,
        options = options,
        report = report,
        target = target,
        target_plugins = target_plugins,
        **dict(common, **given)
    )
    for group in ["srcs", "hdrs", "metadata", "report", "params"]:
        native.filegroup(
            name = "%s_%s" % (name, group),
            srcs = [sources],
            output_group = group,
            tags = tags + ["manual"],
            testonly = testonly,
            visibility = visibility,
        )
    textual_hdrs = kwargs.pop("textual_hdrs", [])

    # What measures is an input of the library's compilation: it is not there when a budget is exceeded.
    if count_code:
        aot_model_size(
            name = name + "_size",
            copts = kwargs.get("copts", []),
            max_flash = given.get("max_flash", ""),
            sources = sources,
            **common
        )
        textual_hdrs = textual_hdrs + [name + "_size"]
    if max_stack != None:
        aot_model_stack(
            name = name + "_stack",
            copts = kwargs.get("copts", []),
            max_stack = str(max_stack),
            stack_allowance = "" if stack_allowance == None else str(stack_allowance),
            sources = sources,
            **common
        )
        textual_hdrs = textual_hdrs + [name + "_stack"]
    if max_cycles != None:
        aot_model_cycles(
            name = name + "_cycles",
            clock = "" if clock == None else str(clock),
            copts = kwargs.get("copts", []),
            max_cycles = str(max_cycles),
            memory = given.get("memory", ""),
            sources = sources,
            **common
        )
        textual_hdrs = textual_hdrs + [name + "_cycles"]
    elif clock != None:
        fail("%s: clock is of max_cycles, which is missing" % name)
    cc_library(
        name = name,
        srcs = [name + "_srcs"],
        hdrs = [name + "_hdrs"],
        includes = [sources],
        textual_hdrs = textual_hdrs,
        deps = deps + [str(Label("//compiler:runtime"))],
        **dict(common, **kwargs)
    )
