#!/usr/bin/python3
"""How much faster several hosts train the default recipe than one, by `train --plan auto`, in slow motion (tests/cluster/dilated.sh).

A cell is a number of hosts, their cores, their links and an image size; its file in --out is written when it is done, and the same
command continues with the cells that are missing. A cell that failed has such a file, too: remove it to measure it once more.
One host is k times one core alone, which is more than k cores of a host reach: the mean of this machine's cores, each measured by itself, since ranks run now on one and now on another. The recipe is one run of all sizes with
one plan, as a user's; what hosts make of each size is the median of its steps. With --apart it is also one of as many hosts that each train by themselves in the same slow motion: they take from each
other's caches and memory what hosts that train together do here, and real hosts do not. Each run trains 256 images a step.

How many images a host has to decode depends on the epoch: with N hosts each meets an image in an epoch with probability 1/N, and keeps it
decoded from then on (dist/planner/decoded_share.h). So a run of an image size has as many epochs as the recipe until that size is done, of a
few steps each, and those of the epochs before do not count.

  apps/studies/host_speeds.py --data ~/dogs-vs-cats/train                  the points of the recipe, and its epochs together
  apps/studies/host_speeds.py --data ... --apart                           and times a host beside others that train by themselves
  apps/studies/host_speeds.py --data ... --grid                            64 pixels (the hardest) for 36 kinds of hosts and links
  apps/studies/host_speeds.py --data ... --ways                            ways to train together beside the plan's, eight steps each
  apps/studies/host_speeds.py --data ... --emulate                         the 36 kinds of --grid in the emulator, all by `top_k 1%`, also
                                                                           where this machine cannot carry the links

  recipe   6 epochs of 64 pixels, 6 of 96 and 4 of 128, as sixteen_epochs.textproto has them
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import local_rounds_cells
import study

sys.path.insert(0, os.path.join(study.ROOT, 'tests/cluster'))
import dilated  # noqa: E402
import dilated_report  # noqa: E402

RECIPE = {64: 6, 96: 6, 128: 4}  # epochs by image size
STEPS = {64: 4, 96: 2, 128: 2}   # of an epoch, so that each run has 24 or 32
STEPS_OF_WHOLE = 4               # of an epoch of a run of all sizes
FIRST_STEPS = 2                  # first touches, and the time until all ranks are there; in a recipe they take no time
POINTS = [(2, 8, '1gbit'), (4, 8, '1gbit'), (8, 8, '1gbit'), (8, 8, '100mbit')]
WAY_POINTS = [(*point, 64) for point in POINTS] + [(8, 8, '1gbit', 96), (8, 8, '1gbit', 128)]
GRID = [(hosts, cores, rate) for rate in ('10gbit', '1gbit', '100mbit') for cores in (8, 4, 1) for hosts in (2, 4, 8, 16)]
PLAN = 'plan auto'
WAYS = {'dense': 'f32', 'linear8': 'linear8', 'hylo': 'hylo', 'top_k 0.1 %': 'top_k_01', 'top_k 1 %': 'top_k_1_sums', PLAN: None}
FEW_STEPS = 8    # of ways
EMULATED_STEPS, EMULATED_WARM_UP = 12, 4  # the first step is dense: a guard's
BATCH = 256
CPU_NS_PER_BYTE, CPU_US_PER_MESSAGE = 1.24, 130  # what a rank sends takes of a core, as `plan` has it (dist/planner/README.md)
MORE = 64        # images: seven hosts, say, take 259 in a step, and as many steps
VALIDATION = 16  # of each class, read once at the end


def epochs_of(pixels):
    """Of the recipe: before this image size, and until it is done."""
    before = sum(epochs for smaller, epochs in RECIPE.items() if smaller < pixels)
    return before, before + RECIPE[pixels]


def warm_up_steps(pixels):
    return max(epochs_of(pixels)[0] * STEPS[pixels], FIRST_STEPS)


def recipe(args, pixels, more=()):
    """Config, images and fields of a run of this image size."""
    epochs = epochs_of(pixels)[1]
    last = (BATCH * STEPS[pixels] + MORE) // 2 - 1
    overrides = [f'data.image_size={pixels}', 'train.phase=', f'train.evaluation_image_size={pixels}', 'train.evaluate_flipped=false',
                 f'train.epochs={epochs}', f'train.evaluate_every_epochs={epochs}', 'data.split.train.first=0',
                 f'data.split.train.last={last}', f'data.split.validation.first={last + 1}',
                 f'data.split.validation.last={last + VALIDATION}', *more] + args.set
    return ['--config', study.SIXTEEN_EPOCHS, '--data', os.path.abspath(args.data), *study.sets(overrides)]


def whole_recipe(args):
    """The same of a run of all sizes, as the config has them."""
    last = (BATCH * STEPS_OF_WHOLE + MORE) // 2 - 1
    overrides = ['train.evaluate_flipped=false', f'train.evaluate_every_epochs={epochs_of(max(RECIPE))[1]}', 'data.split.train.first=0',
                 f'data.split.train.last={last}', f'data.split.validation.first={last + 1}',
                 f'data.split.validation.last={last + VALIDATION}'] + args.set
    return ['--config', study.SIXTEEN_EPOCHS, '--data', os.path.abspath(args.data), *study.sets(overrides)]


def training(args, pixels, output, more):
    """The command of a run, without the folder of the program. Without pixels, of all sizes."""
    return ['dogs_vs_cats', 'train', *(recipe(args, pixels) if pixels else whole_recipe(args)), '--output', output, *more]


def by_hand(hosts, pixels, coding, steps=FEW_STEPS):
    """Fields of hosts that train a batch of one host together, their gradients coded so."""
    share = BATCH // hosts
    return [f'train.batch={share}', f'train.accumulation={max(1, share // local_rounds_cells.PART)}', f'train.epochs={steps // STEPS[pixels]}',
            *(f'dist.compression.{field}' for field in local_rounds_cells.GRADIENT_CODINGS[coding])]


def flags_of(hosts, pixels, way):
    """How `train` is told; without a way, to plan for the whole recipe."""
    if way in (None, PLAN):
        return ['--plan', 'auto', *(study.sets([f'train.epochs={FEW_STEPS // STEPS[pixels]}']) if way else [])]
    return study.sets(by_hand(hosts, pixels, WAYS[way]))


def run(args, hosts, cores, rate, pixels, apart, way):
    """The report of dilated.sh and what train said of its plan, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        more = [] if apart else flags_of(hosts, pixels, way)
        command = [os.path.join(study.ROOT, 'tests/cluster/dilated.sh'), '-n', str(hosts), '-k', str(cores), '-r', rate, '--json', '--warm-up',
                   str(warm_up_steps(pixels) if pixels and not way else FIRST_STEPS), *(['--apart'] if apart else []), '--programs', os.path.abspath(args.programs), '--',
                   *training(args, pixels, os.path.join(folder, 'run'), more)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            return {'failed': done.stderr[-2000:]}
        sizes = {} if pixels else {'by_size': speeds_by_size(pathlib.Path(folder, 'run/metrics.jsonl'), hosts, cores)}
    plan = [line.split('plan: ', 1)[1] for line in done.stderr.splitlines() if 'plan: ' in line]
    return {**json.loads(done.stdout), **sizes, 'plan': plan[:1]}


def speeds_by_size(metrics, hosts, cores):
    """Images/s of a run of all sizes, in the time of the hosts."""
    dilation = dilated.Dilation(hosts, cores, rate=None, slow={}, here=len(os.sched_getaffinity(0)))
    found = {pixels: [] for pixels in RECIPE}
    with metrics.open(encoding='utf-8') as file:
        for number, step in enumerate(line for line in map(json.loads, file) if line['kind'] == 'step'):
            epoch = number // STEPS_OF_WHOLE
            pixels = next(size for size in RECIPE if epoch < epochs_of(size)[1])
            if number >= FIRST_STEPS:
                found[pixels].append(step['images_per_s'])
    return {str(pixels): statistics.median(speeds) * dilation.factor for pixels, speeds in found.items()}


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
            reports.append(dilated_report.report(pathlib.Path(folder, 'run/metrics.jsonl'), slow_motion, warm_up_steps(pixels)))
    return {'images_per_s': statistics.mean(report['images_per_s'] for report in reports), 'by_core': reports}


def emulate(args, hosts, pixels, fields, more):
    """What `emulate` says of hosts that send `top_k 1%`, as plans of the grid have them, and whose images are decoded already."""
    config = by_hand(hosts, pixels, 'top_k_1_sums', EMULATED_STEPS) + ['train.evaluate_every_epochs=1000']
    script = [word for field in [f'workers={hosts}', *fields] for word in ('--script-set', field)]
    done = subprocess.run([os.path.join(args.programs, 'dogs_vs_cats'), 'emulate', '--threads', '1', *recipe(args, pixels, config),
                           *script, *more], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None, done.stdout + done.stderr


def measured_compute(args, hosts, pixels):
    """compute's fields of a script, of one core of `hosts`, and of one that trains alone: medians of three measurements in turn."""
    found = {1: [], hosts: []}
    for workers in [1, hosts] * 3:
        _, said = emulate(args, workers, pixels, [], ['--measure'])
        line = re.search(r'^compute { (.*) }', said, flags=re.MULTILINE)
        if not line:
            return {'failed': said[-2000:]}
        found[workers].append({name: float(value) for name, value in re.findall(r'(\w+): ([\d.e+-]+)', line[1])})
    alone, compute = ({name: statistics.median(one[name] for one in found[workers]) for name in found[workers][0]} for workers in (1, hosts))
    return {'compute': compute, 'alone_images_per_s': 1e3 * BATCH / (BATCH * alone['ms_per_image'] + alone['update_ms'])}


def run_emulated(args, hosts, cores, rate, pixels):
    """Images/s of hosts whose cores share a step; one thread sends and codes."""
    measured = kept(args, f'{hosts}-compute-{pixels}', lambda: measured_compute(args, hosts, pixels))
    if not measured or 'failed' in measured:
        return measured or {'failed': 'not measured'}
    shared = ('ms_per_image', 'update_ms', 'prepare_ms')
    coding = ('encode_ms', 'decode_ms')
    compute = {name: value / (cores * args.core_speed if name in shared else args.core_speed if name in coding else 1)
               for name, value in measured['compute'].items()} | {'cores': cores}
    link = {'mbit_per_s': dilated.rate_of(rate) / 1e6 * study.WIRE, 'cpu_ns_per_byte': CPU_NS_PER_BYTE / cores,
            'cpu_us_per_message': CPU_US_PER_MESSAGE / cores}
    fields = [f'compute.{name}={value}' for name, value in compute.items()] + [f'between_hosts.{name}={value}' for name, value in link.items()]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'lines.jsonl')
        summary, said = emulate(args, hosts, pixels, fields, ['--out', str(path)])
        if summary is None:
            return {'failed': said[-2000:]}
        lines = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]
    ends = {line['step']: line['virtual_s'] for line in lines if line['kind'] == 'step' and line['worker'] == 0}
    seconds = ends[EMULATED_STEPS] - ends[EMULATED_WARM_UP]
    return {'images_per_s': BATCH * (EMULATED_STEPS - EMULATED_WARM_UP) / seconds,
            'one_host': measured['alone_images_per_s'] * cores * args.core_speed}


