#!/usr/bin/env bash
# Fuzzes what parses input (configs, safetensors, pictures' headers) with clang's libFuzzer, ASan and UBSan.
#
#   tests/fuzz.sh [executions per target]     default 100000
set -euo pipefail
cd "$(dirname "$0")/.."

readonly runs=${1:-100000}
apps/install_packages.sh --tests
cmake --preset fuzz -Wno-dev >/dev/null
targets=()
for source in tests/*/*_fuzz.cc; do
  folder=$(basename "$(dirname "$source")") name=$(basename "$source" .cc)
  targets+=("${folder}_$name")
done
ninja -C build/fuzz --quiet "${targets[@]}"
for source in tests/*/*_fuzz.cc; do
  folder=$(basename "$(dirname "$source")") name=$(basename "$source" .cc)
  seeds=tests/$folder/corpus/$name
  found=$(mktemp -d)  # new inputs stay out of the tree
  options=(-runs="$runs" -rss_limit_mb=512 -timeout=1 -print_final_stats=1)
  if [ -f "tests/$folder/$name.dict" ]; then options+=(-dict="tests/$folder/$name.dict"); fi
  echo "== ${folder}_$name"
  "build/fuzz/tests/${folder}_$name" "${options[@]}" "$found" "$seeds" 2>&1 | tail -n 8
  rm -rf "$found"
done
