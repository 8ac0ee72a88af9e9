#!/usr/bin/python3
"""Accuracy of local rounds, from the emulator (apps/emulator/): tables of training runs, each a cell.

Cells train configs/dogs_vs_cats.textproto for 12 epochs on 64 pixels of real images, cat and dog 0 .. 4999, and validate on 5000 ..
9999; --recipe full trains the default recipe (16 epochs, images that grow) on 0 .. 9999 and validates on the rest. Each cell is a
file in --out, written when it is done; the same command continues with the cells that are missing, and prints all as tables.

  apps/studies/local_rounds.py --data ~/dogs-vs-cats/train --dry-run                     # tables, cells, CPU minutes
  apps/studies/local_rounds.py --data ~/dogs-vs-cats/train                               # all tables, the most important first
  apps/studies/local_rounds.py --data ... --tables first,overlap --seeds 1,2,3
  apps/studies/local_rounds.py --data ... --recipe full --modes alone,untouched,rounds8 --seeds 1,2,3

  first    8 ranks, Muon, overlapped, 8 bits, 32 or 64 images a rank: what a plan would choose
  overlap  rounds that travel while the next is computed, and rounds that are waited for
  batch    32 .. 256 images a rank, 8 ranks, dense and rounds
  coding   differences of 32, 8 and 4 bits, and the largest 1 %
  outer    rate and momentum of the outer optimizer
  period   H x ranks x optimizer, global batch 64, the plain mean

Overlapped rounds always keep what a rank has done since it offered its change (LocalRound): without this correction the steps of
every second round would be lost, so there is no field that leaves it out, and no column here.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import statistics
import sys

import local_rounds_cells as plan
import study


def command_of(args, cell):
    script = ['compute.ms_per_image=1']  # no time is measured here
    overrides = cell.overrides() + args.set
    return [os.path.join(args.programs, 'dogs_vs_cats'), 'emulate', '--json', '--data', args.data, '--threads', str(args.threads),
            '--config', os.path.join(study.ROOT, 'configs/dogs_vs_cats.textproto')] + study.sets(overrides) + [
                word for field in [f'workers={cell.ranks}'] + script for word in ('--script-set', field)]


def path_of(args, cell):
    return os.path.join(args.out, cell.name + '.json')


def read(args, cell):
    path = path_of(args, cell)
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def make_cell(args, cell):
    """The cell's file; a cell that diverges is a result, too (exit code 3)."""
    path = path_of(args, cell)
    with open(path + '.out', 'w+', encoding='utf-8') as out:
        program = command_of(args, cell)
        pid = os.posix_spawn(program[0], program, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_OPEN, 2, path + '.err', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)])
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        text = out.read()
    status = os.waitstatus_to_exitcode(status)
    if status not in (0, 3):
        raise SystemExit(f'{" ".join(program)}\nended with {status}: {path}.err says why')
    result = {'cell': dataclasses.asdict(cell), 'set': args.set, 'threads': args.threads,
              'cpu_s': usage.ru_utime + usage.ru_stime, **json.loads(text)}
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(result, file, indent=1)
    os.rename(path + '.part', path)
    for end in ('.out', '.err'):
        os.remove(path + end)
    sys.stdout.write(f'{cell.name}: {text_of([result])}, {result["cpu_s"] / 60:.1f} CPU minutes\n')
    sys.stdout.flush()


def text_of(results):
    results = [result for result in results if result]
    if not results:
        return ''
    if any(result['not_finite'] for result in results):
        return 'diverged'
    values = [result['accuracy'] for result in results]
    spread = f' ± {100 * statistics.stdev(values):.2f}' if len(values) > 1 else ''
    return study.percent(statistics.mean(values)) + spread


def varying(cells):
    """The fields in which the cells of a table differ."""
    return [field.name for field in dataclasses.fields(plan.Cell)
            if field.name != 'seed' and len({getattr(cell, field.name) for cell in cells}) > 1]