def kept(args, name, make):
    """What make() returns, in a file of that name from then on; None if only what is there is asked for."""
    path = os.path.join(args.out, name + '.json')
    if args.print_only and not os.path.exists(path):
        return None

    def made():
        result = {**make(), 'set': args.set}
        found = result.get('compute') or f'{result.get("images_per_s", "failed")} images/s, {"".join(result.get("plan", []))}'
        print(f'{name}: {found}', flush=True)
        return result
    return study.once(args, path, made)


def cell(args, hosts, cores, rate, pixels, apart=False, way=None):
    name = f'{hosts}-{cores}-{rate}-{pixels or "recipe"}{"-apart" if apart else ""}{"-" + way.replace(" ", "_") if way else ""}'
    return kept(args, name, lambda: run_alone(args, pixels) if hosts == 1 else run(args, hosts, cores, rate, pixels, apart, way))


def why_not(found):
    """Of a cell without a speed; nothing if it has one, or has not been measured."""
    failed = (found or {}).get('failed')
    if failed is None:
        return ''
    if failed.count('dilated.sh: the probe finds') == dilated.PROBES:
        return 'not carried here'
    lines = failed.splitlines() or ['']
    reason = next((line for line in reversed(lines) if line.startswith('dilated.sh: ')), lines[-1])  # ranks' words follow
    return 'failed: ' + reason.strip().replace('|', '/')


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


