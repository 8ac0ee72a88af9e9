#!/usr/bin/env bash
# Many ranks, each in a network namespace of its own (netns.sh) behind a slow link, train with
# compressed gradients, evaluate and write checkpoints. No rank may be declared dead because it
# waits for bytes: every run must end with status 0.
#
#   tests/cluster/slow_links.sh [-n RANKS] [-r RATES] [-s SCHEMES] [-e EPOCHS] [-i IMAGES] [-t]
#                               [-- ARGUMENT...]
#
#   -n 16             ranks                       -s "hylo top_k"   dist.compression.scheme
#   -r "1 10 30"      Mbit/s of each link         -e 3, -i 3000     epochs, drawn images
#   -t                afterwards, in a run of the first scheme at the first rate, rank 1 is stopped
#                     (SIGSTOP) after its first step: the others must name it within
#                     hang_timeout_s + 5 s
#   ARGUMENT          further arguments of `dogs_vs_cats train`
#
# The network is the default one (2.8 million parameters); at 1 Mbit/s, where its first broadcast
# alone takes a quarter of an hour, that of configs/quickstart.textproto (308 thousand). Prints a
# line per run with its time; exit status 1 if a run fails. Needs root, the Debian package procps and a build in build/release;
# 16 ranks need 10 GB of memory.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
program=${RT_PROGRAM:-$root/build/release/bin/dogs_vs_cats}
ranks=16 rates="1 10 30" schemes="hylo top_k" epochs=3 images=3000 stop=false

# ---- a rank (inside netns.sh) ----
if [ -n "${RT_SLOW_RUN:-}" ]; then
  mkdir -p "$RT_SLOW_RUN/rank$RANK"
  exec 2>"$RT_SLOW_RUN/rank$RANK.err" >"$RT_SLOW_RUN/rank$RANK.out"
  exec "$program" train "$@" --output "$RT_SLOW_RUN/rank$RANK"
fi

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
while getopts n:r:s:e:i:th option; do
  case $option in
  n) ranks=$OPTARG ;;
  r) rates=$OPTARG ;;
  s) schemes=$OPTARG ;;
  e) epochs=$OPTARG ;;
  i) images=$OPTARG ;;
  t) stop=true ;;
  h) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
  esac
done
shift $((OPTIND - 1))

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" synthesize --out "$work/images" --images "$images" --seed 1 >/dev/null

scheme_of() {  # NAME
  case $1 in
  top_k) echo 'dist.compression.scheme.top_k={density:0.001}' ;;
  *) echo "dist.compression.scheme.$1={}" ;;
  esac
}

train_arguments() {  # SCHEME RATE
  printf '%s\n' --data "$work/images" --insecure --threads 1 --set train.epochs="$epochs" \
    --set train.batch=32 --set train.accumulation=1 --set data.cache_mib=64 --set "$(scheme_of "$1")"
  [ "${2%%.*}" -gt 1 ] || printf '%s\n' --config "$root/configs/quickstart.textproto"
}

wrong=0
complain() {
  wrong=$((wrong + 1))
  echo "WRONG: $*"
  grep -hE '^(E|W) |error|has sent nothing|cut off' "$run"/*.err | sort | uniq -c | sort -rn | head -20 || true
}

for rate in $rates; do
  for scheme in $schemes; do
    run=$work/$scheme-$rate start=$SECONDS status=0
    mkdir -p "$run"
    mapfile -t arguments < <(train_arguments "$scheme" "$rate")
    RT_SLOW_RUN=$run "$root/tests/cluster/netns.sh" -n "$ranks" -r "${rate}mbit" -- \
      "$0" "${arguments[@]}" "$@" || status=$?
    [ $status -eq 0 ] || complain "$scheme at $rate Mbit/s ends with $status"
    if [ $status -eq 0 ] && [ ! -s "$run/rank0/final.safetensors" ]; then complain "no network was written"; fi
    echo "$ranks ranks, $rate Mbit/s, $scheme: status $status after $((SECONDS - start)) s," \
      "$(grep -c '"kind":"step"' "$run/rank0/metrics.jsonl" || true) steps," \
      "$(grep -c '"kind":"evaluation"' "$run/rank0/metrics.jsonl" || true) evaluations," \
      "$(find "$run/rank0/checkpoints" -name 'step-????????.safetensors' 2>/dev/null | wc -l) checkpoints kept"
  done
done

if $stop; then
  rate=${rates%% *} scheme=${schemes%% *}
  run=$work/stopped
  mkdir -p "$run"
  mapfile -t arguments < <(train_arguments "$scheme" "$rate")
  RT_SLOW_RUN=$run "$root/tests/cluster/netns.sh" -n "$ranks" -r "${rate}mbit" -- \
    "$0" "${arguments[@]}" "$@" 2>/dev/null &
  job=$!
  until grep -q '"kind":"step"' "$run/rank0/metrics.jsonl" 2>/dev/null; do
    kill -0 $job 2>/dev/null || { echo "the run ended before it could be stopped" && exit 1; }
    sleep 0.1
  done
  victim=$(pgrep -f -- "train .*--output $run/rank1\$")
  kill -STOP "$victim"
  stopped=$(date +%s.%N)
  until grep -q "rank 1 .*has sent nothing" "$run"/rank[02-9]*.err 2>/dev/null; do
    kill -0 $job 2>/dev/null || break
    sleep 0.1
  done
  seconds=$(awk -v a="$stopped" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  kill -CONT "$victim" 2>/dev/null || true
  wait $job || true
  grep -q "rank 1 .*has sent nothing" "$run"/rank[02-9]*.err || complain "no rank names the stopped one"
  awk -v s="$seconds" 'BEGIN { exit !(s <= 15) }' || complain "it took $seconds s to name the stopped rank"
  echo "$ranks ranks, $rate Mbit/s, $scheme, rank 1 stopped: named after $seconds s"
fi
echo "wrong: $wrong"
[ $wrong -eq 0 ]
