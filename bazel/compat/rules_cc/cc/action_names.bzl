"""Names of actions, at the path where rules_cc has them."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", _names = "ACTION_NAMES")

ACTION_NAMES = _names
