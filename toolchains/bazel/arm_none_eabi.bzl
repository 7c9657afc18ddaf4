"""The GNU Arm Embedded compiler of the machine as a C toolchain."""

load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/toolchains:cc_toolchain_config_info.bzl", "CcToolchainConfigInfo")

_COMPILE = [
    ACTION_NAMES.assemble,
    ACTION_NAMES.preprocess_assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
]
_LINK = [ACTION_NAMES.cpp_link_executable]

# Objects that are the same wherever they are made: no date, and the compiler's headers under the names it was given.
_COMPILE_FLAGS = [
    "-ffunction-sections",
    "-fdata-sections",
    "-no-canonical-prefixes",
    "-fno-canonical-system-headers",
    "-Wno-builtin-macro-redefined",
    "-D__DATE__=\"redacted\"",
    "-D__TIME__=\"redacted\"",
    "-D__TIMESTAMP__=\"redacted\"",
]

_TOOLS = {"ar": "ar", "cpp": "cpp", "gcc": "gcc", "gcov": "gcov", "ld": "ld", "nm": "nm", "objcopy": "objcopy", "objdump": "objdump", "strip": "strip"}

def _flags(name, actions, flags):
    return feature(name = name, enabled = True, flag_sets = [flag_set(actions = actions, flag_groups = [flag_group(flags = flags)])])

def _arm_none_eabi_config_impl(ctx):
    prefix = ctx.attr.folder + "/arm-none-eabi-"
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        toolchain_identifier = "arm-none-eabi-" + ctx.attr.core,
        host_system_name = "local",
        target_system_name = "arm-none-eabi",
        target_cpu = ctx.attr.core,
        target_libc = "newlib",
        compiler = "gcc",
        abi_version = "eabi",
        abi_libc_version = "unknown",
        cxx_builtin_include_directories = ctx.attr.system_includes,
        tool_paths = [tool_path(name = name, path = prefix + tool) for name, tool in _TOOLS.items()] +
                     [tool_path(name = "dwp", path = "/bin/false")],
        features = [
            _flags("core", _COMPILE + _LINK, ctx.attr.flags),
            _flags("sections_and_dates", _COMPILE, _COMPILE_FLAGS),
            _flags("no_unused_sections", _LINK, ["-Wl,--gc-sections"]),
            feature(name = "opt"),
            feature(name = "dbg"),
            feature(name = "fastbuild"),
        ],
    )

arm_none_eabi_config = rule(
    implementation = _arm_none_eabi_config_impl,
    doc = "Configuration of a cc_toolchain for one core.",
    attrs = {
        "core": attr.string(mandatory = True, doc = "As in -mcpu."),
        "flags": attr.string_list(mandatory = True, doc = "Of the compiler and the linker."),
        "folder": attr.string(default = "/usr/bin", doc = "Where arm-none-eabi-gcc is."),
        "system_includes": attr.string_list(
            default = ["/usr/lib/gcc/arm-none-eabi", "/usr/lib/arm-none-eabi", "/usr/include/newlib"],
            doc = "Folders of the compiler's own headers.",
        ),
    },
    provides = [CcToolchainConfigInfo],
)
