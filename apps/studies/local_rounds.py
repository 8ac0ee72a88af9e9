#!/usr/bin/python3
"""Accuracy of local rounds, from the emulator (apps/emulator/): tables of training runs, each a cell.

Cells train sixteen_epochs.textproto for 12 epochs on 64 pixels of real images, cat and dog 0 .. 4999, and validate on 5000 ..
9999; --recipe full trains all of it (16 epochs, images that grow) on 0 .. 9999 and validates on the rest. Each cell is a
file in --out, written when it is done; the same command continues with the cells that are missing, and prints all as tables.

  apps/studies/local_rounds.py --data ~/dogs-vs-cats/train --dry-run                     # tables, cells, CPU minutes
  apps/studies/local_rounds.py --data ~/dogs-vs-cats/train                               # all tables, in the order below
  apps/studies/local_rounds.py --data ... --tables first,overlap --seeds 1,2,3
  apps/studies/local_rounds.py --data ... --recipe full --modes alone,untouched,rounds8 --seeds 1,2,3

  first    overlapped rounds in 8 bits, 8 ranks of 32 or 64 images, Muon; plans take no rounds
  overlap  rounds that travel while the next is computed, and rounds that are waited for; 8 ranks of 32 images
  batch    32 .. 256 images a rank, 8 ranks, dense and rounds
  coding   differences of 32, 8 and 4 bits, the largest 1 %, and these with 2 % of their sums and all else coded; 8 ranks of 32 images
  gradients  codecs in every step, 8 ranks of 32 or 64 images; three of them are those of plans (`coded`)
  outer    rate and momentum of the outer optimizer; 8 ranks of 32 images
  two      the outer momentum of 2 ranks of 32 or 128 images, H = 16, beside dense
  period   H x ranks x optimizer, global batch 64, the plain mean
  coded    beside it, 8, 4 and 2 ranks: the codecs of plans in every step

Overlapped rounds always keep what a rank has done since it offered its change (LocalRound): without this correction the steps of
every second round would be lost, so there is no field that leaves it out, and no column here.
"""
import argparse
import dataclasses

import cells
import local_rounds_cells as plan


def command_of(args, cell):
    args = argparse.Namespace(**{**vars(args), 'set': plan.settings_for(cell, args.set)})
    return cells.emulate(args, 'apps/studies/sixteen_epochs.textproto', cell.overrides(),
                         [f'workers={cell.ranks}', 'compute.ms_per_image=1'])  # no time is measured here


def read(args, cell):
    return cells.read(args, cell.name)


def varying(group):
    """The fields in which the cells of a table differ."""
    return [field.name for field in dataclasses.fields(plan.Cell)
            if field.name != 'seed' and len({getattr(cell, field.name) for cell in group}) > 1]


def print_table(args, name, group):
    """A row for each cell, the mean over its seeds; cells of the period's table as H by ranks."""
    print(f'\n{name}, validation accuracy\n')
    by_cell = {}
    for cell in group:
        by_cell.setdefault(dataclasses.replace(cell, seed=0), []).append(read(args, cell))
    if name == 'period':
        for optimizer in plan.OPTIMIZERS:
            ranks = sorted({cell.ranks for cell in by_cell})
            print(f'| H, {optimizer} | ' + ' | '.join(f'{n} ranks' for n in ranks) + ' |\n|---|' + '---|' * len(ranks))
            for steps in ['dense'] + plan.LENGTHS:
                row = [cells.text_of([result for cell, results in by_cell.items() for result in results
                                if (cell.optimizer, cell.steps, cell.ranks) == (optimizer, steps, n)]) for n in ranks]
                print(f'| {steps} | ' + ' | '.join(row) + ' |')
            print()
        return
    fields = varying(group) or ['ranks']
    print('| ' + ' | '.join(fields + ['accuracy', 'MB sent by a rank']) + ' |\n|' + '---|' * (len(fields) + 2))
    for cell, results in by_cell.items():
        known = [result for result in results if result]
        sent = f'{known[0]["sent_bytes"] / cell.ranks / 1e6:.1f}' if known else ''
        print('| ' + ' | '.join([str(getattr(cell, field)) for field in fields] + [cells.text_of(results), sent]) + ' |')


def tables_of(args):
    seeds = [int(seed) for seed in args.seeds.split(',')]

    def seeded(group):
        return [dataclasses.replace(cell, seed=seed) for seed in seeds for cell in group]

    if args.recipe == 'full':
        epochs = args.epochs or 16
        return {'full': seeded([dataclasses.replace(plan.MODES[mode], full=True, epochs=epochs) for mode in args.modes.split(',')])}
    return {name: seeded([dataclasses.replace(cell, epochs=args.epochs or 12) for cell in plan.TABLES[name]])
            for name in args.tables.split(',')}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cells.add_arguments(parser, out='runs/local_rounds')
    parser.add_argument('--tables', default=','.join(plan.TABLES), help='in this order')
    parser.add_argument('--recipe', default='short', choices=['short', 'full'])
    parser.add_argument('--modes', default=','.join(plan.MODES), help='of the full recipe')
    parser.add_argument('--epochs', type=float, default=0, help='0: 12, full 16')
    parser.add_argument('--dry-run', action='store_true', help='only say what there is to do')
    args = parser.parse_args()
    unknown = [name for name in args.tables.split(',') if name not in plan.TABLES] + [
        mode for mode in args.modes.split(',') if mode not in plan.MODES]
    if unknown:
        parser.error(f'{unknown[0]}: tables are {", ".join(plan.TABLES)}, modes {", ".join(plan.MODES)}')
    tables = tables_of(args)
    if args.dry_run:
        return cells.print_estimates(args, tables)
    cells.make_all(args, [(cell.name, command_of(args, cell), dataclasses.asdict(cell)) for group in tables.values() for cell in group])
    for name, group in tables.items():
        print_table(args, name, group)


if __name__ == '__main__':
    main()
