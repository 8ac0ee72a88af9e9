#!/usr/bin/env bash
# Four ranks of this machine train asynchronously, and one of those after rank 0 is killed (SIGKILL) at
# a random moment.
#
#   tests/cluster/kill_asynchronous.sh workers [TRIALS [SEED [RULE]]]   rank 0 alone serves
#   tests/cluster/kill_asynchronous.sh servers [TRIALS [SEED [RULE]]]   all serve, with replicas
#
# 100 trials, some seconds each. Prints a line per trial: the killed rank, and how long the longest
# pause between two steps of rank 0 was afterwards; then minimum, median and maximum. Exit status 1 if
# a trial violates a rule:
#
#   the job ends with 0, says which rank was lost, and every row of the run was accepted once;
#   of a server, that its replica serves its weights
#
# Needs python3, and no root.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/release/bin/dogs_vs_cats synthesize --out "$work/images" --images 400 --seed 1 >/dev/null

python3 - "$work" "${1:?workers or servers}" "${2:-100}" "${3:-1}" "${4:-ASYNCHRONOUS}" <<'PYTHON'
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

RANKS, PATIENCE_S, EPOCHS = 4, 120, 40
work, whom, trials, seed, rule = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
SETTINGS = {"workers": ["dist.asynchronous.servers=1"], "servers": ["dist.asynchronous.replicas=1"]}[whom]
random.seed(seed)


def descendants(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as children:
            for child in map(int, children.read().split()):
                yield child
                yield from descendants(child)


def process_of(launcher, rank):
    for pid in descendants(launcher.pid):
        with open(f"/proc/{pid}/environ", "rb") as environment:
            if re.search(rb"(?:^|\0)RANK=%d\0" % rank, environment.read()):
                return pid
    sys.exit(f"rank {rank} is not there")


def updates(path):
    with open(path) as lines:
        return [line for line in map(json.loads, lines) if line["kind"] == "update"]


def watch(launcher, metrics, since):
    """The longest time in which rank 0 wrote no line, while it trained."""
    longest, last, size = 0, since, os.path.getsize(metrics)
    while launcher.poll() is None and time.monotonic() < since + PATIENCE_S:
        time.sleep(0.005)
        now = os.path.getsize(metrics)
        if now != size:
            longest, last, size = max(longest, time.monotonic() - last), time.monotonic(), now
    return longest


def trial(number):
    victim = random.randrange(1, RANKS)
    metrics = f"{work}/run{number}/metrics.jsonl"
    with open(work + "/said", "w") as said:
        launcher = subprocess.Popen(
            ["build/release/bin/ringtail_launch", "-n", str(RANKS), "--no-kill", "--",
             "build/release/bin/dogs_vs_cats", "train", "--threads", "1",
             "--config", "tests/cluster/small.textproto", "--data", work + "/images",
             "--output", f"{work}/run{number}", "--set", f"train.epochs={EPOCHS}",
             "--set", f"dist.asynchronous.rule={rule}", *[word for s in SETTINGS for word in ("--set", s)]],
            stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not (os.path.exists(metrics) and os.path.getsize(metrics) > 0):
            if launcher.poll() is not None or time.monotonic() > deadline:
                sys.exit("the ranks do not train:\n" + open(work + "/said").read())
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.5))
        os.kill(process_of(launcher, victim), signal.SIGKILL)
        longest = watch(launcher, metrics, time.monotonic())
        status = launcher.wait(PATIENCE_S)
    finally:
        launcher.terminate()
    said, wrong = open(work + "/said").read(), []
    if status != 0:
        wrong.append(f"the launcher ended with {status}")
    if f"rank {victim} (" not in said:
        wrong.append(f"no one names rank {victim}")
    if whom == "servers" and "from its copy" not in said:
        wrong.append("no replica says that it serves")
    lines = updates(metrics) if status == 0 else []
    accepted = sum(line["batch"] or 0 for line in lines)
    if status == 0 and lines[-1]["epoch"] < EPOCHS - 1:
        wrong.append(f"the run ended at epoch {lines[-1]['epoch']}")
    print(f"{number} of {trials}: rank {victim} killed; {accepted} images accepted; longest pause "
          f"{longest:.3f} s; {'; '.join(wrong) or 'right'}", flush=True)
    if wrong:
        print(said)
    return wrong, longest, accepted


failed, pauses, images = 0, [], set()
for number in range(1, trials + 1):
    wrong, longest, accepted = trial(number)
    failed += bool(wrong)
    pauses.append(longest)
    images.add(accepted)
if len(images) > 1:
    failed += 1
    print(f"not every run has accepted as many images: {sorted(images)}")
print(f"{trials} trials (seed {seed}, {rule}), {failed} wrong; longest pause of rank 0 after the kill: "
      f"min {min(pauses):.3f} s, median {statistics.median(pauses):.3f} s, max {max(pauses):.3f} s")
sys.exit(failed > 0)
PYTHON
