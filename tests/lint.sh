#!/usr/bin/env bash
# clang-tidy over all sources (.clang-tidy has the checks); takes about half an hour on 2 cores.
#
#   tests/lint.sh [files]
set -euo pipefail
cd "$(dirname "$0")/.."

apps/install_packages.sh --tests
cmake --preset release -Wno-dev >/dev/null
ninja -C build/release --quiet ringtail_schemas
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files '*.cc' ':!:*_fuzz.cc')
else
  files=("$@")
fi
# The compile commands are GCC's: clang does not know all of its warnings.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p build/release --extra-arg=-Wno-unknown-warning-option
