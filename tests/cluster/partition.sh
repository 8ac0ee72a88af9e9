#!/usr/bin/env bash
# Four ranks train in four network namespaces (netns.sh), and the network fails in the middle.
#
#   cut    a random rank loses all its connections, without an error on any socket:
#
#            rank 0    rank 1    rank 2    rank 3
#              |         |         |         |         rank 2 is disconnected from the bridge:
#              p0 ------ p1 --     p2     -- p3        nothing passes, the link stays up, TCP retries
#                     bridge               bridge
#
#          The others name it within the limit + 1 s and end with 75 (a peer is lost) after writing
#          a checkpoint; it ends within the limit + 3 s with a sentence of its own and status 1, and
#          writes no checkpoint.
#   heal   the same for 2 s with a limit of 5 s: no error, and the bits of an undisturbed run.
#   loss   every rank loses 1, 5, 20 % of the packets sent to it: no error, the same bits; slower.
#
#   tests/cluster/partition.sh [cut|heal|loss]... [-t TRIALS] [-s FIELD=VALUE]...
#
#   -t TRIALS         of each fault; default: 20 cuts, 10 heals, 2 of each loss
#   -s FIELD=VALUE    of the config, as `dogs_vs_cats train --set`; -s dist.local.period=8: a rank is
#                     cut off in the middle of a round of its own steps
#
# Takes about eight minutes. Prints a line per trial, then counts and times; exit status 1 if a
# trial fails. Needs root, and installs nftables, for loss, if it is missing.
#
# Ranks run this file, too (with RT_RUN, their folder).
set -euo pipefail

readonly cut_limit_s=3 heal_limit_s=5 heal_after_s=2

# ---- a rank -------------------------------------------------------------------------------------

now() { echo "$EPOCHREALTIME"; }

stamped() { while IFS= read -r line; do printf '%s %s\n' "$EPOCHREALTIME" "$line"; done; }

# Some time after step 20, as rank 0 counts them; false if training ends before.
middle_of_training() {
  local -r metrics=$RT_RUN/rank0/metrics.jsonl
  until [ -f "$metrics" ] && [ "$(grep -c '"kind":"step"' "$metrics")" -ge 20 ]; do
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.02
  done
  sleep "0.$(printf %03d $((RANDOM % 500)))"
}

pull_plug() {  # process that trains
  middle_of_training "$1" || return 0
  ip -n "$NETNS_SWITCH" link set "p$RANK" nomaster
  now >"$RT_RUN/cut"
  [ "$RT_FAULT" = heal ] || return 0
  sleep $heal_after_s
  ip -n "$NETNS_SWITCH" link set "p$RANK" master bridge
}

# Packets of Ethernet's size, so that one that is lost is one.
lose_packets() {  # percent
  ip link set eth0 gso_max_segs 1 gro_max_size 1500 2>/dev/null || ip link set eth0 gso_max_segs 1
  nft add table inet loss
  nft 'add chain inet loss in { type filter hook input priority 0; }'
  nft "add rule inet loss in iifname eth0 numgen random mod 100 < $1 counter drop"
}

if [ -n "${RT_RUN:-}" ]; then
  own=$RT_RUN/rank$RANK
  mkdir -p "$own"
  mkfifo "$own/stderr"
  stamped <"$own/stderr" >"$own/err" &
  stamper=$!
  [ "$RT_FAULT" != loss ] || [ "$RT_PERCENT" = 0 ] || lose_packets "$RT_PERCENT"
  settings=()
  while read -r field; do [ -z "$field" ] || settings+=(--set "$field"); done <<<"$RT_SETTINGS"
  setpriv --pdeathsig KILL "$RT_PROGRAM" train --config "$RT_CONFIG" --data "$RT_IMAGES" \
    --output "$own" --insecure --threads 1 --set train.epochs="$RT_EPOCHS" \
    --set dist.hang_timeout_s="$RT_LIMIT" "${settings[@]}" >"$own/out" 2>"$own/stderr" &
  training=$!
  if [ "$RANK" = "$RT_RANK" ]; then pull_plug $training & fi
  status=0
  wait $training || status=$?
  echo "$EPOCHREALTIME $status" >"$own/end"
  wait $stamper
  exit $status
