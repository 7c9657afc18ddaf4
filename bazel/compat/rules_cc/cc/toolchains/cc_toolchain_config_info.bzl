"""CcToolchainConfigInfo, at the path where rules_cc has it."""

load("//cc/common:builtins.bzl", "builtin_toolchain_config_info")

CcToolchainConfigInfo = builtin_toolchain_config_info
