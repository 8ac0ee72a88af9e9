#!/usr/bin/env python3
"""Four ranks train for half an hour while their run is disturbed in every way that a healthy run must survive.

Each rank has a network namespace (netns.sh), 100 Mbit/s, and the built-in config; the run's folder is a small file system of its
own. One after the other, until the run has ended:

    stop         a rank is stopped (SIGSTOP) for 1 to 5 s
    neighbours   two busy processes for 8 s
    slow link    the link of one rank has 4 Mbit/s for 8 s
    full disk    the file system of the run has no room for 6 s
    Ctrl-C       after three rounds of these, SIGINT to one rank; all end with a checkpoint, and the same command continues
                 with --resume

At the end final.safetensors has the bytes of an undisturbed run, and memory, descriptors and threads of processes that ran for
some minutes in the last phase of image size (a larger size takes more memory, and the cache of images is full by then), and
/dev/shm, have not grown. Exit status 1 if not.

    sudo tests/cluster/soak.py [--minutes 30] [--programs build/release/bin] [--seed 1]

Needs root, and the Debian packages iproute2 and util-linux. The undisturbed run takes half of the time in addition.
"""
import argparse
import filecmp
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE.parents[1] / 'configs' / 'dogs_vs_cats.textproto'
LAST_PHASE = max(float(epoch) for epoch in re.findall(r'from_epoch: (\S+)', CONFIG.read_text()))
RANKS, IMAGES, RATE, SLOW = 4, 400, '100mbit', '4mbit'
CACHE_MIB = 16  # full within seconds
SAMPLES_PER_S = 2
# A rank may hold what peers on a slow link have sent before it was asked for: 16 MiB each
# (kNetworkCreditBytes).
SLACK_MIB = (RANKS - 1) * 16
DISK_MIB = 192
INTERRUPTED = 128 + signal.SIGINT


def say(text):
    print(time.strftime('%H:%M:%S'), text, flush=True)


class Job:
    """One start of the run: netns.sh and its ranks."""

    def __init__(self, args, data, output, epochs, log):
        train = [args.programs / 'dogs_vs_cats', 'train', '--insecure', '--data', data, '--output', output, '--threads', 1,
                 '--resume', '--config', CONFIG,
                 '--set', f'train.epochs={epochs}', '--set', 'train.batch=16', '--set', 'train.accumulation=1',
                 '--set', f'data.cache_mib={CACHE_MIB}',
                 # Runs that are compared begin apart, and "auto" may choose another order of sums
                 # for each.
                 '--set', 'dist.algorithm=ring']
        command = [HERE / 'netns.sh', '-n', RANKS, '-r', RATE, '--', 'setpriv', '--pdeathsig', 'KILL', *train]
        self.output = str(output)
        self.settled = False  # in the last phase, for an epoch
        self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)
        self.samples = {}  # by process: (seconds, RSS in MiB, descriptors, threads)

    def running(self):
        return self.process.poll() is None

    def ranks(self):
        """Processes of the ranks."""
        found = []
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                words = (folder / 'cmdline').read_bytes().split(b'\0')
            except OSError:
                continue
            if words[0].endswith(b'dogs_vs_cats') and self.output.encode() in words:
                found.append(int(folder.name))
        return sorted(found)

    def namespaces(self):
        prefix = f'rt{self.process.pid}'
        return [f'{prefix}-{rank}' for rank in range(RANKS)], f'{prefix}sw'

    def epoch(self):
        try:
            lines = (pathlib.Path(self.output) / 'metrics.jsonl').read_text(encoding='utf-8').splitlines()
            return json.loads(lines[-1]).get('epoch', 0)
        except (OSError, IndexError, ValueError):
            return 0  # nothing, or half a line, is written yet

    def sample(self):
        self.settled = self.settled or self.epoch() >= LAST_PHASE + 1
        if not self.settled:
            return
        for pid in self.ranks():
            try:
                status = pathlib.Path(f'/proc/{pid}/status').read_text()
                fields = dict(line.split(':', 1) for line in status.splitlines() if ':' in line)
                self.samples.setdefault(pid, []).append(
                    (time.monotonic(), int(fields['VmRSS'].split()[0]) / 1024, len(os.listdir(f'/proc/{pid}/fd')),
                     int(fields['Threads'])))
            except (OSError, KeyError):
                continue  # it has just ended

    def judged(self):
        """Processes that lived long enough to say."""
        return {pid: samples for pid, samples in self.samples.items() if len(samples) >= 120 * SAMPLES_PER_S}

    def growth(self):
        """What grew from the second quarter of a process's life to the last; a line for each that did."""
        lines = []
        for pid, samples in self.judged().items():
            quarter = len(samples) // 4
            for index, (name, slack) in enumerate((('MiB', SLACK_MIB), ('descriptors', 4), ('threads', 4)), start=1):
                early = statistics.median(s[index] for s in samples[quarter:2 * quarter])
                late = statistics.median(s[index] for s in samples[-quarter:])
                if late > early * 1.05 + slack:
                    lines.append(f'process {pid}: {early:.0f} -> {late:.0f} {name}')
        return lines

    def wait(self, seconds):
        """Samples until then, or until the job ends."""
        end = time.monotonic() + seconds
        while self.running() and time.monotonic() < end:
            self.sample()
            time.sleep(1 / SAMPLES_PER_S)


def stop_a_rank(job, disk, chance):
    ranks = job.ranks()
    if not ranks:
        return 'no rank to stop'
    pid, seconds = chance.choice(ranks), chance.uniform(1, 5)
    os.kill(pid, signal.SIGSTOP)
    job.wait(seconds)
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return f'process {pid} was stopped, and is gone'
    return f'process {pid} was stopped for {seconds:.1f} s'


