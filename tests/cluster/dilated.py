#!/usr/bin/env python3
"""N hosts of k cores, joined by links of a given rate, on this one machine, in slow motion.

    host 0              host 1                    host N-1
    rank 0              rank 1        ...         rank N-1      each in a network namespace (netns.sh)
    k/D of a core       k/D of a core             k/D of a core   and in a cpu cgroup: what one does not use
      |                   |                         |             no other gets
      +--- RATE/D --------+---------- bridge -------+           C: the cores here; D = N k / 0.9 C: the dilation

A tenth of the cores is for the kernel's work and other programs, which would else take what ranks are to have.

Everything takes D times as long: computing, because each rank has 1/D of its cores; sending, because the links have 1/D of their
rate. So what overlaps with what stays as it is on the real hosts, and a time divided by D is the time there. The report is in
those undilated units.

What does not stay as it is:
  - latencies: those of this machine, not D times as long, plus the wait for the processor: a rank that has used up its share
    waits for the next period (--period-ms), as every message that it would have to pass on does. On the hosts a thread that a
    message wakes gets a core at once. Of eight ranks of 0.225 of a core a thread that was asleep wakes 3.6 ms late, of four
    2.1, of two 0.3, whatever the period between 2 and 18 ms (means beside a thread that computes all the time), which D = 35.6,
    17.8 and 8.9 makes 0.10, 0.12 and 0.03 ms. TCP's limits (200 ms until it sends a lost packet again) are not dilated either;
  - a core of k is 1/D of one of this machine's cores, and caches and memory are those of one machine: how well a program uses
    k cores is not measured, and what ranks take from each other's caches slows them down here alone. --apart shows how much:
    hosts that do not train together, in the same slow motion. A rank has one compute thread where its share is less than two
    cores;
  - work of the kernel for the network counts for the rank during which it happens to be done.

Before the program starts, Ringtail's own probe measures the links, without limits on the processor. If it does not find the
speed that tbf leaves to a program (1448 of the 1514 bytes that tbf counts for a packet are data: 0.956) within 3 %, three times
in a row, the run is refused: other load is in the way, or this machine cannot carry the rate. Then all ranks compute for a
second. If they do not get their share of the processor within 5 %, in the mean, the run is refused, too: other programs have
it, or --period-ms is too short. The kernel looks at a thread that computes once in a tick, 4 ms at 250 Hz: with a period of
1.1 ms a thread runs on for three more periods, loses what they would have given it, and stands still until it has paid that
back: two ranks get 0.59 of a core in place of 0.9, and with 4.5 ms four get 0.42 in place of 0.45.

    tests/cluster/dilated.sh -n 8 -k 8 -r 1gbit -- dogs_vs_cats train --data DIR --set train.epochs=1
    tests/cluster/dilated.sh -n 8 -k 8 -r 1gbit --slow 3:2 -- dogs_vs_cats train ...    host 3 has half of its speed
    tests/cluster/dilated.sh -n 8 -k 8 -r none --apart -- dogs_vs_cats train ...         eight hosts, each a run of its own
    tests/cluster/dilated.sh -n 4 -k 1 -r 1gbit -- python3 any_program.py               RANK, WORLD_SIZE, MASTER_ADDR, ...

dogs_vs_cats train gets --insecure, --threads and an --output unless they are given; dist.hang_timeout_s and dist.join_timeout_s
are multiplied by D, data.cache_mib is divided by N. The report is of the steps in rank 0's metrics.jsonl. dogs_vs_cats plan --measure
gets --insecure, --threads and these time limits; what it prints and saves is of the dilated hosts. Any other command finds
OMP_NUM_THREADS and GLOO_SOCKET_IFNAME, too, and reports its own, dilated, times. What rank 0 prints goes to standard error; of
the others, the last lines if the run fails.

--slow caps the quota of a host and does not let it sleep after each step, which would slow down its steps alone: a slow processor takes
longer to load images, encode, and pass on messages, too. Its link keeps its rate.

Needs root, iproute2, util-linux, a cpu cgroup that may be written, a build in build/release, and a quiet machine. Exit status:
that of the first rank that failed; 1 if the run was refused.
"""
import argparse
import json
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import rank_files
import share_check
from cpu_groups import CpuGroups
from dilated_report import as_text, report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT_IN = ROOT / 'configs/dogs_vs_cats.textproto'
RANK_SETTINGS = 'RINGTAIL_DILATED'  # in the environment of a rank: the file with its settings
UNITS = {'kbit': 1e3, 'mbit': 1e6, 'gbit': 1e9}
DATA_BYTES, COUNTED_BYTES = 1448, 1514  # of a packet: TCP's data; what tbf counts
PROBES, TOLERANCE, FIRST_PROBE_PORT = 3, 0.03, 29400
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
JOB = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')  # what makes a process one of several
SMALLEST_QUOTA_MS = 1  # the kernel's, as is the shortest period
PERIOD_MS, SHARE_TOLERANCE = 10, 0.05
SMALLEST_BURST, BURST_S = 16 << 10, 2e-3
FOR_RANKS = 0.9  # of the cores
MOST_BUSY = 0.1  # of the cores, by other programs; the kernel's work for the network counts as theirs in part
MOST_SECONDS = 86400  # of the fields of dist.proto
DILATED = {'dist.hang_timeout_s': 10, 'dist.join_timeout_s': 30}  # and their defaults
CACHE = ('data.cache_mib', 1024)


