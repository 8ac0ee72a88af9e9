#!/usr/bin/python3
"""What weights from another data set are worth, by the number of images: Dogs-vs-Cats from a network that Ringtail trained on other
classes, and from scratch, with one recipe for both and for all numbers of images. Each cell is a training run whose result is a file;
the same command continues with those that are missing.

  apps/studies/fine_tuning.py --data ~/dogs-vs-cats/train --weights runs/tiny_imagenet --out runs/fine_tuning [--figure fine_tuning.svg]
      [--images 100,300,600,2000,20000] [--seeds 1,2,3]

Seed s trains on cats and dogs from number (s - 1) n / 2 on, n the number of images; 20,000 are the same ones for all seeds. All validate
on 10000 .. 11249 of each.
"""
import argparse
import os
import statistics
import time

import study

SEEN = 20_000  # images that a run trains on, however few there are; two epochs of more
HALF_OF_ALL = 10_000
WIDTH, HEIGHT, MARGIN = 560, 320, 56  # of the figure, pixels
COLOURS = {'scratch': '#8a8f98', 'weights': '#0b6e99'}
LABELS = {'scratch': 'from scratch', 'weights': 'from other classes'}
# The rest is the config's: the same optimizer, rate and augmentation with the weights and without.
SAME = ['data.image_size=48', 'train.batch=32', 'train.accumulation=1', 'data.split.validation.first=10000',
        'data.split.validation.last=11249']


def run_cell(args, start, images, seed):
    half = images // 2
    first = (seed - 1) * half % HALF_OF_ALL
    epochs = max(2, SEEN // images)
    overrides = SAME + [f'data.split.train.first={first}', f'data.split.train.last={first + half - 1}', f'train.epochs={epochs}',
                        f'train.evaluate_every_epochs={epochs}', f'train.seed={seed}']
    if start == 'weights':
        overrides.append(f'train.weights={os.path.abspath(args.weights)}')
    begin = time.monotonic()
    run = study.train(args, args.config, overrides, threads=args.threads)
    return {'start': start, 'images': images, 'seed': seed, 'epochs': epochs, 'set': args.set, 'accuracy': run.accuracy(),
            'steps': len(run.steps), 'step_s': sum(step['step_ms'] for step in run.steps) / 1000, 'whole_s': time.monotonic() - begin}


def measure(args, start, images, seed):
    path = os.path.join(args.out, f'{start}-{images}-s{seed}.json')
    return study.once(args, path, lambda: run_cell(args, start, images, seed))


def mean(results, key):
    return statistics.mean(result[key] for result in results)


def draw(path, images, cells):
    """Accuracy over the number of images, a mark for each run and a line through the means."""
    low = 10 * int(10 * min(result['accuracy'] for runs in cells.values() for result in runs))

    def place(i, accuracy):
        return (MARGIN + (WIDTH - 2 * MARGIN) * i / max(1, len(images) - 1),
                HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (100 * accuracy - low) / (100 - low))

    parts = []
    for percent in range(low, 101, 10):
        _, y = place(0, percent / 100)
        parts.append(f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/><text x="{MARGIN - 8}" y="{y + 4:.1f}" '
                     f'text-anchor="end">{percent} %</text>')
    for i, count in enumerate(images):
        x, _ = place(i, 1)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 20}" text-anchor="middle">{count:,}</text>')
    for row, (start, colour) in enumerate(COLOURS.items()):
        line = ' '.join('{:.1f},{:.1f}'.format(*place(i, mean(cells[start, count], 'accuracy'))) for i, count in enumerate(images))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for i, count in enumerate(images):
            for result in cells[start, count]:
                x, y = place(i, result['accuracy'])
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN - 30 + 18 * row}" text-anchor="end" '
                     f'fill="{colour}">{LABELS[start]}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">images to train on</text>')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">\n'
                   f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' + '\n'.join(parts) + '\n</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    study.add_arguments(parser)
    parser.add_argument('--weights', required=True, help='a run on other classes, or one of its files')
    parser.add_argument('--out', required=True, help='folder, a file for each run')
    parser.add_argument('--config', default='small_images.textproto')
    parser.add_argument('--images', default='100,300,600,2000,20000')
    parser.add_argument('--seeds', default='1,2,3')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--figure', help='an SVG file')
    args = parser.parse_args()
    images, seeds = [[int(word) for word in words.split(',')] for words in (args.images, args.seeds)]
    os.makedirs(args.out, exist_ok=True)
    print('| images | epochs | from scratch | from other classes | gain | seconds of steps, whole run: scratch, other classes |\n'
          '|---|---|---|---|---|---|')
    cells = {}
    for count in images:
        for start in LABELS:
            cells[start, count] = [measure(args, start, count, seed) for seed in seeds]
        scratch, weights = cells['scratch', count], cells['weights', count]
        each = [study.percent(mean(runs, 'accuracy')) + ' (' + ', '.join(f'{100 * run["accuracy"]:.2f}' for run in runs) + ')'
                for runs in (scratch, weights)]
        gain = 100 * (mean(weights, 'accuracy') - mean(scratch, 'accuracy'))
        print(f'| {count:,} | {scratch[0]["epochs"]} | {each[0]} | {each[1]} | {gain:+.1f} | '
              f'{mean(scratch, "step_s"):.0f}, {mean(scratch, "whole_s"):.0f}; {mean(weights, "step_s"):.0f}, {mean(weights, "whole_s"):.0f} |',
              flush=True)
    if args.figure:
        draw(args.figure, images, cells)


if __name__ == '__main__':
    main()
