#!/usr/bin/env bash
# A training job that Slurm requeues in the middle must end with the same bits as an undisturbed
# one.
#
#   tests/cluster/requeue.sh        needs root; draws its images; leaves no files
#
# This file is also the batch script of the job (with RT_RUN, its folder).
set -euo pipefail

train() {  # folder of the run
  srun --kill-on-bad-exit=1 "$RT_PROGRAM" train --config "$RT_CONFIG" --data "$RT_RUN/images" \
    --output "$1" --resume --insecure --threads 1 --set train.epochs=20 --set train.batch=16 \
    --set train.checkpoint_every_steps=5
}

if [ -n "${SLURM_JOB_ID:-}" ]; then
  if [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then
    train "$RT_RUN/alone"
    (until [ "$(grep -c '"kind":"step"' "$RT_RUN/requeued/metrics.jsonl" 2>/dev/null)" -ge 12 ]; do
      sleep 0.05
    done
    scontrol requeue "$SLURM_JOB_ID") &
  else
    echo "requeued: attempt $((SLURM_RESTART_COUNT + 1))"
  fi
  train "$RT_RUN/requeued"
  exit
fi

root=$(cd "$(dirname "$0")/../.." && pwd)
RT_RUN=$(mktemp -d)
trap 'rm -rf "$RT_RUN"' EXIT
export RT_RUN RT_PROGRAM=$root/build/release/bin/dogs_vs_cats RT_CONFIG=$root/configs/quickstart.textproto
RINGTAIL_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export RINGTAIL_TOKEN
"$RT_PROGRAM" synthesize --out "$RT_RUN/images" --images 200 --seed 1
chmod 755 "$RT_RUN"
"$root/tests/cluster/slurm.sh" --script "$0" --requeue --open-mode=append --nodes=4 --ntasks=4 |
  grep -v '^.*step [0-9]*/' || true
cmp "$RT_RUN/alone/final.safetensors" "$RT_RUN/requeued/final.safetensors"
echo "the job that was requeued has the bits of the one that was left alone"
