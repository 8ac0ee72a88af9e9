#!/usr/bin/python3
"""Which learning rate is best for a data set: one config at several rates, each a training run whose result is a file.

A file is written when its run is done, so that the same command continues with those that are missing.

  apps/studies/rates.py --data FOLDER --out FOLDER [--rates 0.175,0.35,0.7,1.4,2.8] [--epochs 12] [--seeds 1] [--set ...]
"""
import argparse
import os
import statistics

import study


def run_cell(args, epochs, rate, seed):
    run = study.train(args, args.config, [f'optim.learning_rate={rate}', f'train.epochs={epochs}', f'train.seed={seed}'],
                      threads=args.threads)
    return {'name': args.name, 'set': args.set, 'epochs': epochs, 'rate': rate, 'seed': seed, 'steps': len(run.steps),
            'seconds': sum(step['step_ms'] for step in run.steps) / 1000,
            'loss': [step['loss'] for step in run.steps],
            'evaluations': [[line['epoch'], line['accuracy'], line['loss']] for line in run.evaluations]}


def measure(args, epochs, rate, seed):
    path = os.path.join(args.out, f'{args.name}-e{epochs:g}-r{rate:g}-s{seed}.json')
    return study.once(args, path, lambda: run_cell(args, epochs, rate, seed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', required=True, help='folder, a file for each run')
    parser.add_argument('--name', help='of the data set, in file names (default: the last part of --data)')
    parser.add_argument('--config', default=study.SIXTEEN_EPOCHS)
    parser.add_argument('--rates', default='0.175,0.35,0.7,1.4,2.8')
    parser.add_argument('--epochs', default='12')
    parser.add_argument('--seeds', default='1')
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    args.name = args.name or os.path.basename(os.path.normpath(args.data))
    os.makedirs(args.out, exist_ok=True)
    for epochs in map(float, args.epochs.split(',')):
        for rate in map(float, args.rates.split(',')):
            results = [measure(args, epochs, rate, int(seed)) for seed in args.seeds.split(',')]
            course = ' '.join(f'{100 * accuracy:.1f}' for _, accuracy, _ in results[0]['evaluations'])
            mean = statistics.mean(result['evaluations'][-1][1] for result in results)
            print(f'| {args.name} | {epochs:g} | {results[0]["steps"]} | {rate:g} | {study.percent(mean)} | {course} |', flush=True)


if __name__ == '__main__':
    main()
