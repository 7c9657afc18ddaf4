"""What a WORKSPACE file (Bazel 4 to 7) calls; with bzlmod, MODULE.bazel does it."""

load(":python.bzl", "aot_model_python")

# buildifier: disable=unnamed-macro
def aot_model_register_toolchains():
    """Finds Python and registers the toolchains: the compiler's, and GNU Arm Embedded for the Cortex-M platforms."""
    aot_model_python(name = "aot_model_python")

    # str(Label()): Bazel 4 takes strings only, and reads "//x" as a label of the main repository.
    native.register_toolchains(str(Label("//bazel:all")), str(Label("//toolchains/bazel:all")))
