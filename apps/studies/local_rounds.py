#!/usr/bin/python3
"""Accuracy of local rounds by steps of a round, number of ranks and optimizer, from the emulator (apps/emulator/).

Trains configs/dogs_vs_cats.textproto on 64 pixels of real images, cat and dog 0 .. 4999, validates on 5000 .. 9999; a
global batch of 64 whatever the ranks; 12 epochs. Each cell is a file in --out, written when the cell is done; the same
command continues with the cells that are missing, and prints all as tables. `dense`: gradients added up in every step.

  apps/studies/local_rounds.py --data ~/dogs-vs-cats/train [--out runs/local_rounds] [--steps dense,1,8,64]
  apps/studies/local_rounds.py --data ... --ranks 8 --steps 8,32 --outer 1:0,0.7:0.3,0.7:0.6 --overlapped
"""
import argparse
import itertools
import json
import os
import subprocess

import study

GLOBAL_BATCH = 64
# The rates follow the batch of a step (or that of all ranks: --rate-batch) from the one that they were found with.
OPTIMIZERS = {
    'muon': ['optim.batch_scaling.reference_batch=256'],
    'sgd': ['optim.sgd.momentum=0.9', 'optim.sgd.nesterov=true', 'optim.learning_rate=0.1',
            'optim.batch_scaling.rule=LINEAR', 'optim.batch_scaling.reference_batch=64'],
}
SAME = ['data.image_size=64', 'train.phase=', 'train.evaluation_image_size=64', 'train.accumulation=1',
        'data.split.train.first=0', 'data.split.train.last=4999', 'data.split.validation.first=5000',
        'data.split.validation.last=9999']


def cell_name(cell):
    name = '{optimizer}-{ranks}-{steps}-{outer}-{rate_batch}-{seed}'.format(**cell).replace(':', '_')
    return name + ('-overlapped' if cell['overlapped'] else '')


def command_of(args, cell):
    rate, momentum = cell['outer'].split(':')
    script = [f'workers={cell["ranks"]}', 'compute.ms_per_image=1']
    rounds = []
    if cell['steps'] != 'dense':
        rounds = [f'dist.local.period={cell["steps"]}', f'dist.local.outer_learning_rate={rate}',
                  f'dist.local.outer_momentum={momentum}', f'dist.local.rate_batch={args.rate_batch}',
                  f'dist.local.overlap={str(cell["overlapped"]).lower()}']
    overrides = SAME + rounds + OPTIMIZERS[cell['optimizer']] + [
        f'train.batch={GLOBAL_BATCH // cell["ranks"]}', f'train.epochs={args.epochs}',
        f'train.evaluate_every_epochs={args.epochs}', f'train.seed={cell["seed"]}'] + args.set
    return [os.path.join(args.programs, 'dogs_vs_cats'), 'emulate', '--json', '--data', args.data,
            '--config', os.path.join(study.ROOT, 'configs/dogs_vs_cats.textproto')] + study.sets(overrides) + [
                word for field in script for word in ('--script-set', field)] + (
                    ['--threads', str(args.threads)] if args.threads else [])


def make_cell(args, cell):
    """The cell's file; a cell that diverges is a result, too (exit code 3)."""
    path = os.path.join(args.out, cell_name(cell) + '.json')
    if os.path.exists(path):
        return
    done = subprocess.run(command_of(args, cell), capture_output=True, text=True)
    if done.returncode not in (0, 3):
        raise SystemExit(f'{" ".join(done.args)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}')
    result = dict(cell, epochs=args.epochs, set=args.set, **json.loads(done.stdout))
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(result, file, indent=1)
    os.rename(path + '.part', path)
    print(f'{cell_name(cell)}: {text_of([result])}', flush=True)


def text_of(results):
    if not results:
        return ''
    if any(result['not_finite'] for result in results):
        return 'diverged'
    return study.percent(sum(result['accuracy'] for result in results) / len(results))


def print_tables(args, ranks, steps):
    """A table for each optimizer and outer rule: a row for each H, a column for each number of ranks; means."""
    for optimizer, outer in itertools.product(args.optimizers.split(','), args.outer.split(',')):
        print(f'\n{optimizer}, outer rate and momentum {outer.replace(":", ", ")}'
              f'{", overlapped" if args.overlapped else ""}, rates for {args.rate_batch}\n')
        print('| H | ' + ' | '.join(f'{n} ranks' for n in ranks) + ' |\n|---|' + '---|' * len(ranks))
        for h in steps:
            row = []
            for n in ranks:
                results = []
                for cell in cells_of(args, [optimizer], [n], [h], [outer]):
                    path = os.path.join(args.out, cell_name(cell) + '.json')
                    if os.path.exists(path):
                        with open(path, encoding='utf-8') as file:
                            results.append(json.load(file))
                row.append(text_of(results))
            print(f'| {h} | ' + ' | '.join(row) + ' |')


def cells_of(args, optimizers, ranks, steps, outers):
    for optimizer, n, h, outer, seed in itertools.product(optimizers, ranks, steps, outers, args.seeds.split(',')):
        dense = h == 'dense'  # which has no outer optimizer
        yield {'optimizer': optimizer, 'ranks': n, 'steps': h, 'seed': int(seed), 'outer': '1:0' if dense else outer,
               'rate_batch': 'ALL_RANKS' if dense else args.rate_batch, 'overlapped': args.overlapped and not dense}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', default='runs/local_rounds')
    parser.add_argument('--steps', default='dense,1,2,4,8,16,32,64', help='H: steps of a round')
    parser.add_argument('--ranks', default='2,4,8', help='divisors of 64')
    parser.add_argument('--optimizers', default=','.join(OPTIMIZERS))
    parser.add_argument('--outer', default='1:0', help='rate:momentum of the outer optimizer; 1:0 is the plain mean')
    parser.add_argument('--overlapped', action='store_true', help='one round under way while the next is computed')
    parser.add_argument('--rate-batch', default='OWN', choices=['OWN', 'ALL_RANKS'],
                        help='the batch to which learning rates are scaled (dist.local.rate_batch)')
    parser.add_argument('--seeds', default='1')
    parser.add_argument('--epochs', type=float, default=12)
    parser.add_argument('--threads', type=int, default=0, help='of each emulation; 0: all cores')
    args = parser.parse_args()
    ranks, steps = [int(n) for n in args.ranks.split(',')], args.steps.split(',')
    os.makedirs(args.out, exist_ok=True)
    for cell in cells_of(args, args.optimizers.split(','), ranks, steps, args.outer.split(',')):
        make_cell(args, cell)
    print_tables(args, ranks, steps)


if __name__ == '__main__':
    main()
