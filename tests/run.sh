#!/usr/bin/env bash
# Runs every test: installs what is missing, builds all of Ringtail, checks formatting and words,
# and runs ctest, whose summary closes the output.
#
#   tests/run.sh [arguments for ctest]        e.g. tests/run.sh -R layers/
set -euo pipefail
cd "$(dirname "$0")/.."

apps/install_packages.sh --tests

quiet=(--quiet)
[ -t 1 ] && quiet=()  # a terminal gets one line that counts what is built
cmake --preset release -DRINGTAIL_WERROR=ON -Wno-dev >/dev/null
ninja -C build/release "${quiet[@]}"

lint=ok
tests/lint.sh --quick || lint=failed

# Several tests run at a time: a team that waits must not keep the others from the cores.
export OMP_WAIT_POLICY=passive
ctest --test-dir build/release --output-on-failure --parallel "$(nproc)" "$@"
[ $lint = ok ]
