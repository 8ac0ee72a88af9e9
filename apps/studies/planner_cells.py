#!/usr/bin/python3
"""How right the planner is (dist/planner/): predictions written down first, then measured in slow motion, cell by cell.

A cell is a network, a number of ranks, links (with the cores of a host), a scheme and H, the steps between two exchanges;
H > 1 is overlapped. 32 images of 64 pixels per rank and step. Everything is in the time of tests/cluster/dilated.sh, which
measures; divide by its factor for that of the hosts.

  1. facts      `dogs_vs_cats plan --measure --data` by the ranks of a job, for each network and number of ranks: means over ranks that
                measure at the same time in the slow motion of the cells, where they take from each other's caches and memory what they
                take while they train, with images that input threads load meanwhile and with signs of life between them; the probe of bench_allreduce under the limits of a cell, for each number of
                ranks and links
  2. choose     cells, by `plan --from`: cells.json, never written again
  3. predict    a cell, just before it is measured, with and without --dedicated-cores: prediction-CELL.json
  4. measure    it: cell-CELL.json; the same command continues with those that are missing
  5. print      median and 90 % error, by term and without the term of shared cores; regret of the planner's choice

A prediction is from the facts as they were measured, as a plan is. A shared machine is faster in some minutes and slower in others, by a
third and more. So a step of the default network, alone on each core (`dogs_vs_cats time`), is timed with the facts and
again between cells: a cell in which their speed changed by more than 7 % is measured again, once. What would have been predicted for cores
that are as fast as just before the cell (`plan --cores`) is printed, too. Where that does not suffice: --passes.

  apps/studies/planner_cells.py --data IMAGES [--out runs/planner_cells] [--cells 120] [--most-seconds 40] [--passes 1]
      [--only REGEX] [--minutes M] [--set FIELD=VALUE ...] [--programs FOLDER] [--choose-only | --print-only]

IMAGES: drawn ones will do (dogs_vs_cats synthesize --images 2200). Needs what dilated.sh needs, and a quiet machine. A cell that
dilated.sh refuses, because this machine cannot carry the links, or that the run does not finish, is written down as such. --set is
for facts, predictions and runs alike; a folder that was begun with other settings is refused.
"""
import argparse
import datetime
import hashlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import local_rounds_cells
import study

sys.path.insert(0, os.path.join(study.ROOT, 'tests/cluster'))
from dilated import Dilation  # noqa: E402

NETS = {'lenet': 'lenet.textproto', 'default': study.SIXTEEN_EPOCHS, 'resnet18': 'resnet18.textproto'}
RANKS = (2, 4, 8)
LINKS = (('10gbit', 8), ('1gbit', 8), ('1gbit', 1), ('100mbit', 1))  # of a host, and its cores
SCHEMES = {  # names of plan, and what it means by them (apps/plan/measure_facts.cc)
    'dense': [], 'linear8': ['scheme.linear8={}'], 'hylo': ['scheme.hylo={}'],
    'top_k 0.1%': ['scheme.top_k.density=0.001', 'scheme.top_k.values=BF16', 'min_elements=1000',
                   'rule={max_elements: 9999 scheme { linear8 {} } }'],
    'top_k 1%': local_rounds_cells.TOP_K_1,
}
IN_EVERY_STEP = ('top_k 1%',)  # what dist.plan: AUTO takes for gradients, and not for the differences of rounds
PERIODS = (1, 4, 16)
BATCH, HERE = 32, len(os.sched_getaffinity(0))  # images of a rank and step; cores of the machine
WARM_UP_STEPS, STEPS, WARM_UP_ROUNDS, ROUNDS = 3, 8, 2, 2
START_S = 6  # of a run, until its first step
SPEED_CHANGE, TRIES = 0.07, 2
VALIDATION = ['data.split.validation.first=1050', 'data.split.validation.last=1065']
# Of each class; none is met twice in so few steps, and facts are of images that are decoded, too.
IMAGES = ['data.split.train.first=0', 'data.split.train.last=1023', 'data.cache_mib=0']
SAME = VALIDATION + IMAGES + ['data.image_size=64', 'train.phase=', 'train.evaluation_image_size=64', 'train.accumulation=1',
                              f'train.batch={BATCH}', 'train.evaluate_every_epochs=1000', 'dist.hang_timeout_s=60']
