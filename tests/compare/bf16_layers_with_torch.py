#!/usr/bin/python3
"""A table per convolution of a network in bfloat16: Ringtail beside PyTorch, which calls oneDNN's kernels in their own layout.

Ringtail's figures are those of `dogs_vs_cats time --precision bf16`, in the network with its neighbours. PyTorch has each layer alone,
channels last, under autocast as a network would call it: weights are rounded in every call, and gradients of weights are bfloat16.
Both alternate, `--rounds` times; medians. Backward is both gradients (the first layer: of the weights alone). GFLOP/s count direct
convolution. The last column is PyTorch's error against double precision on operands that bfloat16 holds (forward, input, weights),
relative L2; Ringtail's are printed by layers_precision_test.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/bf16_layers_with_torch.py --net resnet50:224:8 [--rounds 3]
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F
import torchvision

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def shapes(name, size):
    """Of each convolution by name: input channels and size, output channels, kernel, stride, padding."""
    module, found, hooks = getattr(torchvision.models, name)(num_classes=2).eval(), {}, []
    for layer, m in module.named_modules():
        if isinstance(m, torch.nn.Conv2d):
            hooks.append(m.register_forward_hook(lambda m, inputs, _, layer=layer: found.__setitem__(
                layer, (*inputs[0].shape[1:3], m.out_channels, m.kernel_size[0], m.stride[0], m.padding[0]))))
    with torch.no_grad():
        module(torch.zeros(1, 3, size, size))
    return found


def torch_ms(shape, batch, first, steps):
    c, size, k, kernel, stride, padding = shape
    x = torch.randn(batch, c, size, size).to(torch.bfloat16).to(memory_format=torch.channels_last).requires_grad_(not first)
    w = torch.randn(k, c, kernel, kernel).to(memory_format=torch.channels_last).requires_grad_(True)
    times = [], []
    for _ in range(steps + 2):
        start = time.perf_counter()
        with torch.autocast('cpu', torch.bfloat16):
            y = F.conv2d(x, w, None, stride, padding)
        middle = time.perf_counter()
        torch.autograd.grad(y, [w] if first else [x, w], torch.ones_like(y))
        times[0].append(middle - start)
        times[1].append(time.perf_counter() - middle)
    return [statistics.median(t[2:]) * 1e3 for t in times]


def torch_errors(shape, first):
    c, size, k, kernel, stride, padding = shape
    results = []
    torch.manual_seed(1)
    x, w = torch.randn(2, c, size, size).relu().to(torch.bfloat16), (torch.randn(k, c, kernel, kernel) * (2 / c) ** 0.5 / kernel).to(torch.bfloat16)
    gradient = None
    for dtype in (torch.float64, torch.bfloat16):
        a, b = x.to(dtype).requires_grad_(True), w.to(dtype).requires_grad_(True)
        y = F.conv2d(a.to(memory_format=torch.channels_last), b, None, stride, padding)
        if gradient is None:
            gradient = torch.randn(y.shape).to(torch.bfloat16)
        results.append([y.detach(), *torch.autograd.grad(y, [a, b], gradient.to(dtype))])
    return [((found.double() - exact).norm() / exact.norm()).item() for exact, found in zip(*results)]


def ringtail(args, name, size, batch):
    run = subprocess.run([args.program, 'time', '--config', name, '--precision', 'bf16', '--image-size', size, '--batch', batch,
                          '--threads', str(args.threads), '--iterations', str(args.steps), '--json'], check=True, capture_output=True, text=True)
    return {layer['name']: layer for layer in json.loads(run.stdout)['layers']}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--net', default='resnet50:224:8', help='name:size:batch; resnet18 or resnet50')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=5)
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    name, size, batch = args.net.split(':')
    layers = shapes(name, int(size))
    theirs, ours = {layer: [] for layer in layers}, {layer: [] for layer in layers}
    for _ in range(args.rounds):
        timed = ringtail(args, name, size, batch)
        by_shape = {}
        for layer, shape in layers.items():
            if shape not in by_shape:
                by_shape[shape] = torch_ms(shape, int(batch), layer == 'conv1', args.steps)
            theirs[layer].append(by_shape[shape])
            ours[layer].append((timed[layer]['forward_ms'], timed[layer]['backward_ms']))
    print('| layer | in @size, out, window/stride | PyTorch GFLOP/s, forward, backward | Ringtail | step ratio | algorithms | PyTorch\'s error |')
    print('|---|---|---|---|---|---|---|')
    seen, totals = {}, [0.0, 0.0]
    for layer, shape in layers.items():
        median = lambda rounds: [statistics.median(r[i] for r in rounds) for i in (0, 1)]
        a, b = median(theirs[layer]), median(ours[layer])
        totals = [totals[0] + sum(a), totals[1] + sum(b)]
        if shape in seen:
            continue
        seen[shape] = layer
        c, side, k, kernel, stride, padding = shape
        out = (side + 2 * padding - kernel) // stride + 1
        flop = 2 * int(batch) * c * k * kernel**2 * out**2 / 1e6
        parts = (flop, flop * (1 if layer == 'conv1' else 2))
        rate = lambda ms: ', '.join(f'{p / m:.0f}' for p, m in zip(parts, ms))
        print(f'| {layer} | {c} @{side}, {k}, {kernel}x{kernel}/{stride} | {rate(a)} | {rate(b)} | {sum(a) / sum(b):.2f} '
              f'| {timed[layer]["implementation"]} | {", ".join(f"{e:.1e}" for e in torch_errors(shape, layer == "conv1"))} |', flush=True)
    print(f'| all {len(layers)} convolutions | | {totals[0]:.0f} ms | {totals[1]:.0f} ms | {totals[0] / totals[1]:.2f} | | |')


if __name__ == '__main__':
    main()
