"""A Bazel workspace for the tests of the rules: a package for each test, one server for all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cmake_project import ROOT

BAZEL = next((found for name in ("bazel-4", "bazel") if (found := shutil.which(name))), None)
REASON = "needs Bazel (Debian: bazel-bootstrap has bazel-4) and cc"
LOAD = (
    'load("@aot_model//bazel:defs.bzl", "aot_model_arena", "aot_model_benchmark", '
    '"aot_model_for_platform", "aot_model_library", "aot_model_test")\n'
)
LOAD += 'load("@rules_cc//cc:cc_binary.bzl", "cc_binary")\n'
COMPAT = ("rules_cc", "rules_java", "remote_coverage_tools")
# Small machines: one action at a time, a server that goes away by itself.
STARTUP = (
    "--max_idle_secs=60",
    "--host_jvm_args=-Xmx512m",
    f"--bazelrc={ROOT / 'bazel/compat/bazel4.bazelrc'}",
)
FLAGS = (
    "--jobs=1",
    "--color=no",
    "--curses=no",
    "--noshow_progress",
    "--incompatible_strict_action_env",
    "--sandbox_default_allow_network=false",
)
# What Bazel 4 still takes and newer ones do not.
FLAGS += tuple(
    f"--incompatible_{name}" for name in (
        "always_check_depset_elements", "config_setting_private_default_visibility",
        "depset_for_libraries_to_link_getter", "disable_depset_items", "disable_target_provider_fields",
        "disallow_empty_glob", "disallow_legacy_py_provider", "disallow_struct_provider_syntax",
        "enforce_config_setting_visibility", "new_actions_api", "no_attr_license", "no_rule_outputs_param",
        "require_ctx_in_configure_features", "require_linker_input_cc_api", "restrict_string_escapes",
        "run_shell_command_string", "struct_has_no_methods", "use_platforms_repo_for_constraints",
        "visibility_private_attributes_at_definition"))  # fmt: skip


def compiled_models(log: str) -> set[str]:
    """Names of the models that the compiler was run for, in the log of a build with --subcommands."""
    return set(re.findall(r"\[action 'Compiling model (\w+) for ", log))


def compiled_objects(log: str) -> set[str]:
    """C files that were compiled."""
    return {Path(file).name for file in re.findall(r" -c (\S+\.c)\b", log)}


@dataclass(frozen=True)
class Workspace:
    """A workspace that uses the rules from another one, this source tree."""

    folder: Path
    user_root: Path

    def create(self) -> None:
        repositories = [("aot_model", ROOT), *((name, ROOT / "bazel/compat" / name) for name in COMPAT)]
        lines = [f'local_repository(name = "{name}", path = "{path}")\n' for name, path in repositories]
        lines += [
            'load("@aot_model//bazel:repositories.bzl", '
            '"aot_model_register_toolchains")\naot_model_register_toolchains()\n'
        ]
        self.write("WORKSPACE", 'workspace(name = "app")\n' + "".join(lines))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bazel(self, command: str, *arguments: str, ok: bool = True, python: str = sys.executable) -> str:
        """Output of Bazel, both streams; a status that is not the expected one fails the test."""
        assert BAZEL
        flags = (*FLAGS, f"--repo_env=AOT_MODEL_PYTHON={python}") if command in ("build", "test") else ()
        words = [BAZEL, f"--output_user_root={self.user_root}", *STARTUP, command, *flags, *arguments]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=os.environ | {"HOME": str(self.user_root)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, f"status {done.returncode} of {' '.join(words)}\n{output}"
        return output

    def build(self, *targets: str, ok: bool = True) -> str:
        return self.bazel("build", "--subcommands", *targets, ok=ok)

    def output(self, path: str) -> Path:
        return self.folder / "bazel-bin" / path
