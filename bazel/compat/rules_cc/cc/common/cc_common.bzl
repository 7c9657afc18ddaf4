"""cc_common, at the path where rules_cc has it."""

load(":builtins.bzl", "builtin_cc_common")

cc_common = builtin_cc_common