TERMS = ('forward', 'backward', 'exchange', 'update')


def name_of(cell):
    return '{net}-{ranks}-{rate}-{cores}-{scheme}-{period}'.format(**cell).replace(' ', '_').replace('%', '')


def world_of(cell):
    return cell['net'], cell['ranks'], cell['rate'], cell['cores']


def steps_of(cell):
    if cell['period'] == 1:
        return WARM_UP_STEPS + STEPS
    return cell['period'] * (WARM_UP_ROUNDS + ROUNDS)


def dilated(args, cell, command, more=()):
    """Its standard output and standard error; None if it failed or was refused."""
    program = [os.path.join(study.ROOT, 'tests/cluster/dilated.sh'), '-n', str(cell['ranks']), '-k', str(cell['cores']), '-r',
               cell['rate'], '--programs', args.programs, *more, '--', *command]
    done = subprocess.run(program, capture_output=True, text=True)
    return (done.stdout, done.stderr) if done.returncode == 0 else (None, done.stdout + done.stderr)


def write(path, value):
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(value, file, indent=1)
    os.rename(path + '.part', path)


def read(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def core_seconds(args):
    """Of a step of the default network, alone on each of the cores at the same time: their mean."""
    command = [os.path.join(args.programs, 'dogs_vs_cats'), 'time', '--config', 'dogs_vs_cats', '--precision', 'f32', '--image-size', '64',
               '--batch', str(BATCH), '--threads', '1', '--iterations', '30', '--json']
    steps = [subprocess.Popen(['taskset', '-c', str(core), *command], stdout=subprocess.PIPE, text=True) for core in sorted(os.sched_getaffinity(0))]
    return statistics.mean(json.loads(step.communicate()[0])['step_ms'] for step in steps) / 1e3


# ---- what is known before ----

def measure_facts(args, net, ranks):
    """The mean facts of so many ranks that measure at the same time; and how fast the cores were."""
    path = os.path.join(args.out, f'facts-{net}-{ranks}.textproto')
    if not os.path.exists(path):
        plan = ['dogs_vs_cats', 'plan', '--measure', '--insecure', '--threads', '1', '--image-size', '64', '--data', args.data,
                *study.sets(VALIDATION + IMAGES + args.set), '--part-batch', str(BATCH), '--config', os.path.join(study.ROOT, 'configs', NETS[net]),
                '--save', path + '.all']
        before = core_seconds(args)
        out, text = dilated(args, {'ranks': ranks, 'cores': 8, 'rate': 'none'}, plan)
        if out is None:
            raise SystemExit(f'measuring {net} failed:\n{text}')
        with open(path + '.all', encoding='utf-8') as file:
            facts = file.read()
        # A cell computes its images at once; from steps of fewer a prediction might have it compute them in parts.
        at_once = re.sub(r'^step \{\n.*?^\}\n', lambda step: step[0] if f'batch: {BATCH}\n' in step[0] else '', facts, flags=re.S | re.M)
        write(path + '.cores', (before + core_seconds(args)) / 2)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(at_once)
    return path, read(path + '.cores')


def probe(args, ranks, rate, cores):
    """The links between so many ranks, as a run finds them at its start."""
    path = os.path.join(args.out, f'links-{ranks}-{rate}-{cores}.json')
    if not os.path.exists(path):
        out, text = dilated(args, {'ranks': ranks, 'cores': cores, 'rate': rate},
                            ['bench_allreduce', '--insecure', '--algorithm', 'ring', '--bytes', '4B', '--seconds', '0',
                             '--report-lines'])
        found = re.search(r'between hosts: latency ([\d.e+]+) us.*, ([\d.e+-]+) ns of a processor per byte '
                          r'and ([\d.e+-]+) us per message', text)
        ideal = re.search(r'"ideal_ms":([\d.e+-]+)', text)
        links = {'refused': text[-2000:]}
        if out is not None:
            links = {'latency_us': float(found[1]), 'cpu_s_per_gb': float(found[2]), 'cpu_us_per_message': float(found[3]),
                     'bytes_per_s': 8 * (ranks - 1) / ranks / (float(ideal[1]) / 1000)}
        write(path, links)
    return read(path)


def predict_world(args, world, cores_now=None):
    """Predictions of all schemes and H, by (scheme, H), with the term of shared cores and without; `rescaled`: for cores as fast as
    `cores_now`, core_seconds(), says, and not as they were with the facts."""
    facts, cores_then = measure_facts(args, world['net'], world['ranks'])
    links = probe(args, world['ranks'], world['rate'], world['cores'])
    share = Dilation(world['ranks'], world['cores'], rate=None, slow={}, here=HERE).share

    def answer(cores, *flags):
        command = [os.path.join(args.programs, 'dogs_vs_cats'), 'plan', '--config', os.path.join(study.ROOT, 'configs', NETS[world['net']]),
                   '--from', facts, '--hosts', str(world['ranks']), '--cores', str(cores), '--batch', str(BATCH * world['ranks']),
                   '--latency-us', str(links['latency_us']), '--cpu-s-per-gb', str(links['cpu_s_per_gb']),
                   '--cpu-us-per-message', str(links['cpu_us_per_message']),
                   '--rate', f'{links["bytes_per_s"] * 8 / study.WIRE / 1000:.3f}kbit', '--schemes', ','.join(SCHEMES),
                   '--periods', ','.join(map(str, PERIODS)), *study.sets(args.set), '--json', *flags]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)['asked']

    rescaled = share * cores_then / (cores_now or cores_then)
    predictions = {}
    for key, rows in (('predicted', answer(share)), ('dedicated', answer(share, '--dedicated-cores')), ('rescaled', answer(rescaled))):
        for row in rows:
            if row['overlap'] == (row['period'] > 1):
                predictions.setdefault((row['scheme'], row['period']), {})[key] = terms_of(row)
    return predictions


