#!/usr/bin/python3
"""Asynchronous training (dist/parameter_server/), from the emulator: tables of training runs, each a cell.

Cells train a small residual network (asynchronous.textproto) on 32 pixels of real images, cat and dog 0 .. 2499, and validate on
2500 .. 4999. Each cell is a file in --out, written when it is done; the same command continues with the cells that are missing,
and prints all as tables.

  apps/studies/asynchronous.py --data ~/dogs-vs-cats/train --seeds 1,2,3
  apps/studies/asynchronous.py --data ... --tables staleness --seeds 1

  soft_sync   n-softsync with 30 workers (Zhang et al. 2016): accuracy by n, each gradient by 1 or by 1 / tau
  staleness   how late gradients are in these cells, beside theory: n updates in the mean
  workers     rules by workers, as published
  safe        the same with what a config gets unless it says as_published
  late        compensation from the start and from half of the run on
"""
import argparse
import dataclasses

import cells

IMAGES = 5000
SPLIT = ['data.split.train.first=0', 'data.split.train.last=2499', 'data.split.validation.first=2500', 'data.split.validation.last=4999']
WORKERS = [1, 4, 8, 16, 32]
SPLITS = [1, 2, 5, 15, 30]
SOFT_WORKERS, SOFT_BATCH, BATCH = 30, 4, 16
# A worker's step takes 16 ms on average and varies as on a machine that others use, too; the wire costs nothing.
SCRIPT = ['compute.ms_per_image=1', 'compute.jitter=0.2', 'between_hosts.mbit_per_s=1e6', 'between_hosts.latency_us=0']
NO_MOMENTUM = ['optim.sgd.momentum=0']
RULES = {
    'synchronous': ['rule=SYNCHRONOUS'],
    'asynchronous': ['rule=ASYNCHRONOUS'],
    'DC constant': ['rule=DC_CONSTANT'],
    'DC adaptive': ['rule=DC_ADAPTIVE'],
    'stale synchronous 3': ['rule=STALE_SYNC', 'bound=3'],
    'Ringmaster': ['rule=RINGMASTER', 'discard_after=8'],
    'DANA': ['rule=DANA'],
}


@dataclasses.dataclass(frozen=True)
class Cell:
    label: str
    workers: int
    batch: int
    fields: tuple          # of dist.asynchronous
    overrides: tuple = ()  # of the rest of the config
    seed: int = 1

    @property
    def name(self):
        kept = ''.join(c if c.isalnum() else '_' for c in self.label)
        return f'{kept}-{self.workers}-{self.seed}'

    def command(self, args):
        fields = [f'dist.asynchronous.{field}' for field in ('servers=1', 'overlap=false') + self.fields]
        overrides = SPLIT + [f'train.batch={self.batch}', 'train.evaluate_every_epochs=5', f'train.seed={self.seed}']
        return cells.emulate(args, 'apps/studies/asynchronous.textproto', overrides + fields + list(self.overrides),
                             SCRIPT + [f'workers={self.workers}'])


def soft_sync():
    for weight in ('ONE', 'INVERSE'):
        for n in SPLITS:
            yield Cell(f'softsync {n} {weight}', SOFT_WORKERS, SOFT_BATCH,
                       ('rule=SOFT_SYNC', 'as_published=true', f'splits={n}', f'weight={weight}'))


def by_workers(published):
    for label, fields in RULES.items():
        overrides = tuple(NO_MOMENTUM) if label == 'DANA' else ()
        if label == 'synchronous':  # the batch grows with the workers, and the rate with it
            overrides += ('optim.batch_scaling.rule=LINEAR', f'optim.batch_scaling.reference_batch={BATCH}')
        for workers in WORKERS:
            yield Cell(f'{label} {"published" if published else "safe"}', workers, BATCH,
                       (*fields, f'as_published={str(published).lower()}'), overrides)


def late():
    for form in ('CONSTANT', 'ADAPTIVE'):
        for epoch in (0, 10):
            for workers in (8, 32):
                yield Cell(f'DC {form} from epoch {epoch}', workers, BATCH,
                           (f'rule=DC_{form}', 'as_published=true', f'start_epoch={epoch}'))


TABLES = {'soft_sync': list(soft_sync()), 'staleness': list(soft_sync()), 'workers': list(by_workers(True)),
          'safe': list(by_workers(False)), 'late': list(late())}


def results_of(args, cell, seeds):
    return [cells.read(args, dataclasses.replace(cell, seed=seed).name) for seed in seeds]


def print_accuracies(args, group, seeds):
    """A row for each label, a column for each number of workers."""
    columns = sorted({cell.workers for cell in group})
    print('| | ' + ' | '.join(f'{n} workers' for n in columns) + ' |\n|---|' + '---|' * len(columns))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cells.add_arguments(parser, out='runs/asynchronous')
    parser.add_argument('--tables', default=','.join(TABLES), help='in this order')
    args = parser.parse_args()
    tables, seeds = args.tables.split(','), [int(seed) for seed in args.seeds.split(',')]
    for name in tables:
        if name not in TABLES:
            parser.error(f'{name}: tables are {", ".join(TABLES)}')
    group = [dataclasses.replace(cell, seed=seed) for name in tables for seed in seeds for cell in TABLES[name]]
    cells.make_all(args, [(cell.name, cell.command(args), dataclasses.asdict(cell)) for cell in group])
    for name in tables:
        print(f'\n{name}\n')
        (print_staleness if name == 'staleness' else print_accuracies)(args, TABLES[name], seeds)


if __name__ == '__main__':
    main()
