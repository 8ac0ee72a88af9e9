#!/usr/bin/env bash
# Runs the tests under sanitizers: ASan with UBSan over all of them, TSan over what uses threads of our own (oneDNN's
# OpenMP team is not instrumented, so TSan runs with one compute thread).
#
#   tests/sanitize.sh address|thread [arguments for ctest]
set -euo pipefail
cd "$(dirname "$0")/.."

apps/install_packages.sh --tests
case "${1:-}" in
  address) preset=asan; folders=(core layers optim data dist apps apps/launch) ;;
  thread) preset=tsan; folders=(core data dist); export OMP_NUM_THREADS=1 ;;
  *) echo "usage: tests/sanitize.sh address|thread [arguments for ctest]" >&2; exit 2 ;;
esac
shift
cmake --preset $preset -Wno-dev >/dev/null
targets=()
for folder in "${folders[@]}"; do
  while read -r source; do targets+=("${folder//\//_}_$(basename "$source" .cc)"); done \
    < <(find "tests/$folder" -mindepth 1 -path tests/apps/launch -prune -o -name '*_test.cc' -print)
done
ninja -C build/$preset --quiet "${targets[@]}"
export OMP_WAIT_POLICY=passive
ctest --test-dir build/$preset --output-on-failure --parallel "$(nproc)" \
  --label-regex "^($(IFS='|'; echo "${folders[*]//\//_}"))\$" "$@"