def die(message):
    sys.exit(f'dilated.sh: {message}')


# ---- what is asked for, in numbers ----

class Dilation:
    """How N hosts of k cores and their links are scaled down to this machine's cores."""

    def __init__(self, hosts, cores, rate, slow, here, period_ms=PERIOD_MS):
        self.factor = max(1.0, hosts * cores / (here * FOR_RANKS))
        self.share = cores / self.factor  # of a core of this machine
        self.shares = [self.share / slow.get(rank, 1) for rank in range(hosts)]
        self.period_ms = max(period_ms, SMALLEST_QUOTA_MS / min(self.shares))
        self.threads = max(1, int(self.share))
        self.bits_per_s = rate / self.factor if rate else None

    def bytes_per_s(self):
        """What the shaped links leave to a program."""
        return self.bits_per_s / 8 * DATA_BYTES / COUNTED_BYTES

    def burst(self):
        """Bytes that tbf lets through at once: some packets, or what comes while a timer is late."""
        return max(SMALLEST_BURST, round(self.bits_per_s / 8 * BURST_S))


def rate_of(text):
    """Bits per second; None: unlimited."""
    if text == 'none':
        return None
    match = re.fullmatch(r'(\d+(?:\.\d+)?)([kmg]bit)', text)
    if not match or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f'{text}: not a rate such as 100mbit, 2.5gbit, or none')
    return float(match[1]) * UNITS[match[2]]


def slow_of(text):
    match = re.fullmatch(r'(\d+):(\d+(?:\.\d+)?)', text)
    if not match or float(match[2]) < 1:
        raise argparse.ArgumentTypeError(f'{text}: not RANK:FACTOR with a factor of at least 1')
    return int(match[1]), float(match[2])


# ---- the command that ranks run ----

def is_training(command):
    return pathlib.Path(command[0]).name == 'dogs_vs_cats' and command[1:2] == ['train']


def is_measuring(command):
    return pathlib.Path(command[0]).name == 'dogs_vs_cats' and command[1:2] == ['plan'] and '--measure' in command


def given(command, flag):
    """Values of `flag`, as `flag value` or `flag=value`."""
    values = [after for word, after in zip(command, command[1:]) if word == flag]
    return values + [word.split('=', 1)[1] for word in command if word.startswith(flag + '=')]


def field(command, name, default):
    """The value of a config's field: --set, else that in the config's text, else the default."""
    for setting in reversed(given(command, '--set')):
        if setting.startswith(name + '='):
            return float(setting.split('=', 1)[1])
    for config in given(command, '--config') or [str(BUILT_IN)]:
        path = pathlib.Path(config) if '.' in config else ROOT / 'configs' / f'{config}.textproto'  # shipped ones by name
        found = re.search(rf'\b{name.split(".")[1]}:\s*([\d.eE+]+)', re.sub('#.*', '', path.read_text()))
        if found:
            return float(found[1])
    return default


def ringtail_command(command, dilation, hosts, together, output):
    """Of training or of measuring. Later --set count."""
    more = []
    if not given(command, '--threads'):
        more += ['--threads', dilation.threads]
    if is_training(command) and not given(command, '--output'):
        more += ['--output', output]
    if together and '--insecure' not in command and not given(command, '--tls-cert'):
        more += ['--insecure']
    for name, default in DILATED.items():
        more += ['--set', f'{name}={min(MOST_SECONDS, field(command, name, default) * dilation.factor):g}']
    if is_training(command):  # all ranks fill this machine's memory; what is measured is told of a host with a cache of its own
        more += ['--set', f'{CACHE[0]}={field(command, *CACHE) // hosts:.0f}']
    return [*command, *map(str, more)]


# ---- a rank ----