def terms_of(row):
    """Seconds per step of a prediction, as a run measures them."""
    s, steps = row['seconds'], row['period']
    terms = {'forward': s['forward'], 'backward': s['backward'] + s['contention'], 'exchange': s['waiting'] + s['wire'] + s['coding'],
             'update': s['update'] + s['merge'] + s['roll_call'], 'step': row['round_s']}
    return {name: seconds / steps for name, seconds in terms.items()}


def choose_cells(args):
    """Of all cells that take less than --most-seconds, a fixed choice of --cells."""
    cells = []
    for net, ranks, (rate, cores) in itertools.product(NETS, RANKS, LINKS):
        world = {'net': net, 'ranks': ranks, 'rate': rate, 'cores': cores}
        if 'refused' in probe(args, ranks, rate, cores):
            print(f'{ranks} hosts of {cores} cores at {rate}: this machine cannot carry the links', flush=True)
            continue
        predictions = predict_world(args, world)
        for scheme, period in itertools.product(SCHEMES, PERIODS):
            cell = {**world, 'scheme': scheme, 'period': period}
            if period > 1 and scheme in IN_EVERY_STEP:
                continue
            if START_S + steps_of(cell) * predictions[scheme, period]['predicted']['step'] <= args.most_seconds:
                cells.append(cell)
    order = sorted(cells, key=lambda cell: hashlib.sha256(name_of(cell).encode()).hexdigest())
    version = subprocess.run(['git', '-C', study.ROOT, 'describe', '--always', '--dirty'], capture_output=True, text=True)
    # One world after the other, so that what regret compares is measured within minutes.
    return {'written': datetime.datetime.now().isoformat(timespec='seconds'), 'version': version.stdout.strip(),
            'cells': sorted(order[:args.cells], key=lambda cell: hashlib.sha256(str(world_of(cell)).encode()).hexdigest())}


# ---- what is measured ----

def overrides_of(args, cell):
    images = 2 * 1024
    overrides = SAME + [f'train.epochs={steps_of(cell) * BATCH * cell["ranks"] / images:.9f}']
    where = 'dist.'
    if cell['period'] > 1:
        where = 'dist.local.'
        overrides += [f'dist.local.period={cell["period"]}', 'dist.local.overlap=true']
    return overrides + [f'{where}compression.{field}' for field in SCHEMES[cell['scheme']]] + args.set