def busy_neighbours(job, disk, chance):
    neighbours = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(2)]
    job.wait(8)
    for neighbour in neighbours:
        neighbour.kill()
        neighbour.wait()
    return 'two busy neighbours for 8 s'


def slow_link(job, disk, chance):
    rank = chance.randrange(RANKS)
    nodes, switch = job.namespaces()

    def set_rate(rate):
        for namespace, device in ((nodes[rank], 'eth0'), (switch, f'p{rank}')):
            subprocess.run(['tc', '-n', namespace, 'qdisc', 'change', 'dev', device, 'root', 'handle', '1:', 'tbf', 'rate',
                            rate, 'burst', '128kb', 'latency', '50ms'], check=False, stderr=subprocess.DEVNULL)

    set_rate(SLOW)
    job.wait(8)
    set_rate(RATE)
    return f'rank {rank} had {SLOW} for 8 s'


def full_disk(job, disk, chance):
    filler = disk / 'filler'
    try:
        with open(filler, 'wb') as file:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
    except OSError:
        pass  # no room is left, as wanted
    job.wait(6)
    filler.unlink()
    return 'no room on the disk for 6 s'


def interrupt(job, disk, chance):
    ranks = job.ranks()
    if not ranks:
        return 'no rank to interrupt'
    os.kill(chance.choice(ranks), signal.SIGINT)
    job.wait(120)
    return 'Ctrl-C'


def images_per_second(output):
    rates = []
    for line in open(output / 'metrics.jsonl'):
        fields = json.loads(line)
        if fields.get('kind') == 'step':
            rates.append(fields['batch'] / fields['step_ms'] * 1000 if 'batch' in fields else fields['images_per_s'])
    return statistics.median(rates)


def undisturbed(args, data, output, epochs, log):
    job = Job(args, data, output, epochs, log)
    job.wait(24 * 3600)
    if job.process.returncode != 0:
        sys.exit(f'the undisturbed run ended with {job.process.returncode}; see {log.name}')
    return job


def disturbed(args, data, disk, epochs, log):
    """What happened how often, what grew, of how many processes; exits if the run ends otherwise than it must."""
    chance, counts, problems, judged = random.Random(args.seed), {}, [], 0
    disturbances = 3 * [stop_a_rank, busy_neighbours, slow_link, full_disk] + [interrupt]
    job, turn = Job(args, data, disk / 'run', epochs, log), 0
    while True:
        job.wait(chance.uniform(8, 14))
        interrupted = False
        if job.running():
            disturb = disturbances[turn % len(disturbances)]
            turn += 1
            say(disturb(job, disk, chance))
            counts[disturb.__name__] = counts.get(disturb.__name__, 0) + 1
            interrupted = disturb is interrupt
            if not interrupted:
                continue
        job.wait(5)
        problems += job.growth()
        judged += len(job.judged())
        status = job.process.wait()
        if status == 0:
            return counts, problems, judged
        if not interrupted or status != INTERRUPTED:
            sys.exit(f'FAILED: the run ended with {status}; see {log.name}')
        job = Job(args, data, disk / 'run', epochs, log)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--programs', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit('soak.py: network namespaces and a file system of its own need root')
    folder = pathlib.Path(tempfile.mkdtemp(prefix='ringtail-soak-'))
    data, disk = folder / 'images', folder / 'disk'
    disk.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_MIB}m', 'none', disk], check=True)
    try:
        with open(folder / 'log', 'w', encoding='utf-8') as log:
            subprocess.run([args.programs / 'dogs_vs_cats', 'synthesize', '--out', data, '--images', str(IMAGES)], check=True,
                           stdout=log)
            undisturbed(args, data, folder / 'trial', 1, log)
            speed = images_per_second(folder / 'trial')
            # Half of the time is lost to what happens to the run.
            epochs = max(2, round(args.minutes * 60 * 0.5 * speed / IMAGES))  # mostly of the last phase
            say(f'{speed:.0f} images/s undisturbed: {epochs} epochs')
            began = time.monotonic()
            job = undisturbed(args, data, folder / 'undisturbed', epochs, log)
            problems, judged = job.growth(), len(job.judged())
            say(f'undisturbed: {(time.monotonic() - began) / 60:.1f} minutes')
            shared_before, began = set(os.listdir('/dev/shm')), time.monotonic()
            counts, grown, more = disturbed(args, data, disk, epochs, log)
            problems += grown
            judged += more
            say(f'disturbed: {(time.monotonic() - began) / 60:.1f} minutes; {counts}')
        if judged < RANKS:
            problems.append(f'only {judged} processes lived for 2 minutes in the last phase; let it take more --minutes')
        if set(os.listdir('/dev/shm')) - shared_before:
            problems.append('left in /dev/shm: ' + ', '.join(set(os.listdir('/dev/shm')) - shared_before))
        if not filecmp.cmp(folder / 'undisturbed/final.safetensors', disk / 'run/final.safetensors', shallow=False):
            problems.append('final.safetensors has other bytes than that of the undisturbed run')
        for problem in problems:
            say('FAILED: ' + problem)
        say('the log is ' + str(folder / 'log') if problems else
            f'the same bytes; none of {judged} processes grew, nothing is left')
        return 1 if problems else 0
    finally:
        subprocess.run(['umount', disk], check=False)


if __name__ == '__main__':
    sys.exit(main())