def probe_links(settings, rank, attempt):
    """Runs the probe of bench_allreduce; on rank 0 the measured bytes per second, or None."""
    hosts, array = settings['hosts'], 4
    environment = dict(os.environ, MASTER_PORT=str(FIRST_PROBE_PORT + attempt))
    result = subprocess.run(
        ['setpriv', '--pdeathsig', 'KILL', settings['bench'], '--insecure', '--algorithm', 'ring', '--bytes', f'{array}B',
         '--seconds', '0', '--report-lines'], env=environment, capture_output=True, text=True, check=False)
    if rank != 0:
        return None
    for line in result.stdout.splitlines():
        if '"ideal_ms"' in line:  # of a ring, without latencies
            return array * 2 * (hosts - 1) / hosts / (json.loads(line)['ideal_ms'] / 1000)
    print(result.stderr, file=sys.stderr)
    return None


def links_are_right(settings, rank):
    """All ranks; rank 0 decides, and tells the others by files."""
    for attempt in range(PROBES):
        told = pathlib.Path(settings['work']) / f'probe{attempt}'
        measured = probe_links(settings, rank, attempt)
        if rank == 0:
            rank_files.tell(told, json.dumps(measured))
        measured = json.loads(rank_files.heard(told))
        if measured is not None and abs(measured / settings['bytes_per_s'] - 1) <= TOLERANCE:
            return True
        if rank == 0:
            found = 'nothing' if measured is None else f'{measured / 1e6:.4g} MB/s'
            print(f'dilated.sh: the probe finds {found} between hosts where {settings["bytes_per_s"] / 1e6:.4g} are expected',
                  file=sys.stderr)
    return False


def share_is_right(settings, rank):
    """All ranks, each in its group."""
    measured = share_check.measure(pathlib.Path(settings['work']), rank, settings['hosts'])
    right = measured >= settings['share'] * (1 - SHARE_TOLERANCE)
    if rank == 0 and not right:
        print(f'dilated.sh: ranks get {measured:.3f} of a core where {settings["share"]:.3f} are expected', file=sys.stderr)
    return right


