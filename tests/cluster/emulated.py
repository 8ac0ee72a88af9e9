#!/usr/bin/env python3
"""Real ranks beside the emulator: the same config, images and network, in numbers and in time.

    tests/cluster/emulated.py --data ~/dogs-vs-cats/train [--cases rounds,overlapped] [-n 4] [-r 1gbit]

    dilated.sh -n 4 -k 1 -r none: emulate --measure   what a step costs on a capped core beside three others: before the
                                                      real ranks and after them, since the machine's speed may change
    dilated.sh -n 4 -k 1 -r 1gbit: bench_allreduce    what a message and a byte cost the processor of a rank
    dilated.sh -n 4 -k 1 -r 1gbit: train              four real ranks, in slow motion
    emulate, compute and network as those             four virtual workers

Each case prints: the largest difference of a step's loss, of an evaluation's accuracy and of a weight of the final network, relative
to the largest; images/s of both after warm-up, and by term what a step takes. Numbers of an uncompressed case differ by rounding,
which training multiplies: what is equal is tests/apps/emulator/real_ranks_test.cc's subject. Images/s more than --tolerance apart
end it with exit status 1. Of asynchronous cases: how many gradients are how late, of both, and the total variation between them,
which --tolerance is for then.

Needs what dilated.sh needs (root, cgroups, a quiet machine). A case takes a minute.
"""
import argparse
import array
import bisect
import itertools
import json
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / 'apps/studies'))
import local_rounds_cells  # noqa: E402

CONFIG = ROOT / 'apps/studies/sixteen_epochs.textproto'
SHARE_OF_DATA = 1448 / 1514  # of the link's rate: dilated.py
WARM_UP = 12  # steps, of which the first round measures what its codecs cost
EARLY = 8  # steps in which rounding has not been multiplied yet
PROCESSOR_TIME = ('encode_ms', 'decode_ms')  # what emulate --measure measures so: slow motion makes it no longer
PERIOD = 3
# The guard on min_cosine would shorten rounds at a step that differs by chance between two runs of one config.
CODED_ROUNDS = [f'dist.local.period={PERIOD}', 'dist.local.outer_momentum=0.3']  # without a guard
ROUNDS = CODED_ROUNDS + ['dist.local.min_cosine=-1']
SERVER = ['dist.asynchronous.rule=ASYNCHRONOUS', 'dist.asynchronous.servers=1', 'optim.sgd.momentum=0', 'optim.learning_rate=0.1']
SMALL = ROOT / 'apps/studies/asynchronous.textproto'  # of cases with servers: not the links, but workers decide who is late
EVERY_STEP = ('synchronous', 'top_k')  # cases of which all steps are of all ranks
CASES = {
    'synchronous': [],
    'top_k': [f'dist.compression.{field}' for field in local_rounds_cells.TOP_K_1],
    'rounds': ROUNDS + ['dist.local.overlap=false'],
    'overlapped': ROUNDS,
    'linear8': CODED_ROUNDS + ['dist.local.compression.scheme.linear8={}', 'dist.local.compression.fall_back=false',
                               'dist.local.compression.route=SHARDED'],
    'post_local': ROUNDS + ['dist.local.start_epoch=1'],
    'asynchronous': SERVER + ['dist.asynchronous.overlap=false'],
    'asynchronous_overlap': SERVER,
}


def run(program):
    done = subprocess.run([str(word) for word in program], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f'{" ".join(map(str, program))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}')
    return done.stdout, done.stderr


def lines_of(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines()]


