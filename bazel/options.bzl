"""Options of the compiler that are attributes of the rules: written by tests/build/test_keywords.py from keywords.py."""

# The options in the order of the command line.
OPTION_FLAGS = {
    "dims": "--dim",
    "workspace": "--workspace",
    "io": "--io",
    "pools": "--pool",
    "constant_pools": "--constant-pool",
    "pool_sections": "--pool-section",
    "pool_speeds": "--pool-speed",
    "pool_targets": "--pool-targets",
    "planner": "--planner",
    "constants": "--constant",
    "bounds": "--bound",
    "string_bytes": "--string-bytes",
    "params": "--params",
    "profile": "--profile",
    "interfaces": "--interface",
    "metadata_level": "--metadata",
    "max_ram": "--max-ram",
    "max_flash": "--max-flash",
}

OPTION_ATTRS = {
    "bounds": attr.string_dict(doc = "Room for n rows of a value whose number of rows hangs on data (Range, Loop)."),
    "constant_pools": attr.string_list(doc = "Pools of the constants, the most preferred first."),
    "constants": attr.string_dict(doc = "Inputs as constants: one number for each element, or one for all."),
    "dims": attr.string_dict(doc = "Extents of the model's symbolic dimensions."),
    "interfaces": attr.string_list(doc = "What the library offers beside its structs."),
    "io": attr.string(values = ["", "caller", "workspace"], doc = "Where inputs and outputs are."),
    "max_flash": attr.string(doc = "Budget of the constants."),
    "max_ram": attr.string(doc = "Budget of the workspace (16k, 1m): more is an error of the build, with a table by layer."),
    "metadata_level": attr.string(values = ["", "full", "size", "none"], doc = "How much of the metadata is in flash."),
    "params": attr.string(values = ["", "linked", "external"], doc = "Constants in the code, or in <name>.params, which is made beside it."),
    "planner": attr.string(doc = "Memory planner: auto (default), greedy, best-fit, local-search, optimal, or a plug-in's."),
    "pool_sections": attr.string_dict(doc = "Linker sections of the pools' arrays."),
    "pool_speeds": attr.string_dict(doc = "Classes of speed: pools of a higher one are preferred (default: 0)."),
    "pool_targets": attr.string_dict(doc = "Targets that may touch a pool (default: all)."),
    "pools": attr.string_list(doc = "Pools of the workspace, the most preferred first."),
    "profile": attr.bool(doc = "Count the ticks of each layer, by a clock of the program."),
    "string_bytes": attr.string(values = ["", "64", "16", "32", "128", "256", "512", "1024"], doc = "Size of an element of tensors of strings, its NUL included."),
    "workspace": attr.string(values = ["", "static", "caller"], doc = "Who owns the workspace: the library, or the caller of <name>_run()."),
}