def print_table(args, name, cells):
    """A row for each cell, the mean over its seeds; cells of the period's table as H by ranks."""
    print(f'\n{name}, validation accuracy\n')
    by_cell = {}
    for cell in cells:
        by_cell.setdefault(dataclasses.replace(cell, seed=0), []).append(read(args, cell))
    if name == 'period':
        for optimizer in plan.OPTIMIZERS:
            ranks = sorted({cell.ranks for cell in by_cell})
            print(f'| H, {optimizer} | ' + ' | '.join(f'{n} ranks' for n in ranks) + ' |\n|---|' + '---|' * len(ranks))
            for steps in ['dense'] + plan.LENGTHS:
                row = [text_of([result for cell, results in by_cell.items() for result in results
                                if (cell.optimizer, cell.steps, cell.ranks) == (optimizer, steps, n)]) for n in ranks]
                print(f'| {steps} | ' + ' | '.join(row) + ' |')
            print()
        return
    fields = varying(cells) or ['ranks']
    print('| ' + ' | '.join(fields + ['accuracy', 'MB sent by a rank']) + ' |\n|' + '---|' * (len(fields) + 2))
    for cell, results in by_cell.items():
        known = [result for result in results if result]
        sent = f'{known[0]["sent_bytes"] / cell.ranks / 1e6:.1f}' if known else ''
        print('| ' + ' | '.join([str(getattr(cell, field)) for field in fields] + [text_of(results), sent]) + ' |')


def print_estimates(args, tables):
    """From COSTS, scaled by what measured cells took."""
    known = [(cell, read(args, cell)) for cells in tables.values() for cell in cells]
    ratios = [result['cpu_s'] / cell.seconds() for cell, result in known if result and result.get('cpu_s')]
    scale = statistics.median(ratios) if ratios else 1
    print(f'{len(ratios)} cells are measured: {scale:.2f} times the costs of local_rounds_cells.py')
    counted, everything = set(), 0
    for name, cells in tables.items():
        left = [cell for cell in dict.fromkeys(cells) if cell not in counted and read(args, cell) is None]
        counted.update(left)
        minutes = scale * sum(cell.seconds() for cell in left) / 60
        everything += minutes
        print(f'\n{name}: {len(cells)} cells, {len(left)} to do beside the tables above, {minutes:.0f} CPU minutes')
        for cell in left:
            print(f'  {scale * cell.seconds() / 60:6.1f}  {cell.name}')
    print(f'\nin all {everything:.0f} CPU minutes, {everything / args.jobs / args.threads / 60:.1f} hours')


def tables_of(args):
    seeds = [int(seed) for seed in args.seeds.split(',')]

    def seeded(cells):
        return [dataclasses.replace(cell, seed=seed) for seed in seeds for cell in cells]

    if args.recipe == 'full':
        epochs = args.epochs or 16
        return {'full': seeded([dataclasses.replace(plan.MODES[mode], full=True, epochs=epochs) for mode in args.modes.split(',')])}
    cells = {name: plan.TABLES[name] for name in args.tables.split(',')}
    return {name: seeded([dataclasses.replace(cell, epochs=args.epochs or 12) for cell in table]) for name, table in cells.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', default='runs/local_rounds')
    parser.add_argument('--tables', default=','.join(plan.TABLES), help='in this order')
    parser.add_argument('--recipe', default='short', choices=['short', 'full'])
    parser.add_argument('--modes', default=','.join(plan.MODES), help='of the full recipe')
    parser.add_argument('--seeds', default='1')
    parser.add_argument('--epochs', type=float, default=0, help='0: 12, full 16')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)), help='cells at once')
    parser.add_argument('--threads', type=int, default=1, help='of each cell')
    parser.add_argument('--dry-run', action='store_true', help='only say what there is to do')
    args = parser.parse_args()
    unknown = [name for name in args.tables.split(',') if name not in plan.TABLES] + [
        mode for mode in args.modes.split(',') if mode not in plan.MODES]
    if unknown:
        parser.error(f'{unknown[0]}: tables are {", ".join(plan.TABLES)}, modes {", ".join(plan.MODES)}')
    tables = tables_of(args)
    if args.dry_run:
        return print_estimates(args, tables)
    os.makedirs(args.out, exist_ok=True)
    cells = [cell for cell in dict.fromkeys(cell for cells in tables.values() for cell in cells) if read(args, cell) is None]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = [pool.submit(make_cell, args, cell) for cell in cells]
        try:
            for cell in concurrent.futures.as_completed(running):
                cell.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for name, cells in tables.items():
        print_table(args, name, cells)


if __name__ == '__main__':
    main()
