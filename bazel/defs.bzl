"""What BUILD files load: load("@aot_model//bazel:defs.bzl", "aot_model_library", ...)."""

load(":arena.bzl", _aot_model_arena = "aot_model_arena")
load(":info.bzl", _AotModelInfo = "AotModelInfo")
load(":library.bzl", _aot_model_library = "aot_model_library", _aot_model_sources = "aot_model_sources")
load(":platform.bzl", _aot_model_for_platform = "aot_model_for_platform")
load(":test.bzl", _aot_model_benchmark = "aot_model_benchmark", _aot_model_run_test = "aot_model_run_test", _aot_model_test = "aot_model_test")
load(":toolchain.bzl", _aot_model_toolchain = "aot_model_toolchain")

AotModelInfo = _AotModelInfo
aot_model_arena = _aot_model_arena
aot_model_benchmark = _aot_model_benchmark
aot_model_for_platform = _aot_model_for_platform
aot_model_library = _aot_model_library
aot_model_run_test = _aot_model_run_test
aot_model_sources = _aot_model_sources
aot_model_test = _aot_model_test
aot_model_toolchain = _aot_model_toolchain
