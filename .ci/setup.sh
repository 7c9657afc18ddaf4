# Sourced by .ci/run, tests/run.sh and examples/run.sh: makes a Debian-like machine ready, or says what is missing.
#
#   setup_tools                 compilers, CMake, Ninja, emulator: with apt-get where missing
#   setup_python EXTRA          the virtual environment .venv with this project and the extra packages of pyproject.toml,
#                               first on PATH. AOT_MODEL_VENV=<folder>: one of your own, taken as it is.
#   setup_lowest                the virtual environment .venv-lowest with the lowest versions that pyproject.toml allows of what
#                               the compiler imports; AOT_MODEL_LOWEST is its interpreter then (tests/test_lowest_versions.py)
#   setup_build_systems         what only the tests of build rules and ecosystems need: Bazel, its linter, ccache, nginx as a
#                               cache server, a compiler and an emulator for RISC-V;
#                               they are skipped where it is missing
#   setup_checkers              what only the tests of the text of generated C need: clang-format, clang-tidy, cppcheck
#   setup_browser               what only the tests of pages in a browser need: Chromium
#   setup_compilers             what only the matrix of compilers and flags needs: more compilers, libraries for other
#                               processors, emulators; columns of the matrix are said to be missing where they are
#
# PYTHON=<file> chooses the interpreter of .venv, 3.10 or newer.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "== $*" >&2; }

