"""How rules find the C toolchain, at the path where rules_cc has it."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

find_cc_toolchain = find_cpp_toolchain

def use_cc_toolchain():
    """For rule(toolchains)."""
    return ["@bazel_tools//tools/cpp:toolchain_type"]
