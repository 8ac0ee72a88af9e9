#!/usr/bin/python3
"""Time until a network of the default recipe is right in 95 % of held-out images: one host, hosts with a plan, PyTorch's DDP.

Nothing is measured here. The time is the images until the first epoch's end whose evaluation reaches --accuracy (curves of
local_rounds.py --recipe full, mean over seeds), at the speed of its image size (host_speeds.py), without evaluations:

  one host         the curve of one host, 256 images a step, at eight times the speed of one core alone
  hosts, planned   the curve of eight ranks with `top_k 1%`, 256 images in all, at the speed of the hosts with their plans
  hosts, other     the curve of one host, of whose gradients dense sums differ by rounding and `linear8` and `hylo` by little (local_rounds.md),
                   at the speed of a few steps (host_speeds.py --ways), as far as there are image sizes
  DDP              the curve of one host: so many steps of 256 images; images/s of tests/compare/ddp_step.py, one number for each of
                   64, 96 and 128 pixels. A few steps, extrapolated; its SGD may need more of them than Muon does

  apps/studies/time_to_accuracy.py --curves runs/local_rounds --speeds runs/host_speeds --ddp 1491,1445,1406
"""
import argparse
import dataclasses
import json
import os
import statistics
import types

import host_speeds
import local_rounds_cells

IMAGES = local_rounds_cells.FULL_IMAGES  # of an epoch
HOSTS, CORES, RATE = 8, 8, '1gbit'
OTHER_WAYS = ('dense', 'linear8', 'hylo')


def curves(args, mode):
    """Of all seeds that are there."""
    for seed in range(1, 10):
        cell = dataclasses.replace(local_rounds_cells.MODES[mode], full=True, epochs=16, seed=seed)
        path = os.path.join(args.curves, cell.name + '.json')
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                found = json.load(file).get('curve')
            if found:
                yield found


def epochs_until(curve, accuracy):
    """None: never."""
    return next((round(epoch) for epoch, reached in curve if reached >= accuracy), None)


def seconds(epochs, speeds):
    """Of the first so many epochs; `speeds` by image size, in images per second."""
    total = 0
    for pixels, speed in speeds.items():
        before, end = host_speeds.epochs_of(pixels)
        total += max(0, min(end, epochs) - before) * IMAGES / speed
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--curves', default='runs/local_rounds')
    parser.add_argument('--speeds', default='runs/host_speeds')
    parser.add_argument('--ddp', default='', help='images/s at 64, 96 and 128 pixels')
    parser.add_argument('--accuracy', type=float, default=0.95)
    args = parser.parse_args()
    measured = types.SimpleNamespace(out=args.speeds, print_only=True)
    ways = {'one host': ('alone', {pixels: host_speeds.one_host(measured, HOSTS, CORES, pixels, False) for pixels in host_speeds.RECIPE}),
            f'{HOSTS} hosts, planned': ('top_k_1_sums', host_speeds.recipe_speeds(measured, HOSTS, CORES, RATE))}
    for way in OTHER_WAYS:
        speeds = {pixels: host_speeds.speed(host_speeds.cell(measured, HOSTS, CORES, RATE, pixels, way=way)) for pixels in host_speeds.RECIPE}
        ways[f'{HOSTS} hosts, {way}'] = ('alone', speeds)
    if args.ddp:
        ways[f'DDP on {HOSTS} hosts'] = ('alone', dict(zip(host_speeds.RECIPE, map(float, args.ddp.split(',')), strict=True)))
    print(f'| way | epochs until {args.accuracy:.0%}, by seed | seconds, mean | all {sum(host_speeds.RECIPE.values())} epochs |\n|---|---|---|---|')
    for way, (mode, speeds) in ways.items():
        if not all(speeds.values()):
            print(f'| {way} | its speed is not in {args.speeds} | | |')
            continue
        epochs = [epochs_until(curve, args.accuracy) for curve in curves(args, mode)]
        if not epochs:
            print(f'| {way} | its curve is not in {args.curves} | | |')
            continue
        reached = [seconds(each, speeds) for each in epochs if each is not None]
        mean = f'{statistics.mean(reached):.0f}' if reached and len(reached) == len(epochs) else ''
        print(f'| {way} | {", ".join(str(each or "never") for each in epochs)} | {mean} | '
              f'{seconds(sum(host_speeds.RECIPE.values()), speeds):.0f} |')


if __name__ == '__main__':
    main()