# Runs apt-get as root; fails with a reason where there is no way to.
_apt_get() {
    if ! command -v apt-get >/dev/null; then
        say "there is no apt-get on this machine"
        return 1
    fi
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { say "apt-get needs root, and there is no sudo"; return 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get "$@" >&2  # RUNLEVEL: a server is not started
}

# Installs packages in one call, and each alone where that fails: one of them may not be in this distribution.
# The lists of packages are fetched once in a shell. The first argument says what is missing without a package.
_install() {
    local without=$1 package failed=0
    shift
    say "installing $*"
    if [ -z "${_lists_are_fetched:-}" ]; then
        _apt_get update || true
        _lists_are_fetched=1
    fi
    _apt_get install --yes --no-install-recommends "$@" && return 0
    for package in "$@"; do
        _apt_get install --yes --no-install-recommends "$package" ||
            { say "could not install $package: $without"; failed=1; }
    done
    return "$failed"
}

_has_newlib() {
    local file
    file=$(arm-none-eabi-gcc -print-file-name=libc_nano.a 2>/dev/null) && [ -f "$file" ]
}

_has_venv() { "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null; }

_missing_packages() {
    command -v gcc >/dev/null || echo gcc libc6-dev
    command -v g++ >/dev/null || echo g++
    command -v make >/dev/null || echo make
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || echo ninja-build
    command -v arm-none-eabi-gcc >/dev/null || echo gcc-arm-none-eabi
    _has_newlib || echo libnewlib-arm-none-eabi
    [ -f /usr/include/dnnl.h ] || echo libdnnl-dev
    command -v qemu-system-arm >/dev/null || echo qemu-system-arm
    command -v "${PYTHON:-python3}" >/dev/null || echo python3
    [ -n "${AOT_MODEL_VENV:-}" ] || _has_venv || echo python3-venv
}

setup_tools() {
    local missing
    read -r -a missing <<<"$(_missing_packages | tr '\n' ' ')"
    [ "${#missing[@]}" -gt 0 ] || return 0
    _install "what needs it is skipped" "${missing[@]}" || true
}

setup_build_systems() {
    local wanted=() tools=$root/build/node
    command -v bazel-4 >/dev/null || command -v bazel >/dev/null || wanted+=(bazel-bootstrap)
    command -v ccache >/dev/null || wanted+=(ccache)
    command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || wanted+=(nginx)
    command -v riscv64-unknown-elf-gcc >/dev/null || wanted+=(gcc-riscv64-unknown-elf)  # ESP-IDF's flags
    [ -d /usr/lib/picolibc/riscv64-unknown-elf ] || wanted+=(picolibc-riscv64-unknown-elf)
    command -v qemu-system-riscv32 >/dev/null || wanted+=(qemu-system-misc)
    [ "${#wanted[@]}" = 0 ] || _install "the tests with it are skipped" "${wanted[@]}" || true
    if ! command -v buildifier >/dev/null && command -v npm >/dev/null; then
        say "installing buildifier"
        npm install --silent --no-audit --no-fund --prefix "$tools" @bazel/buildifier@8.2.1 >&2 || say "could not install buildifier"
        export PATH="$tools/node_modules/.bin:$PATH"
    fi
}

setup_checkers() {
    local wanted=() tool
    for tool in clang-format clang-tidy cppcheck; do
        command -v "$tool" >/dev/null || wanted+=("$tool")
    done
    [ "${#wanted[@]}" -gt 0 ] || return 0
    _install "the tests with it are skipped" "${wanted[@]}" || true
}

setup_browser() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null && return 0
    _install "the tests of pages in a browser are skipped" chromium || true
}

setup_compilers() {
    local wanted=() version machine
    command -v gcc-12 >/dev/null || wanted+=(gcc-12)
    for version in 14 19 22; do
        command -v "clang-$version" >/dev/null || wanted+=("clang-$version")
    done
    # Not gcc-multilib, which conflicts with compilers for other processors: its parts.
    [ -f /usr/lib/gcc/x86_64-linux-gnu/12/32/libgcc.a ] || wanted+=(lib32gcc-12-dev)
    [ -f /usr/lib32/crt1.o ] || wanted+=(libc6-dev-i386)
    for machine in aarch64:arm64 riscv64:riscv64 s390x:s390x powerpc:powerpc m68k:m68k sparc64:sparc64; do
        command -v "${machine%:*}-linux-gnu-gcc" >/dev/null || wanted+=("gcc-${machine%:*}-linux-gnu" "libc6-dev-${machine#*:}-cross")
    done
    command -v qemu-aarch64 >/dev/null || wanted+=(qemu-user)
    [ "${#wanted[@]}" -gt 0 ] || return 0
    _install "columns of the matrix are missing" "${wanted[@]}" || true
}

setup_lowest() {
    local venv=$root/.venv-lowest pins stamp
    stamp=$venv/aot-model-installed
    read -r -a pins <<<"$(sed -n '/^dependencies = \[/,/^\]/s/^ *"\([a-z0-9-]*\)>=\([0-9.]*\)".*/\1==\2/p' "$root/pyproject.toml" | tr '\n' ' ')"
    if [ ! "$stamp" -nt "$root/pyproject.toml" ]; then
        say "installing ${pins[*]} into $venv"
        if ! { "${PYTHON:-python3}" -m venv "$venv" && "$venv/bin/python" -m pip install --quiet "${pins[@]}"; }; then
            say "could not install the lowest versions (they are older than this Python?): the test of them is skipped"
            return 0
        fi
        touch "$stamp"
    fi
    export AOT_MODEL_LOWEST="$venv/bin/python"
}

_cmake_is_new_enough() {
    local version
    version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
    [ -n "$version" ] && [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ]
}

setup_python() {
    local extra=$1 python=${PYTHON:-python3} venv=${AOT_MODEL_VENV:-$root/.venv} stamp
    if [ -n "${AOT_MODEL_VENV:-}" ]; then
        [ -x "$venv/bin/python" ] || { say "AOT_MODEL_VENV=$venv is not a virtual environment"; return 1; }
        export PYTHONPATH="$root/compiler${PYTHONPATH:+:$PYTHONPATH}" AotModel_DIR="$root/cmake"
    else
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
            { say "Python 3.10 or newer is needed; $python is $("$python" --version 2>&1). Set PYTHON=<file>."; return 1; }
        stamp=$venv/aot-model-installed$extra
        if [ ! "$stamp" -nt "$root/pyproject.toml" ]; then
            say "installing the Python packages into $venv"
            "$python" -m venv "$venv"
            "$venv/bin/python" -m pip install --quiet --editable "$root$extra"
            touch "$stamp"
        fi
    fi
    export VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH"
    # With the latter every process of a build compiles the compiler's 350 files of Python again: 0.4 s of 1.1 s each.
    unset PYTHONHOME PYTHONDONTWRITEBYTECODE
    if [ -z "${AOT_MODEL_VENV:-}" ]; then  # PyPI has these too
        _cmake_is_new_enough || python -m pip install --quiet 'cmake>=3.25'
        command -v ninja >/dev/null || python -m pip install --quiet ninja
    fi
}