def tensors_of(path):
    """By name; all are f32."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop('__metadata__', None)
    return {name: array.array('f', data[8 + size + entry['data_offsets'][0]:8 + size + entry['data_offsets'][1]])
            for name, entry in header.items()}


def has_servers(case):
    return SERVER[0] in CASES[case]


def arguments(args, case):
    epochs = args.steps / (args.images // (args.batch * args.ranks))
    small = has_servers(case)
    size = [] if small else ['data.image_size=64', 'train.phase=', 'train.evaluation_image_size=64']
    overrides = size + [f'train.batch={args.batch}', 'train.accumulation=1', f'train.epochs={epochs}', 'train.evaluate_every_epochs=1e6',
                 'train.checkpoint_every_steps=1000000', 'data.split.train.first=0', f'data.split.train.last={args.images // 2 - 1}',
                 f'data.split.validation.first={args.images // 2}', f'data.split.validation.last={args.images // 2 + 99}'] + CASES[case]
    return ['--config', SMALL if small else CONFIG, '--data', args.data] + [word for field in overrides + args.set for word in ('--set', field)]


def dilated(args, rate, program):
    return run([HERE / 'dilated.sh', '-n', args.ranks, '-k', 1, '-r', rate, '--warm-up', WARM_UP, '--programs', args.programs,
                '--json', '--', *program])


def measure(args, case):
    """What a step costs, as a script; measured on capped cores, all ranks at once."""
    _, said = dilated(args, 'none', ['dogs_vs_cats', 'emulate', '--measure', '--threads', 1, '--script-set', f'workers={args.ranks}',
                                     *arguments(args, case)])
    fields = {}
    for line in said.splitlines():
        if line.startswith('compute {'):
            words = line.replace('{', ' ').replace('}', ' ').split()[1:]
            fields = {name.rstrip(':'): float(value) for name, value in zip(words[::2], words[1::2])}
    if not fields:
        raise SystemExit(f'emulate --measure does not say what a step costs:\n{said}')
    return fields


def on_a_host(measured, factor):
    """The mean of what was measured at several times, on a core that is not slowed down. Coding was measured in processor time already."""
    mean = {name: statistics.mean(fields[name] for fields in measured) for name in measured[0]}
    return {name: value / factor if 'ms' in name and name not in PROCESSOR_TIME else value for name, value in mean.items()}


def probe(args):
    """Processor time of what a host of one core sends, as a run finds it at its start: a script's fields. (Cores are as fast in slow
    motion; there are fewer.)"""
    _, said = dilated(args, args.rate, ['bench_allreduce', '--insecure', '--algorithm', 'ring', '--bytes', '4B', '--seconds', '0', '--report-lines'])
    found = re.search(r'([\d.e+-]+) ns of a processor per byte and ([\d.e+-]+) us per message', said)
    if not found:
        raise SystemExit(f'bench_allreduce does not say what messages cost:\n{said}')
    return {'cpu_ns_per_byte': float(found[1]), 'cpu_us_per_message': float(found[2])}


def emulate(args, case, compute, folder):
    script = [f'workers={args.ranks}', f'between_hosts.mbit_per_s={args.mbit * SHARE_OF_DATA}',
              *[f'between_hosts.{name}={value}' for name, value in args.sending.items()]] + [
        f'compute.{name}={value}' for name, value in compute.items()]
    summary, _ = run([args.programs / 'dogs_vs_cats', 'emulate', '--threads', 1, '--json', '--out', folder / 'emulated.jsonl',
                      '--network', folder / 'emulated', *arguments(args, case),
                      *[word for field in script for word in ('--script-set', field)]])
    return lines_of(folder / 'emulated.jsonl'), json.loads(summary)


def losses(steps):
    """By step: the mean of the workers, weighted by their images."""
    by_step = {}
    for step in steps:
        by_step.setdefault(step['step'], []).append(step)
    return {number: sum(step['loss'] * step['batch'] for step in same) / sum(step['batch'] for step in same)
            for number, same in by_step.items()}


def speed(args, ends):
    """Images/s between the first and the last of [(step, seconds)]."""
    (first, begin), (last, end) = ends[0], ends[-1]
    return (last - first) * args.batch * args.ranks / (end - begin)


def compare_numbers(case, real, emulated, folder):
    # A real rank's lines are its own in rounds, and of all ranks in synchronous steps: those before the first round.
    rounds = [line['step'] for line in emulated if line['kind'] == 'round']
    together = {'post_local': min(rounds, default=0) - PERIOD}
    own = [line for line in emulated if line['kind'] == 'step' and
           (case in EVERY_STEP or line['worker'] == 0 or line['step'] <= together.get(case, 0))]
    ours, theirs = losses(own), losses([line for line in real if line['kind'] == 'step'])
    same = [abs(ours[step] - theirs[step]) for step in sorted(theirs) if step in ours]
    accuracy = [[line['accuracy'] for line in lines if line['kind'] == 'evaluation'][-1] for lines in (real, emulated)]
    weights, of_emulation = tensors_of(folder / 'real/final.safetensors'), tensors_of(folder / 'emulated')
    apart = max(max((abs(a - b) for a, b in zip(values, of_emulation[name])), default=0) / max(map(abs, values))
                for name, values in weights.items() if any(values))
    print(f'  losses of {EARLY} steps at most {max(same[:EARLY]):.2g} apart, of {len(same)} {max(same):.2g}; accuracy {accuracy[0]:.4f}, emulated {accuracy[1]:.4f}; '
          f'weights at most {apart:.2g} of a tensor\'s largest apart')


def compare_times(args, case, measured, emulated, compute):
    """Whether images/s agree. The virtual time of a synchronous step's end, or of a round's."""
    kind = 'round' if any(line['kind'] == 'round' for line in emulated) else 'step'
    ends = sorted({(line['step'], line['virtual_s']) for line in emulated
                   if line['kind'] == kind and (kind == 'round' or line['worker'] == 0) and line['step'] >= WARM_UP})
    ours = speed(args, ends)
    print(f'  images/s: {measured["images_per_s"]:.1f} measured, {ours:.1f} emulated: {100 * (ours / measured["images_per_s"] - 1):+.1f} %')
    own = [line for line in emulated if line['kind'] == 'step' and line['worker'] == 0 and line['step'] > WARM_UP]
    print(f'  forward and backward of a step: {measured["forward_ms"] + measured["backward_ms"]:.1f} ms measured, '
          f'{compute["ms_per_image"] * args.batch:.1f} emulated; with the update {statistics.mean(s["compute_ms"] for s in own):.1f}; '
          f'waiting {statistics.mean(s["blocked_ms"] for s in own):.1f} a step')
    exchanges = [line['exchange_ms'] for line in emulated if line['kind'] == 'round']
    if exchanges:
        print(f'  an exchange: {statistics.median(exchanges):.1f} ms emulated; rank 0 waited {measured["exposed_share"]:.1%} of the time')
    elif case in EVERY_STEP:
        print(f'  exposed communication: {measured["exposed_comm_ms"]:.1f} ms measured')
    return abs(ours / measured['images_per_s'] - 1) <= args.tolerance


def variation(measured, emulated):
    """The total variation between two histograms."""
    pairs = list(itertools.zip_longest(measured, emulated, fillvalue=0))
    ours, theirs = (sum(column) for column in zip(*pairs))
    return sum(abs(a / ours - b / theirs) for a, b in pairs) / 2


def passes_of(trace, rank):
    """[(begin, seconds)] of forward and backward together, after warm-up."""
    spans = sorted((event['ts'], event['dur']) for event in trace
                   if event.get('ph') == 'X' and event['pid'] == rank and event['name'] in ('forward', 'backward'))
    return [(begin, (forward + backward) / 1e6) for (begin, forward), (_, backward) in zip(spans[::2], spans[1::2])][WARM_UP:]


def passes_in(path, ranks):
    """What a pass takes in this very run, s, and how much a rank's varies beside those of the others at the same time: what slows all
    of them, as on a machine that others use, makes none late."""
    trace = json.loads(path.read_text(encoding='utf-8'))['traceEvents']
    passes = {rank: passes_of(trace, rank) for rank in range(ranks)}
    usual = {rank: statistics.median(seconds for _, seconds in passes[rank]) for rank in passes}
    relative = []
    for rank, own in passes.items():
        for begin, seconds in own:
            near = []
            for other in passes.keys() - {rank}:
                at = bisect.bisect(passes[other], (begin,))
                near += [then / usual[other] for _, then in passes[other][max(at - 1, 0):at + 1]]
            relative.append(seconds / usual[rank] / statistics.mean(near))
    # What they are compared with varies, too: the mean of two steps of each of the others.
    jitter = statistics.stdev(relative) / statistics.mean(relative) / (1 + 1 / (2 * (ranks - 1))) ** 0.5
    # All of the time: limits on the processor are in many short passes or in few, but in their mean.
    return statistics.mean(seconds for own in passes.values() for _, seconds in own), jitter


def compare_servers(args, measured, real, summary):
    """Whether gradients are as late as emulated, and workers as fast."""
    apart = variation(measured['staleness_histogram'], summary['staleness']['histogram'])
    accuracy = [line['accuracy'] for line in real if line['kind'] == 'evaluation'][-1]
    for name, histogram in ('measured', measured['staleness_histogram']), ('emulated', summary['staleness']['histogram']):
        print(f'  gradients by staleness, {name}: ' + ' '.join(f'{100 * count / sum(histogram):.1f}' for count in histogram) + ' %')
    print(f'  total variation {apart:.3f}; accuracy {accuracy:.4f}, emulated {summary["accuracy"]:.4f}; images/s: '
          f'{measured["images_per_s"]:.1f} measured, {summary["images_per_s"]:.1f} emulated: '
          f'{100 * (summary["images_per_s"] / measured["images_per_s"] - 1):+.1f} %')
    return apart <= args.tolerance


def compare(args, case):
    with tempfile.TemporaryDirectory(prefix='ringtail-emulated-') as name:
        folder = pathlib.Path(name)
        emulate(args, case, {'ms_per_image': 1}, folder)  # measures convolution algorithms, without a cap
        trace = ['--trace', folder / 'trace'] if has_servers(case) else []
        before = measure(args, case)
        text, _ = dilated(args, args.rate, ['dogs_vs_cats', 'train', '--output', folder / 'real', *trace, *arguments(args, case)])
        measured = json.loads(text)
        compute = on_a_host([before, measure(args, case)], measured['dilation'])
        real = lines_of(folder / 'real/metrics.jsonl')
        if has_servers(case):
            seconds, compute['jitter'] = passes_in(folder / 'trace', args.ranks)
            compute['ms_per_image'] = seconds * 1e3 / args.batch / measured['dilation']
        emulated, summary = emulate(args, case, compute, folder)
        print(f'{case}: ' + ', '.join(f'{key} {value:.4g}' for key, value in compute.items()))
        if has_servers(case):
            return compare_servers(args, measured, real, summary)
        compare_numbers(case, real, emulated, folder)
        return compare_times(args, case, measured, emulated, compute)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', required=True, help='folder with images (Kaggle names)')
    parser.add_argument('--cases', default=','.join(CASES))
    parser.add_argument('-n', '--ranks', type=int, default=4, help='hosts of one core')
    parser.add_argument('-r', '--rate', default='1gbit', help='100mbit or 1gbit, as for dilated.sh')
    parser.add_argument('--batch', type=int, default=32, help='of a rank')
    parser.add_argument('--steps', type=int, default=96)
    parser.add_argument('--images', type=int, default=1536, help='to train on')
    parser.add_argument('--tolerance', type=float, default=0.05)
    parser.add_argument('--set', action='append', default=[], help='more overrides; repeatable')
    parser.add_argument('--programs', type=pathlib.Path, default=ROOT / 'build/release/bin')
    args = parser.parse_args()
    args.mbit = float(args.rate[:-4]) * {'m': 1, 'g': 1000}[args.rate[-4]]
    args.sending = probe(args)
    print(', '.join(f'{name} {value:.4g}' for name, value in args.sending.items()))
    return 0 if all([compare(args, case) for case in args.cases.split(',')]) else 1


if __name__ == '__main__':
    sys.exit(main())
