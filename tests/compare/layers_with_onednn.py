#!/usr/bin/python3
"""A table per layer of a network: convolutions by oneDNN alone, by the fastest algorithms, and what the machine allows.

The two are timed in alternating runs of `dogs_vs_cats time`; a figure is the median over the rounds of a layer's medians.
`arithmetic` is the time of the layer's multiplications, done directly, at the given peak; `memory` that of moving its
input, its parameters and its output once forward, and four times as much (with the gradients) for a step. Winograd
does a quarter of the multiplications for 3x3 layers of stride 1, so that its times may lie below `arithmetic`.

  tests/compare/layers_with_onednn.py --net resnet18:128:32 --gflops 236 --gb-per-s 30
"""
import argparse
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(args, convolution):
    name, size, batch = args.net.split(':')
    command = [args.program, 'time', '--config', os.path.join(ROOT, 'configs', name + '.textproto'), '--batch', batch,
               '--set', f'data.image_size={size}', '--iterations', str(args.steps), '--json']
    if convolution != 'FASTEST':
        command += ['--set', f'net.convolution={convolution}']
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def step_ms(layer):
    return layer['forward_ms'] + layer['backward_ms']


def flops(layer):  # of a step
    return (layer['forward_gflop_per_s'] * layer['forward_ms'] + layer['backward_gflop_per_s'] * layer['backward_ms']) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--net', default='resnet18:128:32', help='name:size:batch')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=7)
    parser.add_argument('--gflops', type=float, required=True, help='peak of the threads in use')
    parser.add_argument('--gb-per-s', type=float, required=True, help='memory bandwidth of the threads in use')
    args = parser.parse_args()
    rounds = [(run(args, 'ONEDNN'), run(args, 'FASTEST')) for _ in range(args.rounds)]
    print('| layer | oneDNN ms | fastest ms | ratio | arithmetic ms | memory ms | algorithms |')
    print('|---|---|---|---|---|---|---|')
    others, totals = [0, 0], [0, 0]
    for i, layer in enumerate(rounds[0][1]['layers']):
        times = [statistics.median(step_ms(pair[side]['layers'][i]) for pair in rounds) for side in (0, 1)]
        totals = [a + b for a, b in zip(totals, times)]
        if not layer['kind'].startswith('convolution'):
            others = [a + b for a, b in zip(others, times)]
            continue
        arithmetic = statistics.median(flops(pair[1]['layers'][i]) for pair in rounds) / args.gflops * 1e3
        memory = 4 * layer['traffic_mib'] * 2**20 / args.gb_per_s / 1e6
        print(f"| {layer['name']} | {times[0]:.2f} | {times[1]:.2f} | {times[0] / times[1]:.2f} | {arithmetic:.2f} | "
              f"{memory:.2f} | {layer['implementation']} |")
    print(f'| layers other than convolutions | {others[0]:.2f} | {others[1]:.2f} | {others[0] / others[1]:.2f} | | | |')
    print(f'| all layers | {totals[0]:.2f} | {totals[1]:.2f} | {totals[0] / totals[1]:.2f} | | | |')
    steps = [statistics.median(pair[side]['step_ms'] for pair in rounds) for side in (0, 1)]
    print(f'| step | {steps[0]:.2f} | {steps[1]:.2f} | {steps[0] / steps[1]:.2f} | | | |')


if __name__ == '__main__':
    main()