def recipe_speeds(args, hosts, cores, rate):
    """Images/s of hosts with a plan by image size; None where that is not known."""
    found = (cell(args, hosts, cores, rate, pixels=None) or {}).get('by_size', {})
    return {pixels: found.get(str(pixels)) for pixels in RECIPE}


def points_of(args, hosts, cores, rate, apart):
    """By image size, times one host."""
    together = recipe_speeds(args, hosts, cores, rate)
    alone = {pixels: one_host(args, hosts, cores, pixels, apart) for pixels in RECIPE}
    return {pixels: together[pixels] / alone[pixels] if together[pixels] and alone[pixels] else None for pixels in RECIPE}


def print_points(args, apart=False):
    if apart:
        print('\nTimes a host that trains by itself beside the others, in the same slow motion:')
    print('\n| hosts | cores | links | ' + ' | '.join(f'{pixels} pixels' for pixels in RECIPE) + ' | recipe | plan |\n|---|---|---|---|---|---|---|---|')
    for hosts, cores, rate in POINTS:
        times = points_of(args, hosts, cores, rate, apart)
        together, recipe = cell(args, hosts, cores, rate, pixels=None), ''
        if all(times.values()):
            alone = {pixels: epochs / one_host(args, hosts, cores, pixels, apart) for pixels, epochs in RECIPE.items()}
            recipe = f'**{sum(alone.values()) / sum(alone[pixels] / times[pixels] for pixels in RECIPE):.2f}**'
        shown = ' | '.join(f'{value:.2f}' if value else why_not(together) for value in times.values())
        print(f'| {hosts} | {cores} | {rate} | {shown} | {recipe} | {"".join((together or {}).get("plan", []))} |')


