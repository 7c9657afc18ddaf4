#!/usr/bin/env bash
# Sets everything up (see .ci/setup.sh) and runs all tests; arguments go to pytest: tests/run.sh -k cmake
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"

setup_tools
setup_python '[test]'
cd "$root"
python -m pytest -n "${AOT_MODEL_TEST_JOBS:-2}" --dist loadgroup "$@"
