#!/usr/bin/python3
"""Allreduce of Ringtail beside PyTorch's Gloo, ranks on this machine.

For each number of ranks: alternating runs (Gloo, Ringtail as shipped, Ringtail over gRPC, Gloo, ...), so that a
noisy machine disturbs all alike; each run is a fresh set of processes and measures every size. A time is the median
over the repetitions of the slowest rank's; the table has the median of the rounds and, as ratio, the median of the
rounds' ratios. CPU is the processor time of one rank, all of its threads, per GB of the array.

  apt-get install python3-torch
  tests/compare/allreduce_with_gloo.py [--world 2,4] [--bytes 1KiB,64KiB,1MiB,25MiB,256MiB] [--rounds 3]
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRANSPORTS = {'auto': [], 'grpc': ['--shared-memory', 'false']}
UNITS = {'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30, 'kB': 10**3, 'MB': 10**6, 'GB': 10**9}
WARMUPS, FEWEST_RUNS, MOST_RUNS = 3, 5, 10_000


def parse_bytes(text):
    for unit, factor in UNITS.items():
        if text.endswith(unit):
            return int(float(text[:-len(unit)]) * factor)
    return int(text)


def gloo_rank(args):
    """One rank of Gloo; rank 0 prints a JSON list with one entry per size."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    dist.init_process_group('gloo')
    results = []
    for size in args.bytes:
        array = torch.empty(size // 4)
        own, cpu, start = [], 0.0, time.perf_counter()
        for run in range(-WARMUPS, MOST_RUNS):
            if run == 0:
                start = time.perf_counter()
            more = torch.tensor([float(run < FEWEST_RUNS or time.perf_counter() - start < args.seconds)])
            dist.broadcast(more, 0)
            if more.item() == 0:
                break
            array.fill_(rank + 1)
            dist.barrier()
            run_cpu, run_start = time.process_time(), time.perf_counter()
            dist.all_reduce(array)
            seconds, run_cpu = time.perf_counter() - run_start, time.process_time() - run_cpu
            if array[-1].item() != world * (world + 1) / 2:
                sys.exit('Gloo: the sum is wrong')
            if run >= 0:
                own.append(seconds)
                cpu += run_cpu
        slowest = torch.tensor(own, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        mean_cpu = torch.tensor([cpu / len(own) / world], dtype=torch.float64)
        dist.all_reduce(mean_cpu)
        results.append((slowest.median().item() * 1e3, mean_cpu.item() / (size / 1e9)))
    if rank == 0:
        print(json.dumps(results))
    dist.barrier()


def free_port():
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def run_gloo(world, args):
    environment = dict(os.environ, WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()),
                       GLOO_SOCKET_IFNAME='lo', OMP_NUM_THREADS='1')
    command = ['/usr/bin/python3', os.path.abspath(__file__), '--gloo-rank', '--seconds', str(args.seconds), '--bytes',
               ','.join(map(str, args.bytes))]
    ranks = [subprocess.Popen(command, env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE, text=True)
             for rank in range(world)]
    try:
        outputs = [rank.communicate(timeout=600)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    if any(rank.returncode != 0 for rank in ranks):
        sys.exit('a rank of Gloo failed')
    return json.loads(outputs[0])


def run_ringtail(world, transport, args):
    run = subprocess.run([args.program, '--world', str(world), '--algorithm', args.algorithm, *TRANSPORTS[transport],
                          '--bytes', ','.join(map(str, args.bytes)), '--seconds', str(args.seconds), '--json'],
                         stdout=subprocess.PIPE, text=True, check=True)
    return [(row['time_ms'], row['cpu_s_per_gb']) for row in json.loads(run.stdout)['results']]


def describe(size):
    for unit in ('GiB', 'MiB', 'KiB'):
        if size % UNITS[unit] == 0:
            return f'{size // UNITS[unit]} {unit}'
    return f'{size} B'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/bench_allreduce'))
    parser.add_argument('--world', default='2,4')
    parser.add_argument('--bytes', default='1KiB,8KiB,64KiB,512KiB,1MiB,4MiB,25MiB,100MiB,256MiB')
    parser.add_argument('--algorithm', default='auto', help='of Ringtail')
    parser.add_argument('--transports', default=','.join(TRANSPORTS), help='of Ringtail; auto: as shipped')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=1, help='per size and run')
    parser.add_argument('--gloo-rank', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.bytes = [parse_bytes(text) for text in args.bytes.split(',')]
    if args.gloo_rank:
        return gloo_rank(args)
    transports = args.transports.split(',')
    print('| ranks | bytes | Gloo ms |' + ''.join(f' {t} ms | Gloo / {t} |' for t in transports) +
          ' Gloo CPU s/GB |' + ''.join(f' {t} CPU s/GB |' for t in transports))
    print('|---' * (4 + 3 * len(transports)) + '|', flush=True)
    for world in map(int, args.world.split(',')):
        rounds = [[run_gloo(world, args)] + [run_ringtail(world, t, args) for t in transports]
                  for _ in range(args.rounds)]
        for i, size in enumerate(args.bytes):
            middle = lambda side, number: statistics.median(r[side][i][number] for r in rounds)
            cells = [str(world), describe(size), f'{middle(0, 0):.3g}']
            for side in range(1, len(transports) + 1):
                ratio = statistics.median(r[0][i][0] / r[side][i][0] for r in rounds)
                cells += [f'{middle(side, 0):.3g}', f'{ratio:.2f}']
            cells += [f'{middle(side, 1):.2g}' for side in range(len(transports) + 1)]
            print('| ' + ' | '.join(cells) + ' |', flush=True)


if __name__ == '__main__':
    main()