def print_grid(args):
    print('\n| hosts | cores | links | times one host | plan |\n|---|---|---|---|---|')
    for hosts, cores, rate in GRID:
        times, found = times_one_host(args, hosts, cores, rate, 64), cell(args, hosts, cores, rate, 64)
        shown = f'{times:.2f}' if times else why_not(found) or why_not(cell(args, 1, 1, 'none', 64))
        print(f'| {hosts} | {cores} | {rate} | {shown} | '
              f'{"".join((found or {}).get("plan", []))} |')


def print_ways(args):
    print('\n| hosts | cores | links | pixels | way | times one host | ms of a step | of it exposed communication | MB sent by a rank |\n'
          '|---|---|---|---|---|---|---|---|---|')
    for hosts, cores, rate, pixels in WAY_POINTS:
        for way in WAYS:
            found, alone = cell(args, hosts, cores, rate, pixels, way=way), one_host(args, hosts, cores, pixels, apart=False)
            shown = why_not(found)
            if alone and speed(found):
                shown = f'{speed(found) / alone:.2f} | {found["step_ms"]:.1f} | {found["exposed_comm_ms"]:.1f} | {found["comm_bytes"] / 1e6:.2f}'
            print(f'| {hosts} | {cores} | {rate} | {pixels} | {way} | {shown} |')


def print_emulated(args):
    print('\n| hosts | cores | links | times one host, emulated |\n|---|---|---|---|')
    for hosts, cores, rate in GRID:
        together = kept(args, f'{hosts}-{cores}-{rate}-64-emulated-{args.core_speed:g}', lambda: run_emulated(args, hosts, cores, rate, 64))
        shown = f'{speed(together) / together["one_host"]:.2f}' if speed(together) else why_not(together)
        print(f'| {hosts} | {cores} | {rate} | {shown} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', default='runs/host_speeds')
    parser.add_argument('--grid', action='store_true')
    parser.add_argument('--ways', action='store_true')
    parser.add_argument('--emulate', action='store_true')
    parser.add_argument('--core-speed', type=float, default=1, help='of emulated hosts, times a core of this machine')
    parser.add_argument('--apart', action='store_true', help='the points once more, beside hosts that train by themselves')
    parser.add_argument('--print-only', action='store_true', help='what has been measured so far')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    if args.emulate or args.ways:
        return print_emulated(args) if args.emulate else print_ways(args)
    print_grid(args) if args.grid else print_points(args)
    if args.apart:
        print_points(args, apart=True)


if __name__ == '__main__':
    main()
