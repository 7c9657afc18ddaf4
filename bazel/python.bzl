"""@aot_model_python: the interpreter that runs the compiler, and the versions of the packages that it has.

The interpreter is AOT_MODEL_PYTHON, else `python3` of PATH. Its version and those of the packages are in a file that is
an input of every action: another numpy gives another key in the caches.
"""

def _aot_model_python_impl(rctx):
    python = rctx.os.environ.get("AOT_MODEL_PYTHON") or rctx.which("python3")
    if not python:
        fail("aot_model: there is no python3 on PATH; say which to use with --repo_env=AOT_MODEL_PYTHON=<file>")
    compiler = rctx.path(rctx.attr._compiler).dirname
    answer = rctx.execute([python, "-B", compiler, "--version", "--json"])
    if answer.return_code:
        fail("aot_model: the compiler does not run with %s: %s" % (python, answer.stderr.strip()))
    facts = json.decode(answer.stdout)
    if facts["missing"]:
        missing = " ".join(facts["missing"])
        fail("aot_model: {python} lacks packages that the compiler needs: {missing}\nInstall them:\n    {install}\nor choose a Python that has them with --repo_env=AOT_MODEL_PYTHON=<file>".format(
            install = facts["install"],
            missing = missing,
            python = python,
        ))
    rctx.file("versions.json", json.encode({"python": facts["python"], "packages": facts["packages"]}))
    rctx.file("python", "#!/bin/sh\nexec '%s' \"$@\"\n" % python, executable = True)
    rctx.file("BUILD.bazel", "exports_files([\"python\", \"versions.json\"])\n")

aot_model_python = repository_rule(
    implementation = _aot_model_python_impl,
    attrs = {"_compiler": attr.label(default = Label("//compiler:aot_model/__main__.py"), allow_single_file = True)},
    environ = ["AOT_MODEL_PYTHON", "PATH"],
    configure = True,
    local = True,
)