def measure(args, cell):
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, 'run')
        command = ['dogs_vs_cats', 'train', '--config', os.path.join(study.ROOT, 'configs', NETS[cell['net']]), '--data', args.data,
                   '--output', output, '--no-report'] + study.sets(overrides_of(args, cell))
        out, text = dilated(args, cell, command, ['--json', '--warm-up', '1'])
        if out is None:
            return {'failed': text[-2000:]}
        with open(os.path.join(output, 'metrics.jsonl'), encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        return {'measured': measured_terms(cell, lines), 'busy_by_others': json.loads(out)['busy_by_others'], 'metrics': lines}


def predict_and_measure(args, cell, before):
    """What was predicted is in a file before the run begins. `before`: core_seconds() of just now; those after the run come back in the
    result."""
    for tries in range(1, TRIES + 1):
        predictions = predict_world(args, cell, before)[cell['scheme'], cell['period']]
        write(os.path.join(args.out, f'prediction-{name_of(cell)}.json'), predictions)
        result = {**predictions, **measure(args, cell), 'core_seconds': [before, core_seconds(args)], 'tries': tries}
        change = result['core_seconds'][1] / before - 1
        if 'failed' in result or abs(change) <= SPEED_CHANGE:
            break
        print(f'{name_of(cell)}: a step alone on a core takes {change:+.0%} of its time more than before', flush=True)
        before = result['core_seconds'][1]
    return result


def pass_of(args, number):
    """Everything of a further pass is in a folder of its own: facts, links, predictions and cells."""
    folder = args.out if number == 1 else os.path.join(args.out, f'pass-{number}')
    os.makedirs(folder, exist_ok=True)
    return argparse.Namespace(**{**vars(args), 'out': folder})


def measure_all(args, cells, end):
    """The results of these cells, None of those that are not measured; those that are missing are measured, if they begin before `end`."""
    results, now = [], None
    for cell in cells:
        path = os.path.join(args.out, f'cell-{name_of(cell)}.json')
        if not os.path.exists(path) and not args.print_only and time.monotonic() < end and re.search(args.only, name_of(cell)):
            result = predict_and_measure(args, cell, now or core_seconds(args))
            now = result['core_seconds'][1]
            write(path, {**result, 'set': args.set})
            measured = result.get('measured', {'step': float('nan')})['step']
            print(f'{name_of(cell)}: {result["predicted"]["step"]:.4g} s a step predicted, {measured:.4g} measured', flush=True)
        found = study.read_result(args, path) if os.path.exists(path) else {}
        results.append(found if 'measured' in found else None)
    return results


def measured_terms(cell, lines):
    """Seconds per step: medians of steps; of rounds, all their time over all their steps."""
    steps = [line for line in lines if line['kind'] == 'step'][WARM_UP_STEPS:]
    terms = {name: statistics.median(line[f'{name}_ms'] for line in steps) / 1e3 for name in ('forward', 'backward')}
    if cell['period'] == 1:
        terms['exchange'] = statistics.median(line['exposed_comm_ms'] for line in steps) / 1e3
        step = statistics.median(line['step_ms'] for line in steps) / 1e3
    else:
        rounds = [line for line in lines if line['kind'] == 'round'][1:-1]  # the last travels alone, after the last step
        local = sum(line['local_steps'] for line in rounds)
        terms['exchange'] = sum(line['exposed_comm_ms'] for line in rounds) / 1e3 / local
        step = sum(line['step_ms'] for line in rounds) / 1e3 / local
    return {**terms, 'update': step - sum(terms.values()), 'step': step}


# ---- what is printed ----

def share_of(values, fraction):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def medians_of(results):
    """Of several measurements of a cell, each with its own prediction: the medians by term, and the error of each."""
    keys = ('predicted', 'dedicated', 'rescaled', 'measured')
    return {**{key: {term: statistics.median(result[key][term] for result in results) for term in (*TERMS, 'step')} for key in keys},
            'errors': [result['predicted']['step'] / result['measured']['step'] - 1 for result in results]}


def print_cells(cells):
    print('\n| cell | predicted, s a step | measured | error | of each pass |\n|---|---|---|---|---|')
    for cell in cells:
        predicted, measured = cell['predicted']['step'], cell['measured']['step']
        print(f'| {name_of(cell)} | {predicted:.3f} | {measured:.3f} | {predicted / measured - 1:+.1%} | '
              f'{", ".join(f"{error:+.1%}" for error in cell["errors"])} |')


def print_errors(cells):
    def line(name, errors):
        print(f'| {name} | {study.percent(statistics.median(errors))} | {study.percent(share_of(errors, 0.9))} |')

    def errors(key, term):
        return [abs(cell[key][term] - cell['measured'][term]) / cell['measured']['step'] for cell in cells]

    print(f'\n{len(cells)} cells; errors as a share of the measured step\n\n| term | median | 90 % |\n|---|---|---|')
    for term in ('step',) + TERMS:
        line(term, errors('predicted', term))
    line('step, without shared cores', errors('dedicated', 'step'))
    line('step, for cores as fast as just before the cell', errors('rescaled', 'step'))
    print('\n| | step: median | 90 % | cells |\n|---|---|---|---|')
    for key in ('net', 'ranks', 'rate', 'scheme', 'period'):
        for value in dict.fromkeys(cell[key] for cell in cells):
            some = [abs(c['predicted']['step'] / c['measured']['step'] - 1) for c in cells if c[key] == value]
            print(f'| {key} {value} | {study.percent(statistics.median(some))} | {study.percent(share_of(some, 0.9))} | {len(some)} |')


def print_regret(cells):
    """Of what is measured of a network, ranks and links: the planner's choice against the best."""
    print('\n| network, ranks, links | chosen | best | regret |\n|---|---|---|---|')
    for world in dict.fromkeys(map(world_of, cells)):
        here = [cell for cell in cells if world_of(cell) == world]
        if len(here) < 2:
            continue
        chosen = min(here, key=lambda cell: cell['predicted']['step'])
        best = min(here, key=lambda cell: cell['measured']['step'])
        regret = chosen['measured']['step'] / best['measured']['step'] - 1
        print(f'| {", ".join(map(str, world))} | {chosen["scheme"]}, H {chosen["period"]} | {best["scheme"]}, H {best["period"]} | '
              f'{study.percent(regret)} |')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', default='runs/planner_cells')
    parser.add_argument('--cells', type=int, default=120, help='as many of all cells as this, the same in every run')
    parser.add_argument('--most-seconds', type=float, default=40, help='predicted, of a cell')
    parser.add_argument('--only', default='', help='measure only cells whose name matches this regular expression')
    parser.add_argument('--passes', type=int, default=1, help='measure facts, links and every cell so many times; printed are medians')
    parser.add_argument('--minutes', type=float, default=float('inf'), help='begin no cell after so long; the same command continues')
    parser.add_argument('--choose-only', action='store_true', help='measure facts and links, and choose the cells')
    parser.add_argument('--print-only', action='store_true', help='what has been measured so far')
    args = parser.parse_args()
    args.out, args.data, args.programs = map(os.path.abspath, (args.out, args.data, args.programs))
    registered = os.path.join(args.out, 'cells.json')
    if args.print_only and not os.path.exists(registered):
        parser.error(f'{registered} is not there: no cells have been chosen, and nothing has been measured')
    os.makedirs(args.out, exist_ok=True)
    if not args.print_only:  # facts do not say with which settings they were measured
        study.once(args, os.path.join(args.out, 'settings.json'), lambda: {'set': args.set})
    if not os.path.exists(registered):
        write(registered, choose_cells(args))
    chosen = read(registered)
    print(f'{len(chosen["cells"])} cells chosen at {chosen["written"]} by {chosen["version"]}', flush=True)
    if args.choose_only:
        return
    end = time.monotonic() + 60 * args.minutes
    passes = [measure_all(pass_of(args, number), chosen['cells'], end) for number in range(1, args.passes + 1)]
    done = [{**cell, **medians_of(results)} for cell, *results in zip(chosen['cells'], *passes) if all(results)]
    if done:
        print_cells(done)
        print_errors(done)
        print_regret(done)


if __name__ == '__main__':
    main()