fi

# ---- the trials ---------------------------------------------------------------------------------

root=$(cd "$(dirname "$0")/../.." && pwd)
trials= faults=() settings=
while [ $# -gt 0 ]; do
  case $1 in
  cut | heal | loss) faults+=("$1") && shift ;;
  -t) trials=$2 && shift 2 ;;
  -s) settings+=$2$'\n' && shift 2 ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2 && exit 2 ;;
  esac
done
[ ${#faults[@]} -gt 0 ] || faults=(cut heal loss)
if [[ " ${faults[*]} " == *" loss "* ]] && ! command -v nft >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nftables >/dev/null
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export RT_PROGRAM=$root/build/release/bin/dogs_vs_cats RT_CONFIG=$root/tests/cluster/small.textproto
export RT_IMAGES=$work/images RT_FAULT RT_RANK RT_PERCENT=0 RT_EPOCHS RT_LIMIT RT_SETTINGS=$settings
"$RT_PROGRAM" synthesize --out "$RT_IMAGES" --images 200 --seed 1 >/dev/null
wrong=0 trial_is=

# One job; its files are in "$work/$1". Sets `status`.
job() {  # NAME FAULT RANK
  status=0 RT_FAULT=$2 RT_RANK=$3
  # Of the ranks' own stderr there are copies; the rest is bash's, which tells whom it has killed.
  RT_RUN=$work/$1 "$root/tests/cluster/netns.sh" -n 4 -r 1gbit -- "$0" 2>"$work/stderr" || status=$?
  [ -f "$work/$1/rank0/end" ] || { cat "$work/stderr" && exit 1; } >&2
}

complain() {
  wrong=$((wrong + 1)) trial_is=WRONG
  echo "    $1"
}

seconds_after_cut() { awk -v cut="$(cat "$run/cut")" -v at="$1" 'BEGIN { printf "%.2f", at - cut }'; }

at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }  # A B

# When rank $1 first said what matches $2, in seconds after the cut; nothing if it did not.
said_after() {
  local line
  line=$(grep -m1 -E "$2" "$run/rank$1/err") || return 0
  seconds_after_cut "${line%% *}"
}

checkpoints() { find "$run/rank$1" -name 'step-*' | wc -l; }

check_cut_rank() {
  local after ended end_status
  after=$(said_after "$1" "rank $1 .*this rank, lost all the others at once")
  read -r ended end_status <"$run/rank$1/end"
  ended=$(seconds_after_cut "$ended")
  echo "$ended" >>"$work/isolated"
  [ -n "$after" ] || complain "rank $1 was cut off and does not say so: $(tail -1 "$run/rank$1/err")"
  at_most "$ended" $((cut_limit_s + 3)) || complain "rank $1, cut off, ends after $ended s"
  [ "$end_status" -eq 1 ] || complain "rank $1, cut off, ends with status $end_status"
  [ "$(checkpoints "$1")" -eq 0 ] || complain "rank $1, cut off, has written a checkpoint"
}

check_other_rank() {  # RANK, which is cut off
  local after ended end_status
  after=$(said_after "$1" "rank $2 \\([^)]*\\) has sent nothing")
  read -r ended end_status <"$run/rank$1/end"
  echo "${after:-999}" >>"$work/named"
  echo "$(seconds_after_cut "$ended")" >>"$work/ended"
  if [ -z "$after" ]; then
    complain "rank $1 does not name rank $2: $(tail -1 "$run/rank$1/err")"
  else
    at_most "$after" $((cut_limit_s + 1)) || complain "rank $1 names rank $2 after $after s"
  fi
  if grep -qE "rank [^$2] \\([^)]*\\) has sent nothing" "$run/rank$1/err"; then
    complain "rank $1 blames more than rank $2"
  fi
  [ "$end_status" -eq 75 ] || complain "rank $1 ends with status $end_status"
}

summary() {  # FILE: "0.10 / 0.20 / 0.30 s"
  grep . "$1" | sort -n | awk '{ v[NR] = $1 } END { printf "%.2f / %.2f / %.2f s", v[1], v[int((NR + 1) / 2)], v[NR] }'
}

cut_trials() {
  local trial rank other saved
  RT_LIMIT=$cut_limit_s RT_EPOCHS=1000000
  : >"$work/named" >"$work/ended" >"$work/isolated"
  for ((trial = 1; trial <= $1; ++trial)); do
    rank=$((RANDOM % 4)) trial_is=right run=$work/cut$trial saved=0
    job "cut$trial" cut $rank
    if [ ! -f "$run/cut" ]; then complain "the ranks ended before the cut" && continue; fi
    check_cut_rank $rank
    for other in 0 1 2 3; do
      [ $other -ne $rank ] || continue
      check_other_rank $other $rank
      saved=$((saved + $(checkpoints $other)))
    done
    [ $saved -gt 0 ] || complain "no rank has written a checkpoint"
    echo "cut $trial of $1: rank $rank: $trial_is ($saved checkpoints of the others)"
  done
  echo "cut: limit $cut_limit_s s; after the cut (min / median / max)"
  echo "  the others name the rank after  $(summary "$work/named")"
  echo "  and end after                   $(summary "$work/ended")"
  echo "  the rank itself ends after      $(summary "$work/isolated")"
}

undisturbed() {
  run=$work/alone trial_is=right
  rm -rf "$run"
  job alone none -1
  [ $status -eq 0 ] || complain "the undisturbed run fails: $(cat "$run"/rank*/err)"
}

check_same_bits() {
  [ $status -eq 0 ] || complain "status $status: $(cat "$run"/rank*/err)"
  cmp -s "$work/alone/rank0/final.safetensors" "$run/rank0/final.safetensors" ||
    complain "the weights are not those of the undisturbed run"
}

heal_trials() {
  local trial rank
  RT_LIMIT=$heal_limit_s RT_EPOCHS=50
  undisturbed
  for ((trial = 1; trial <= $1; ++trial)); do
    rank=$((RANDOM % 4)) trial_is=right run=$work/heal$trial
    job "heal$trial" heal $rank
    [ -f "$run/cut" ] || complain "the run ended before the cut"
    check_same_bits
    echo "heal $trial of $1: rank $rank: $trial_is"
  done
}

# Of a run: seconds from the first to the last step.
training_seconds() {
  python3 - "$1/rank0/metrics.jsonl" <<'PYTHON'
import json
import sys

steps = [json.loads(line) for line in open(sys.argv[1])]
print(f"{sum(s['step_ms'] for s in steps if s['kind'] == 'step') / 1000:.2f}")
PYTHON
}

loss_trials() {
  local percent trial alone_s
  RT_LIMIT=10 RT_EPOCHS=5
  undisturbed
  alone_s=$(training_seconds "$run")
  for percent in 1 5 20; do
    for ((trial = 1; trial <= $1; ++trial)); do
      trial_is=right run=$work/loss$percent-$trial RT_PERCENT=$percent
      job "loss$percent-$trial" loss -1
      check_same_bits
      echo "loss $percent %, $trial of $1: $trial_is; $(training_seconds "$run") s instead of $alone_s s"
    done
  done
  RT_PERCENT=0
}

for fault in "${faults[@]}"; do
  case $fault in
  cut) cut_trials "${trials:-20}" ;;
  heal) heal_trials "${trials:-10}" ;;
  loss) loss_trials "${trials:-2}" ;;
  esac
done
echo "wrong: $wrong"
[ $wrong -eq 0 ]
