#!/usr/bin/python3
"""Accuracy in FLOAT32 beside BFLOAT16: three recipes on real images, each at several seeds, each run a file.

A file is written when its run is done, so that the same command continues with those that are missing. Means, the standard error of
their difference, and a figure of all courses are made from what is there.

  apps/studies/precision.py --data ~/dogs-vs-cats/train --out runs/precision [--recipes default,resnet18,mobilenet_v2] [--seeds 1,2,3]

  default       sixteen_epochs.textproto: the default recipe until 2026-11-26 (Muon, 16 epochs of 64 to 128 pixels)
  resnet18      SGD 0.1, Nesterov, batch 128, 64 pixels, 8 epochs of 10,000 images
  mobilenet_v2  Adam 0.001, batch 64, 96 pixels, 8 epochs of 10,000 images

Kaggle's names: cat and dog 0 .. 9999 (of the last two 0 .. 4999) are trained on, those from 10000 validate. A seed draws the weights, the
order and the augmentation, in both precisions the same.
"""
import argparse
import json
import math
import os
import statistics

import study

PRECISIONS = {'FLOAT32': '#c05020', 'BFLOAT16': '#2060c0'}  # and the colour of their courses
SHORT = ['train.epochs=8', 'data.split.train.first=0', 'data.split.train.last=4999']
RECIPES = {
    'default': (study.SIXTEEN_EPOCHS, ['data.split.train.first=0', 'data.split.train.last=9999']),
    'resnet18': ('resnet18.textproto', SHORT + ['data.image_size=64']),
    'mobilenet_v2': ('mobilenet_v2.textproto', SHORT + ['data.image_size=96', 'optim.adam.beta1=0.9', 'optim.learning_rate=0.001']),
}
VALIDATION = ['data.split.validation.first=10000', 'data.split.validation.last=12499']
WIDTH, HEIGHT, MARGIN = 360, 240, 40  # of a chart, pixels


def path_of(args, recipe, precision, seed):
    return os.path.join(args.out, f'{recipe}-{precision}-s{seed}.json')


def measure(args, recipe, precision, seed):
    path = path_of(args, recipe, precision, seed)
    if os.path.exists(path):
        return
    config, overrides = RECIPES[recipe]
    run = study.train(args, config, overrides + VALIDATION + [f'train.precision={precision}', f'train.seed={seed}'], threads=args.threads)
    result = {'recipe': recipe, 'precision': precision, 'seed': seed, 'set': args.set, 'threads': args.threads, 'steps': len(run.steps),
              'step_s': sum(step['step_ms'] for step in run.steps) / 1000,
              'evaluations': [[line['epoch'], line['accuracy'], line['loss']] for line in run.evaluations]}
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(result, file)
    os.rename(path + '.part', path)
    print(f'{recipe} {precision} seed {seed}: {study.percent(run.accuracy())}, {result["step_s"]:.0f} s of steps', flush=True)


def known(args, recipe, precision, seeds):
    results = []
    for seed in seeds:
        path = path_of(args, recipe, precision, seed)
        if os.path.exists(path):
            results.append(study.read_result(args, path))
    return results


def accuracies(results):
    return [result['evaluations'][-1][1] for result in results]


def print_row(recipe, single, half):
    """Means, and the difference beside its standard error, from the runs of either precision as independent samples."""
    if min(len(single), len(half)) < 2:
        print(f'| {recipe} | {len(single)} and {len(half)} runs |')
        return
    a, b = accuracies(single), accuracies(half)
    error = math.sqrt(statistics.variance(a) / len(a) + statistics.variance(b) / len(b))
    print(f'| {recipe} | {study.percent(statistics.mean(a))} ({", ".join(f"{100 * value:.2f}" for value in a)}) '
          f'| {study.percent(statistics.mean(b))} ({", ".join(f"{100 * value:.2f}" for value in b)}) '
          f'| {100 * (statistics.mean(b) - statistics.mean(a)):+.2f} ± {100 * error:.2f} '
          f'| {statistics.median(r["step_s"] for r in single):.0f}, {statistics.median(r["step_s"] for r in half):.0f} |')


def chart(recipe, left, by_precision):
    """One recipe's courses: error over epochs, on a logarithmic axis, which shows the ends."""
    runs = [run for results in by_precision.values() for run in results]
    epochs = max(evaluation[0] for run in runs for evaluation in run['evaluations'])
    errors = [max(1 - evaluation[1], 1e-3) for run in runs for evaluation in run['evaluations']]
    low, high = math.log(min(errors)) - 0.1, math.log(max(errors)) + 0.1

    def x(epoch):
        return left + MARGIN + epoch / epochs * (WIDTH - MARGIN - 10)

    def y(error):
        return 30 + (high - math.log(max(error, 1e-3))) / (high - low) * (HEIGHT - 30 - MARGIN)

    parts = [f'<text x="{left + MARGIN}" y="18">{recipe}: validation error by epoch</text>']
    for error in (0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5):
        if low < math.log(error) < high:
            parts.append(f'<path d="M{x(0):.1f} {y(error):.1f}H{x(epochs):.1f}" stroke="#ccc"/>'
                         f'<text x="{left + MARGIN - 4}" y="{y(error) + 4:.1f}" text-anchor="end">{100 * error:.0f} %</text>')
    for epoch in range(0, round(epochs) + 1, max(1, round(epochs / 8))):
        parts.append(f'<text x="{x(epoch):.1f}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{epoch}</text>')
    for precision, results in by_precision.items():
        for run in results:
            points = ' '.join(f'{x(epoch):.1f},{y(1 - accuracy):.1f}' for epoch, accuracy, _ in run['evaluations'])
            parts.append(f'<polyline points="{points}" fill="none" stroke="{PRECISIONS[precision]}" stroke-width="1.2"/>')
    return ''.join(parts)


def draw(path, recipes):
    """`recipes`: name -> precision -> runs."""
    width = WIDTH * len(recipes)
    legend = ''.join(f'<text x="{MARGIN + 110 * i}" y="{HEIGHT - 4}" fill="{colour}">{name}</text>'
                     for i, (name, colour) in enumerate(PRECISIONS.items()))
    charts = '\n'.join(chart(recipe, WIDTH * i, runs) for i, (recipe, runs) in enumerate(recipes.items()))
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" font-family="sans-serif" font-size="11">'
                   f'<title>Validation error by epoch in FLOAT32 and BFLOAT16</title><rect width="{width}" height="{HEIGHT}" fill="white"/>\n'
                   f'{charts}\n{legend}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--out', required=True, help='folder, a file for each run')
    parser.add_argument('--recipes', default=','.join(RECIPES))
    parser.add_argument('--precisions', default=','.join(PRECISIONS))
    parser.add_argument('--seeds', default='1,2,3')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--figure', help='an SVG file, of what there is')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    names, seeds = args.recipes.split(','), [int(seed) for seed in args.seeds.split(',')]
    for recipe in names:
        for seed in seeds:
            for precision in args.precisions.split(','):
                measure(args, recipe, precision, seed)
    results = {recipe: {precision: known(args, recipe, precision, seeds) for precision in PRECISIONS} for recipe in names}
    print('\n| recipe | FLOAT32 | BFLOAT16 | difference, standard error | seconds of steps |\n|---|---|---|---|---|')
    for recipe, runs in results.items():
        print_row(recipe, *runs.values())
    if args.figure:
        draw(args.figure, {recipe: runs for recipe, runs in results.items() if any(runs.values())})


if __name__ == '__main__':
    main()
