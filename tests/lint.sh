#!/usr/bin/env bash
# Formatting (clang-format), words that are not to come back (tests/words.txt), and clang-tidy
# (.clang-tidy has the checks).
#
#   tests/lint.sh               everything: half an hour on 2 cores
#   tests/lint.sh --quick       formatting and words alone: seconds
#   tests/lint.sh --changed     clang-tidy only over the 20 sources that were changed last
#   tests/lint.sh FILE...       clang-tidy over these
set -uo pipefail
cd "$(dirname "$0")/.."

readonly most_changed=20
failed=0

apps/install_packages.sh --tests || exit 1
git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror || {
  echo "formatting: run clang-format -i on the files above"
  failed=1
}
# One extended regular expression a line; lines that begin with # say why.
if git grep -nIE -f <(grep -v '^#' tests/words.txt) -- . ':!tests/words.txt'; then
  echo "words: the lines above have words of tests/words.txt, which says what to write instead"
  failed=1
fi

case "${1:-}" in
  --quick) exit $failed ;;
  --changed)
    # Newest first, each once, those that are still there.
    mapfile -t files < <(git log --pretty=format: --name-only -n 60 -- '*.cc' ':!:*_fuzz.cc' | awk 'NF && !seen[$0]++' |
      while read -r file; do [ -f "$file" ] && echo "$file"; done | head -n $most_changed)
    ;;
  "") mapfile -t files < <(git ls-files '*.cc' ':!:*_fuzz.cc') ;;
  *) files=("$@") ;;
esac
[ ${#files[@]} -gt 0 ] || exit $failed
# Each source alone, with the headers that are made of schemas, and without the one that GCC has precompiled.
cmake -S . -B build/lint -G Ninja -DCMAKE_BUILD_TYPE=Release -DRINGTAIL_UNITY=OFF -Wno-dev >/dev/null || exit 1
ninja -C build/lint -t targets all | sed -n 's/^\(generated.*\.pb\.h\): .*/\1/p' | xargs ninja -C build/lint --quiet || exit 1
sed -i 's# -Winvalid-pch -include [^ ]*/cmake_pch\.hxx##' build/lint/compile_commands.json
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy --quiet -p build/lint || failed=1
exit $failed
