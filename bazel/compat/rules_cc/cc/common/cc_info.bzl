"""CcInfo, at the path where rules_cc has it."""

load(":builtins.bzl", "builtin_cc_info")

CcInfo = builtin_cc_info