def be_rank(settings):
    rank, work = int(os.environ['RANK']), pathlib.Path(settings['work'])
    output = sys.stderr.fileno() if rank == 0 else os.open(work / f'rank{rank}.out', os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if settings['bytes_per_s'] and not links_are_right(settings, rank):
        sys.exit(1)
    (pathlib.Path(settings['groups'][rank]) / 'cgroup.procs').write_text(str(os.getpid()))
    if not share_is_right(settings, rank):
        sys.exit(1)
    command, environment = settings['command'], {**os.environ, **settings['environment']}
    if settings['apart']:
        environment = {name: value for name, value in environment.items() if name not in JOB}
        command = [word + f'-{rank}' if before == '--output' and rank > 0 else word for before, word in zip(['', *command], command)]
    os.execvpe(command[0], command, environment)


# ---- the run ----

class OtherLoad:
    """How many cores other programs have kept busy since it was made."""

    def __init__(self):
        self.began = self._now()

    @staticmethod
    def _now():
        ticks = [int(word) for word in pathlib.Path('/proc/stat').read_text().splitlines()[0].split()[1:9]]
        own = resource.getrusage(resource.RUSAGE_CHILDREN)  # those that have ended
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf('SC_CLK_TCK')  # not idle, nor waiting for a disk
        return time.monotonic(), busy, own.ru_utime + own.ru_stime

    def cores(self):
        seconds, busy, own = (after - before for after, before in zip(self._now(), self.began))
        return max(0.0, busy - own) / seconds


def parse():
    parser = argparse.ArgumentParser(prog='dilated.sh', usage='%(prog)s [options] -- PROGRAM [ARGUMENT]...', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-n', '--hosts', type=int, default=8, help='hosts, a rank on each (default 8)')
    parser.add_argument('-k', '--cores', type=int, default=8, help='cores of a host (default 8)')
    parser.add_argument('-r', '--rate', default='1gbit', help='of the link of a host, each way: 100mbit, 2.5gbit; none: unlimited '
                                                              '(default 1gbit)')
    parser.add_argument('--slow', type=slow_of, action='append', default=[], metavar='RANK:FACTOR',
                        help='this rank computes FACTOR times slower: its share of the processor is divided by it')
    parser.add_argument('--apart', action='store_true', help='dogs_vs_cats train: every rank has a run of its own; the report is of rank 0')
    parser.add_argument('--period-ms', type=float, default=PERIOD_MS, help='of the limit on the processor; longer where a share '
                                                                           f'of it would be less than 1 ms (default {PERIOD_MS})')
    parser.add_argument('--warm-up', type=int, default=5, help='first steps that do not count, nor do rounds with one of them '
                                                              '(default 5)')
    parser.add_argument('--programs', type=pathlib.Path, default=ROOT / 'build/release/bin', help='folder of dogs_vs_cats and '
                                                                                               'bench_allreduce')
    parser.add_argument('--json', action='store_true', help='the report as one line of JSON')
    parser.add_argument('command', nargs='+', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.slow = dict(args.slow)
    try:
        args.bits_per_s = rate_of(args.rate)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    if not 1 <= args.hosts <= 200 or args.cores < 1 or args.warm_up < 0 or not 1 <= args.period_ms <= 1000:
        parser.error('at least one host (at most 200) of one core, and a period of 1 to 1000 ms')
    if args.apart and not is_training(args.command):
        parser.error('--apart is for dogs_vs_cats train')
    if any(rank >= args.hosts for rank in args.slow):
        parser.error('--slow names a rank that is not there')
    return args


def run(args, dilation, groups, work):
    """Exit status of the run."""
    command, ours = args.command, is_training(args.command) or is_measuring(args.command)
    if ours:
        command = ringtail_command(command, dilation, args.hosts, args.hosts > 1 and not args.apart, work / 'run')
    if shutil.which(args.programs / command[0]):  # a name without a folder is looked for there first
        command = [str(args.programs / command[0]), *command[1:]]
    threads = {} if ours else {'OMP_NUM_THREADS': str(dilation.threads)}
    probed = args.hosts > 1 and dilation.bits_per_s is not None
    settings = {'work': str(work), 'apart': args.apart, 'hosts': args.hosts, 'groups': [str(folder) for folder in groups.ranks],
                'share': statistics.mean(min(1, share) for share in dilation.shares),  # of the one thread of share_check
                'bench': str(args.programs / 'bench_allreduce'), 'bytes_per_s': dilation.bytes_per_s() if probed else None,
                'command': command, 'environment': {'GLOO_SOCKET_IFNAME': 'eth0', **threads}}
    (work / 'settings').write_text(json.dumps(settings))
    shaped = ['-r', 'none'] if dilation.bits_per_s is None else [
        '-r', f'{dilation.bits_per_s:.0f}bit', '-b', str(dilation.burst())]
    process = subprocess.Popen([HERE / 'netns.sh', '-n', str(args.hosts), *shaped, '--', sys.executable, __file__],
                               env=dict(os.environ, **{RANK_SETTINGS: str(work / 'settings')}), stdout=sys.stderr)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()  # it removes what it has made
            process.wait()


def tell_of_failure(work):
    for path in sorted(work.glob('rank*.out')):
        lines = path.read_text(errors='replace').splitlines()[-5:]
        print(f'{path.stem}:', *lines, sep='\n  ', file=sys.stderr)


def stop(number, _):
    """Once begun, what was made is removed."""
    for each in STOP_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    args = parse()
    if os.geteuid() != 0:
        die('network namespaces and cgroups need root')
    here = len(os.sched_getaffinity(0))
    dilation = Dilation(args.hosts, args.cores, args.bits_per_s, args.slow, here, args.period_ms)
    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    others = OtherLoad()
    work, groups = pathlib.Path(tempfile.mkdtemp(prefix='ringtail-dilated-')), None
    try:
        try:
            groups = CpuGroups(dilation.shares, dilation.period_ms)
        except OSError as error:
            die(error)
        status = run(args, dilation, groups, work)
        if status != 0:
            tell_of_failure(work)
            return status
        busy = others.cores()
        if busy > MOST_BUSY * here:
            print(f'dilated.sh: other programs have kept {busy:.2f} of {here} cores busy: ranks may have been too slow',
                  file=sys.stderr)
        probes = sorted(work.glob('probe?'))
        result = {'hosts': args.hosts, 'cores': args.cores, 'rate': args.rate, 'dilation': dilation.factor,
                  'share': dilation.share, 'busy_by_others': round(busy, 2), 'slow': args.slow, 'apart': args.apart,
                  'link_mbit': dilation.bits_per_s and dilation.bits_per_s / 1e6,
                  'probe_mb_per_s': json.loads(probes[-1].read_text()) / 1e6 if probes else None,
                  'expected_mb_per_s': dilation.bytes_per_s() / 1e6 if probes else None}
        if is_training(args.command):
            output = given(args.command, '--output')
            folder = pathlib.Path(output[-1]) if output else work / 'run'
            result.update(report(folder / 'metrics.jsonl', dilation, args.warm_up))
        print(json.dumps(result) if args.json else as_text(result))
        return 0
    finally:
        if groups:
            groups.remove()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == '__main__':
    if RANK_SETTINGS in os.environ:
        be_rank(json.loads(pathlib.Path(os.environ.pop(RANK_SETTINGS)).read_text()))
    sys.exit(main())
