#!/usr/bin/env bash
# A network that does not fit: under a limit of memory that one rank alone exceeds, two stages train it.
#
#   tests/cluster/too_large.sh [LIMIT_MIB [CONFIG [arguments for train]]]       default: 850 alexnet
#
# Each rank gets a memory cgroup of its own with the limit. Expected: alone, `train` refuses before it
# begins, in a sentence with both numbers; as two stages it trains. Needs root, a memory cgroup that may
# be written, and a build in build/release.
set -euo pipefail
cd "$(dirname "$0")/../.."

limit_mib=${1:-850} config=${2:-alexnet}
shift $(($# < 2 ? $# : 2))
bin=$PWD/build/release/bin
folder=$(mktemp -d)
if [ -d /sys/fs/cgroup/memory ]; then
  groups=/sys/fs/cgroup/memory/ringtail-$$ limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
else
  groups=/sys/fs/cgroup/ringtail-$$ limit=memory.max peak=memory.peak
fi
clean_up() {
  for group in "$groups"/*/; do rmdir "$group" 2>/dev/null || true; done
  rmdir "$groups" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

mkdir "$groups"
[ -e "$groups/cgroup.subtree_control" ] && echo +memory >"$groups/cgroup.subtree_control"
for group in alone rank0 rank1; do
  mkdir "$groups/$group"
  echo $((limit_mib << 20)) >"$groups/$group/$limit"
done
"$bin/dogs_vs_cats" synthesize --out "$folder/images" --images 200 >/dev/null

# Runs in the group that its first argument, or its rank, names.
cat >"$folder/limited.sh" <<'END'
echo $$ >"$1/${2:-rank$RANK}/cgroup.procs"
shift 2
exec "$@"
END
train=("$bin/dogs_vs_cats" train --config "$config" --data "$folder/images" --no-report
  --set train.batch=32 --set train.accumulation=8 --set train.epochs=1 --set train.threads=1
  --set train.precision=FLOAT32 "$@")

echo "== alone, with a limit of $limit_mib MiB and the same micro-batches"
code=0
bash "$folder/limited.sh" "$groups" alone "${train[@]}" --output "$folder/alone" || code=$?
[ $code -ne 0 ] || { echo "too_large.sh: one rank fits into $limit_mib MiB; take a lower limit" >&2; exit 1; }

echo "== two stages, $limit_mib MiB each"
"$bin/ringtail_launch" -n 2 -- bash "$folder/limited.sh" "$groups" "" "${train[@]}" \
  --set dist.model_parallel.pipeline.stages=2 --output "$folder/two"
for rank in 0 1; do
  echo "rank $rank: at most $(($(cat "$groups/rank$rank/$peak") >> 20)) MiB, files and images included"
done
