#!/usr/bin/env bash
# Fuzzes the parsers of input (configs, safetensors, image headers, host lists) with clang's
# libFuzzer, ASan and UBSan.
#
#   tests/fuzz.sh [executions per target]     default 100000
set -euo pipefail
cd "$(dirname "$0")/.."

readonly runs=${1:-100000}
apps/install_packages.sh --tests
cmake --preset fuzz -Wno-dev >/dev/null
# tests/dist/membership/identity/host_list_fuzz.cc is dist_host_list_fuzz.
mapfile -t sources < <(find tests -name '*_fuzz.cc' | sort)
target_of() { echo "$(cut -d/ -f2 <<<"$1")_$(basename "$1" .cc)"; }
targets=()
for source in "${sources[@]}"; do targets+=("$(target_of "$source")"); done
ninja -C build/fuzz --quiet "${targets[@]}"
for source in "${sources[@]}"; do
  target=$(target_of "$source") name=$(basename "$source" .cc) folder=$(dirname "$source")
  seeds=$folder/corpus/$name
  found=$(mktemp -d)  # new inputs stay out of the tree
  options=(-runs="$runs" -rss_limit_mb=512 -timeout=1 -print_final_stats=1)
  if [ -f "$folder/$name.dict" ]; then options+=(-dict="$folder/$name.dict"); fi
  echo "== $target"
  "build/fuzz/tests/$target" "${options[@]}" "$found" "$seeds" 2>&1 | tail -n 8
  rm -rf "$found"
done
