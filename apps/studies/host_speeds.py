#!/usr/bin/python3
"""How much faster several hosts train the default recipe than one, by `train --plan auto`, in slow motion (tests/cluster/dilated.sh).

A cell is a number of hosts, their cores, their links and an image size; its file in --out is written when it is done, and the same
command continues with the cells that are missing. One host is k times one core alone, which is more than k cores of a host reach: the
mean of this machine's cores, each measured by itself, since ranks run now on one and now on another. With --apart it is also one of as many hosts that each train by themselves in the same slow motion: they take from each
other's caches and memory what hosts that train together do here, and real hosts do not. Each run trains 256 images a step.

How many images a host has to decode depends on the epoch: with N hosts each meets an image in an epoch with probability 1/N, and keeps it
decoded from then on (dist/planner/decoded_share.h). So a run of an image size has as many epochs as the recipe until that size is done, of a
few steps each, and those of the epochs before do not count.

  apps/studies/host_speeds.py --data ~/dogs-vs-cats/train                  the points of the recipe, and its epochs together
  apps/studies/host_speeds.py --data ... --apart                           and times a host beside others that train by themselves
  apps/studies/host_speeds.py --data ... --grid                            64 pixels (the hardest) for 36 kinds of hosts and links

  recipe   6 epochs of 64 pixels, 6 of 96 and 4 of 128, as sixteen_epochs.textproto has them
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import study

sys.path.insert(0, os.path.join(study.ROOT, 'tests/cluster'))
import dilated  # noqa: E402

RECIPE = {64: 6, 96: 6, 128: 4}  # epochs by image size
STEPS = {64: 4, 96: 2, 128: 2}   # of an epoch, so that each run has 24 or 32
FIRST_STEPS = 2                  # first touches, and the time until all ranks are there; in a recipe they take no time
POINTS = [(2, 8, '1gbit'), (4, 8, '1gbit'), (8, 8, '1gbit'), (8, 8, '100mbit')]
GRID = [(hosts, cores, rate) for rate in ('10gbit', '1gbit', '100mbit') for cores in (8, 4, 1) for hosts in (2, 4, 8, 16)]
BATCH = 256
MORE = 64        # images: seven hosts, say, take 259 in a step, and as many steps
VALIDATION = 16  # of each class, read once at the end


def epochs_of(pixels):
    """Of the recipe: before this image size, and until it is done."""
    before = sum(epochs for smaller, epochs in RECIPE.items() if smaller < pixels)
    return before, before + RECIPE[pixels]


def warm_up_steps(pixels):
    return max(epochs_of(pixels)[0] * STEPS[pixels], FIRST_STEPS)


def training(args, pixels, output, more):
    """The command of a run, without the folder of the program."""
    epochs = epochs_of(pixels)[1]
    last = (BATCH * STEPS[pixels] + MORE) // 2 - 1
    overrides = [f'data.image_size={pixels}', 'train.phase=', f'train.evaluation_image_size={pixels}', 'train.evaluate_flipped=false',
                 f'train.epochs={epochs}', f'train.evaluate_every_epochs={epochs}', 'data.split.train.first=0',
                 f'data.split.train.last={last}', f'data.split.validation.first={last + 1}',
                 f'data.split.validation.last={last + VALIDATION}'] + args.set
    return ['dogs_vs_cats', 'train', '--config', study.SIXTEEN_EPOCHS, '--data', os.path.abspath(args.data), '--output', output, *more,
            *study.sets(overrides)]


def run(args, hosts, cores, rate, pixels, apart):
    """The report of dilated.sh and what train said of its plan, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        more = [] if apart else ['--plan', 'auto']
        command = [os.path.join(study.ROOT, 'tests/cluster/dilated.sh'), '-n', str(hosts), '-k', str(cores), '-r', rate, '--json', '--warm-up',
                   str(warm_up_steps(pixels)), *(['--apart'] if apart else []), '--programs', os.path.abspath(args.programs), '--',
                   *training(args, pixels, os.path.join(folder, 'run'), more)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {'failed': done.stderr[-2000:]}
    plan = [line.split('plan: ', 1)[1] for line in done.stderr.splitlines() if 'plan: ' in line]
    return {**json.loads(done.stdout), 'plan': plan[:1]}


def run_alone(args, pixels):
    """As dilated.sh reports it, of one core by itself: the mean of all cores here, one after the other."""
    reports = []
    for core in sorted(os.sched_getaffinity(0)):
        with tempfile.TemporaryDirectory() as folder:
            name, *arguments = training(args, pixels, os.path.join(folder, 'run'), ['--threads', '1'])
            done = subprocess.run(['taskset', '-c', str(core), os.path.join(args.programs, name), *arguments], capture_output=True, text=True)
            if done.returncode != 0:
                return {'failed': done.stderr[-2000:]}
            slow_motion = dilated.Dilation(1, 1, rate=None, slow={}, here=len(os.sched_getaffinity(0)))
            reports.append(dilated.report(pathlib.Path(folder, 'run/metrics.jsonl'), slow_motion, warm_up_steps(pixels)))
    return {'images_per_s': statistics.mean(report['images_per_s'] for report in reports), 'by_core': reports}


def cell(args, hosts, cores, rate, pixels, apart=False):
    name = f'{hosts}-{cores}-{rate}-{pixels}{"-apart" if apart else ""}'
    path = os.path.join(args.out, name + '.json')
    if not os.path.exists(path):
        if args.print_only:
            return None
        result = {**(run_alone(args, pixels) if hosts == 1 else run(args, hosts, cores, rate, pixels, apart)), 'set': args.set}
        with open(path + '.part', 'w', encoding='utf-8') as file:
            json.dump(result, file, indent=1)
        os.rename(path + '.part', path)
        print(f'{name}: {result.get("images_per_s", "failed")} images/s, {"".join(result.get("plan", []))}', flush=True)
    return study.read_result(args, path)


def why_not(found):
    """Of a cell without a speed; nothing if it has one, or has not been measured."""
    failed = (found or {}).get('failed')
    if failed is None:
        return ''
    if failed.count('dilated.sh: the probe finds') == dilated.PROBES:
        return 'not carried here'
    return 'failed: ' + (failed.splitlines() or [''])[-1].strip().replace('|', '/')


def speed(found):
    return found and found.get('images_per_s')


def one_host(args, hosts, cores, pixels, apart):
    if apart:
        return speed(cell(args, hosts, cores, 'none', pixels, apart=True))
    alone = speed(cell(args, 1, 1, 'none', pixels))
    return alone and cores * alone


def times_one_host(args, hosts, cores, rate, pixels, apart=False):
    """None: not measured, or this machine cannot carry it."""
    alone, together = one_host(args, hosts, cores, pixels, apart), speed(cell(args, hosts, cores, rate, pixels))
    return together / alone if alone and together else None


def print_points(args, apart=False):
    if apart:
        print('\nTimes a host that trains by itself beside the others, in the same slow motion:')
    print('\n| hosts | cores | links | ' + ' | '.join(f'{pixels} pixels' for pixels in RECIPE) + ' | recipe |\n|---|---|---|---|---|---|---|')
    for hosts, cores, rate in POINTS:
        times = {pixels: times_one_host(args, hosts, cores, rate, pixels, apart) for pixels in RECIPE}
        recipe = ''
        if all(times.values()):
            alone = {pixels: epochs / one_host(args, hosts, cores, pixels, apart) for pixels, epochs in RECIPE.items()}
            recipe = f'**{sum(alone.values()) / sum(alone[pixels] / times[pixels] for pixels in RECIPE):.2f}**'
        shown = ' | '.join(f'{value:.2f}' if value else '' for value in times.values())
        print(f'| {hosts} | {cores} | {rate} | {shown} | {recipe} |')


def print_grid(args):
    print('\n| hosts | cores | links | times one host | plan |\n|---|---|---|---|---|')
    for hosts, cores, rate in GRID:
        times, found = times_one_host(args, hosts, cores, rate, 64), cell(args, hosts, cores, rate, 64)
        shown = f'{times:.2f}' if times else why_not(found) or why_not(cell(args, 1, 1, 'none', 64))
        print(f'| {hosts} | {cores} | {rate} | {shown} | '
              f'{"".join((found or {}).get("plan", []))} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', default='runs/host_speeds')
    parser.add_argument('--grid', action='store_true')
    parser.add_argument('--apart', action='store_true', help='the points once more, beside hosts that train by themselves')
    parser.add_argument('--print-only', action='store_true', help='what has been measured so far')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    print_grid(args) if args.grid else print_points(args)
    if args.apart:
        print_points(args, apart=True)


if __name__ == '__main__':
    main()
