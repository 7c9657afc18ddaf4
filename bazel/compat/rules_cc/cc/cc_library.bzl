"""The rule inside Bazel, at the path where rules_cc has it."""

cc_library = native.cc_library
