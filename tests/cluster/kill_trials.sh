#!/usr/bin/env bash
# Four ranks of this machine train under ringtail_launch, and one is killed (SIGKILL) at a random
# moment; rank 0 in every fourth trial.
#
#   tests/cluster/kill_trials.sh [TRIALS [SEED]]        100 trials, about two seconds each
#
# Prints a line per trial: the killed rank and the times to the end of each survivor; then minimum,
# median and maximum of all times, and the number of survivors that named the right rank. Exit
# status 1 if a trial violates a rule:
#
#   every survivor ends within 2 s, not with success, after an error that names the killed rank
#   the launcher ends with 137 (128 + SIGKILL) and names the first rank that failed
#
# Needs python3, and no root.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/release/bin/dogs_vs_cats synthesize --out "$work/images" --images 200 --seed 1 >/dev/null

python3 - "$work" "${1:-100}" "${2:-1}" <<'PYTHON'
import os
import random
import re
import select
import signal
import statistics
import subprocess
import sys
import time

RANKS, LIMIT_S, PATIENCE_S = 4, 2, 60
work, trials, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)


def descendants(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as children:
            for child in map(int, children.read().split()):
                yield child
                yield from descendants(child)


def ranks_of(launcher):
    """The processes of all ranks, by rank: the launcher's descendants that have a RANK."""
    found = {}
    for pid in descendants(launcher.pid):
        with open(f"/proc/{pid}/environ", "rb") as environment:
            rank = re.search(rb"(?:^|\0)RANK=(\d+)", environment.read())
        if rank:
            found[int(rank[1])] = pid
    return found


def wait_for_training(launcher, metrics):
    """Until rank 0 has done a step, and then for a random while."""
    deadline = time.monotonic() + PATIENCE_S
    while not (os.path.exists(metrics) and os.path.getsize(metrics) > 0):
        if launcher.poll() is not None or time.monotonic() > deadline:
            sys.exit("the ranks do not train:\n" + open(work + "/stderr").read())
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.5))


def end_times(survivors):
    """Seconds from now to the end of each, by rank."""
    begin, poll, rank_of = time.monotonic(), select.poll(), {}
    for rank, descriptor in survivors.items():
        poll.register(descriptor, select.POLLIN)
        rank_of[descriptor] = rank
    times = {}
    while rank_of and time.monotonic() < begin + PATIENCE_S:
        for descriptor, _ in poll.poll(1000):
            times[rank_of.pop(descriptor)] = time.monotonic() - begin
            poll.unregister(descriptor)
            os.close(descriptor)
    return times


def trial(number):
    """What went wrong; how long the survivors lived; how many named the right rank."""
    victim = 0 if number % 4 == 0 else random.randrange(1, RANKS)
    output = f"{work}/run{number}"
    with open(work + "/stdout", "w") as out, open(work + "/stderr", "w") as err:
        launcher = subprocess.Popen(
            ["build/release/bin/ringtail_launch", "-n", str(RANKS), "--",
             "build/release/bin/dogs_vs_cats", "train", "--threads", "1",
             "--config", "tests/cluster/small.textproto", "--data", work + "/images",
             "--output", output, "--set", "train.epochs=1000000"], stdout=out, stderr=err)
    try:
        wait_for_training(launcher, output + "/metrics.jsonl")
        pids = ranks_of(launcher)
        survivors = {r: os.pidfd_open(pid) for r, pid in pids.items() if r != victim}
        os.kill(pids[victim], signal.SIGKILL)
        times = end_times(survivors)
        status = launcher.wait(PATIENCE_S)
    finally:
        launcher.terminate()
    said = open(work + "/stderr").read()
    wrong, named = [], 0
    for rank in range(RANKS):
        if rank == victim:
            continue
        if times.get(rank, PATIENCE_S) > LIMIT_S:
            wrong.append(f"rank {rank} ended after {times.get(rank, PATIENCE_S):.2f} s")
        if re.search(rf"^\[{rank}\] E .*rank {victim}\b", said, re.M):
            named += 1
        else:
            wrong.append(f"rank {rank} does not name rank {victim}")
    if status != 128 + signal.SIGKILL:
        wrong.append(f"the launcher ended with {status}")
    if not re.search(rf"rank {victim} .*SIGKILL: the first to fail", said):
        wrong.append("the launcher does not say who was the first to fail")
    shown = ", ".join(f"rank {r} {t:.2f} s" for r, t in sorted(times.items()))
    print(f"{number} of {trials}: rank {victim} killed; {shown}; {'; '.join(wrong) or 'right'}", flush=True)
    if wrong:
        print(said)
    return wrong, times.values(), named


failed, named, times = 0, 0, []
for number in range(1, trials + 1):
    wrong, lived, right = trial(number)
    failed += bool(wrong)
    named += right
    times += lived
print(f"{trials} trials (seed {seed}), {failed} wrong; {named} of {trials * (RANKS - 1)} survivors "
      f"named the right rank")
print(f"from the kill to a survivor's end: min {min(times):.3f} s, median "
      f"{statistics.median(times):.3f} s, max {max(times):.3f} s")
sys.exit(failed > 0)
PYTHON
