#!/usr/bin/python3
"""Asynchronous training (dist/parameter_server/), from the emulator: tables of training runs, each a cell.

Cells train a small residual network (asynchronous.textproto), but for the last table, on 32 pixels of real images, cat and dog 0 ..
2499, and validate on 2500 .. 4999. Each cell is a file in --out, written when it is done; the same command continues with the cells
that are missing, and prints all as tables. apps/studies/asynchronous.md has results.

  apps/studies/asynchronous.py --data ~/dogs-vs-cats/train --dry-run                # tables, cells, CPU minutes
  apps/studies/asynchronous.py --data ~/dogs-vs-cats/train --seeds 1,2,3            # all tables, the most important first
  apps/studies/asynchronous.py --data ... --tables staleness --seeds 1

  soft_sync    n-softsync with 30 workers (Zhang et al. 2016): accuracy by n, each gradient by 1 or by 1 / tau
  staleness    how late gradients are in these cells, beside theory: n updates in the mean
  workers      rules by workers, as published
  straggler    one of 8 workers at 20 %, from the start and from the middle, all in the same virtual time
  optimizers   Muon, LARS and SGD on servers
  compression  pushes through codecs, and pulls of fewer bytes
  late         compensation from the start and from half of the run on
  safe         rules by workers, with what a config gets unless it says as_published
  many         4 to 32 workers beside synchronous training, with the same settings; 8 and 32 four times as long
  default      the best rules with the default network and 8 workers
"""
import argparse
import dataclasses

import asynchronous_cells as plan
import cells


def command_of(args, cell):
    return cells.emulate(args, cell.network, cell.config(), cell.events())


def results_of(args, cell, seeds):
    return [cells.read(args, dataclasses.replace(cell, seed=seed).name) for seed in seeds]


def print_accuracies(args, group, seeds):
    """A row for each label, a column for each number of workers."""
    columns = sorted({cell.workers for cell in group})
    print('| | ' + ' | '.join(f'{n} worker{"s" * (n > 1)}' for n in columns) + ' |\n|---|' + '---|' * len(columns))
    for label in dict.fromkeys(cell.label for cell in group):
        row = [cells.text_of([result for cell in group if (cell.label, cell.workers) == (label, n)
                              for result in results_of(args, cell, seeds)]) for n in columns]
        print(f'| {label} | ' + ' | '.join(row) + ' |')


def print_staleness(args, group, seeds):
    print('| | mean | theory | 95 % | most | within 2 n |\n|---|---|---|---|---|---|')
    for cell in group:
        known = [result['staleness'] for result in results_of(args, cell, seeds) if result]
        if not known:
            continue
        n = int(cell.label.split()[1])
        histogram = [sum(counts) for counts in zip(*[late['histogram'] + [0] * 99 for late in known])]
        within = sum(histogram[:2 * n + 1]) / sum(histogram)
        mean = sum(tau * count for tau, count in enumerate(histogram)) / sum(histogram)
        print(f'| {cell.label} | {mean:.2f} | {n} | {max(late["p95"] for late in known)} | {max(late["max"] for late in known)} '
              f'| {100 * within:.2f} % |')


def print_runs(args, group, seeds):
    """A row for each cell: times and bytes are virtual, of the first seed that is there."""
    print('| | workers | accuracy | virtual s | images/s | MB sent by a worker |\n|---|---|---|---|---|---|')
    for cell in group:
        results = results_of(args, cell, seeds)
        first = next((result for result in results if result), None)
        if first is None:
            continue
        print(f'| {cell.label} | {cell.workers} | {cells.text_of(results)} | {first["virtual_s"]:.1f} | {first["images_per_s"]:.0f} '
              f'| {first["sent_bytes"] / cell.workers / 1e6:.1f} |')


PRINT = {'staleness': print_staleness, 'straggler': print_runs, 'compression': print_runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cells.add_arguments(parser, out='runs/asynchronous')
    parser.add_argument('--tables', default=','.join(plan.TABLES), help='in this order')
    parser.add_argument('--dry-run', action='store_true', help='only say what there is to do')
    args = parser.parse_args()
    tables, seeds = args.tables.split(','), [int(seed) for seed in args.seeds.split(',')]
    for name in tables:
        if name not in plan.TABLES:
            parser.error(f'{name}: tables are {", ".join(plan.TABLES)}')
    seeded = {name: [dataclasses.replace(cell, seed=seed) for seed in seeds for cell in plan.TABLES[name]] for name in tables}
    if args.dry_run:
        return cells.print_estimates(args, seeded)
    cells.make_all(args, [(cell.name, command_of(args, cell), dataclasses.asdict(cell)) for group in seeded.values() for cell in group])
    for name in tables:
        print(f'\n{name}\n')
        PRINT.get(name, print_accuracies)(args, plan.TABLES[name], seeds)


if __name__ == '__main__':
    main()
