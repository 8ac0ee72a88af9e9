#!/usr/bin/python3
"""Random networks: one step by `dogs_vs_cats replay` beside PyTorch's, number for number.

A network is drawn from its number alone: 2 to 9 layers of convolutions (windows, strides, paddings, dilation, groups, depthwise),
batch norms, activations, pools, LRN, sums, products and concatenations of branches, then pooled or flattened, and one or two linear
layers; images of 8 to 40 pixels, 1 to 4 channels, batches of 1 to 9, 2 to 11 classes. PyTorch evaluates the same list of layers by
`torch.nn.functional`, with the weights that Ringtail began with, in double precision, and once more in the precision that is asked for:
its single precision, or autocast to bfloat16.

Errors are L2 norms relative to double precision: of the loss, the logits, and all gradients together. Ringtail may be as far as
`--factor` times PyTorch's own error, or FLOOR, whichever is more. In bfloat16 a ReLU within rounding of its bend opens on one side alone,
and batch norms of few values are decided by rounding, so single networks are off by chance on either side: there the factor holds for 95 of
100 networks, and the geometric mean of the ratios of errors must be below MEAN.

  apt-get install python3-torch python3-numpy python3-torchvision
  tests/compare/random_networks_with_torch.py [--first 0] [--count 100] [--precision f32|bf16] [--program build/release/bin/dogs_vs_cats]
"""
import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

from replay_with_torch import ROOT, norm, read_safetensors, write_safetensors

FLOOR = {'f32': 2e-5, 'bf16': 2e-2}
SHARE = {'f32': 1.0, 'bf16': 0.95}  # of the networks, within the factor
BROKEN = 0.3                        # more than this is no rounding: said so, and not an excuse for ours
MEAN = 1.5                          # of the ratios of errors, geometric
MAX_FAN_IN, MAX_CHANNELS = 20000, 48


class Drawn:
    """A network: its config, and the same layers as functions of (value by name, weight by name, whether training in bfloat16)."""

    def __init__(self, number):
        self.rng = random.Random(number)
        pick = self.rng.choice
        self.channels, self.size = pick([1, 3, 3, 3, 4]), self.rng.randint(8, 40)
        self.batch, self.classes = self.rng.randint(1, 9), self.rng.randint(2, 11)
        self.config, self.layers, self.count = [], [], 0
        self.shape = {'images': (self.channels, self.size, self.size)}
        last = self.convolution('images')
        for _ in range(self.rng.randint(1, 8)):
            last = pick([self.convolution, self.convolution, self.batch_norm, self.activation, self.pool, self.branches, self.lrn])(last)
        self.classifier(last)

    def layer(self, kind, text, inputs, shape, function):
        name = f'{kind}{self.count}'
        self.count += 1
        reads = ' '.join(f'input: "{i}"' for i in inputs)
        self.config.append(f'layer {{ name: "{name}" {reads} {kind} {{ {text} }} }}')
        self.layers.append((name, inputs, function(name)))
        self.shape[name] = shape
        return name

    def convolution(self, source, keep=False, channels=None):
        """`keep`: the plane keeps its size."""
        pick, (c, h, w) = self.rng.choice, self.shape[source]
        kernel, dilation = pick([1, 1, 3, 3, 3, 5]), pick([1, 1, 1, 2])
        reach = dilation * (kernel - 1)
        stride = 1 if keep else pick([1, 1, 2])
        padding = reach // 2 if keep or min(h, w) <= reach else self.rng.randint(0, reach // 2)
        out = channels or pick([c, 5, 8, 16, 16, 24, 32, MAX_CHANNELS])
        groups = pick([1, 1, 1] + [g for g in (2, 4, c) if c % g == 0 and out % g == 0])
        bias = pick([True, False])
        text = (f'out_channels: {out} kernel: {kernel} stride: {stride} padding: {padding} dilation: {dilation} groups: {groups} '
                f'bias: {str(bias).lower()}' + (' bias_init { normal { std: 0.3 } }' if bias else ''))
        side = lambda s: (s + 2 * padding - reach - 1) // stride + 1
        return self.layer('convolution', text, [source], (out, side(h), side(w)), lambda name: lambda p, x: F.conv2d(
            x, p[name + '.weight'], p.get(name + '.bias'), stride, padding, dilation, groups))

    def batch_norm(self, source):
        c, h, w = self.shape[source]
        if self.batch * h * w < 16:  # of few values rounding decides
            return self.activation(source)
        return self.layer('batch_norm', 'weight_init { normal { std: 1 } }', [source], (c, h, w), lambda name: lambda p, x: F.batch_norm(
            x, None, None, p[name + '.weight'], p[name + '.bias'], training=True))

    def activation(self, source):
        kind, function = self.rng.choice([('relu', F.relu), ('relu6', lambda x: x.clamp(0, 6)), ('leaky_relu', F.leaky_relu),
                                          ('sigmoid', torch.sigmoid), ('tanh', torch.tanh)])
        return self.layer(kind, '', [source], self.shape[source], lambda name: lambda p, x: function(x))

    def lrn(self, source):
        return self.layer('lrn', 'size: 5 alpha: 0.01', [source], self.shape[source],
                          lambda name: lambda p, x: F.local_response_norm(x, 5, 0.01, 0.75, 1.0))

    def pool(self, source):
        c, h, w = self.shape[source]
        kernel = self.rng.randint(2, 3)
        if min(h, w) < kernel:
            return self.activation(source)
        stride, padding, counted = self.rng.randint(1, kernel), self.rng.randint(0, 1), self.rng.choice([True, False])
        side = lambda s: (s + 2 * padding - kernel) // stride + 1
        text, shape = f'kernel: {kernel} stride: {stride} padding: {padding}', (c, side(h), side(w))
        if self.rng.random() < 0.5:
            return self.layer('max_pool', text, [source], shape, lambda name: lambda p, x: F.max_pool2d(x, kernel, stride, padding))
        return self.layer('average_pool', text + f' count_padding: {str(counted).lower()}', [source], shape,
                          lambda name: lambda p, x: F.avg_pool2d(x, kernel, stride, padding, count_include_pad=counted))

    def branches(self, source):
        """Two ways from one blob, and where they meet."""
        c, h, w = self.shape[source]
        kind = self.rng.choice(['add', 'add', 'multiply', 'concat'])
        left = self.convolution(source, keep=True, channels=None if kind == 'concat' else c)
        right = self.activation(source) if self.rng.random() < 0.5 else source
        total = (self.shape[left][0] + c if kind == 'concat' else c, h, w)
        join = {'add': lambda a, b: a + b, 'multiply': lambda a, b: a * b, 'concat': lambda a, b: torch.cat([a, b], 1)}[kind]
        return self.layer(kind, '', [left, right], total, lambda name: lambda p, a, b: join(a, b))

    def linear(self, source, out):
        shape = self.shape[source]
        return self.layer('linear', f'out_features: {out} bias_init {{ normal {{ std: 0.3 }} }}', [source], (out,),
                          lambda name: lambda p, x: F.linear(x.flatten(1), p[name + '.weight'], p[name + '.bias']))

    def classifier(self, last):
        c, h, w = self.shape[last]
        if self.rng.random() < 0.5 or c * h * w > MAX_FAN_IN:
            last = self.layer('global_average_pool', '', [last], (c, 1, 1), lambda name: lambda p, x: x.mean((2, 3), keepdim=True))
        if self.rng.random() < 0.4:
            last = self.activation(self.linear(last, self.rng.choice([7, 16, 40])))
        self.logits = self.linear(last, self.classes)
        self.config.append('layer { name: "loss" softmax_cross_entropy { label_smoothing: 0.1 } }')

    def text(self):
        return (f'net {{ name: "random" input_channels: {self.channels}\n  ' + '\n  '.join(self.config) +
                f'\n}}\ndata {{ image_size: {self.size} }}\noptim {{ sgd {{}} learning_rate: 0.01 }}\n'
                f'train {{ epochs: 1 batch: {self.batch} }}\n')

    def data(self, number):
        rng = np.random.default_rng(number)
        shape = (self.batch, self.channels, self.size, self.size)
        return {'images': rng.standard_normal(shape, np.float32), 'labels': rng.integers(0, self.classes, self.batch).astype(np.int32)}

    def torch_step(self, data, weights, dtype, autocast):
        """Loss, logits, gradient by name."""
        p = {k: torch.from_numpy(v).to(dtype).requires_grad_(True) for k, v in weights.items() if '.running_' not in k}
        values = {'images': torch.from_numpy(data['images']).to(dtype)}
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            for name, inputs, function in self.layers:
                values[name] = function(p, *(values[i] for i in inputs))
            logits = values[self.logits].to(dtype)
        loss = F.cross_entropy(logits, torch.from_numpy(data['labels']).long(), label_smoothing=0.1)
        loss.backward()
        return loss.item(), logits.detach().numpy(), {k: v.grad.numpy() for k, v in p.items()}


def ringtail_step(args, net, data):
    """Initial weights; loss, logits, gradients."""
    with tempfile.TemporaryDirectory() as folder:
        path = {f: os.path.join(folder, f) for f in ('config.textproto', 'batch.safetensors', 'out.safetensors')}
        with open(path['config.textproto'], 'w', encoding='utf-8') as file:
            file.write(net.text())
        write_safetensors(path['batch.safetensors'], data)
        subprocess.run([args.program, 'replay', '--config', path['config.textproto'], '--batch', path['batch.safetensors'],
                        '--out', path['out.safetensors'], '--precision', args.precision, '--threads', '2'], check=True, capture_output=True)
        out = read_safetensors(path['out.safetensors'])
    weights = {k[5:]: v for k, v in out.items() if k.startswith('init.')}
    return weights, (float(out['loss'][0]), out['logits'], {k[5:]: v for k, v in out.items() if k.startswith('grad.')})


def errors(step, exact):
    """Relative to double precision: loss, logits, all gradients together."""
    names = sorted(exact[2])
    joined = lambda gradients: np.concatenate([gradients[k].ravel().astype(np.float64) for k in names])
    found = (abs(step[0] - exact[0]) / abs(exact[0]), norm(step[1].reshape(exact[1].shape) - exact[1]) / norm(exact[1]),
             norm(joined(step[2]) - joined(exact[2])) / norm(joined(exact[2])))
    return tuple(math.inf if math.isnan(error) else error for error in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--precision', default='f32', choices=['f32', 'bf16'])
    parser.add_argument('--factor', type=float, default=4)
    args = parser.parse_args()
    within, ratios, worst, broken = 0, [], (0, None), []
    for number in range(args.first, args.first + args.count):
        net = Drawn(number)
        data = net.data(number)
        try:
            weights, ours = ringtail_step(args, net, data)
        except subprocess.CalledProcessError as error:
            sys.exit(f'network {number}: {error.stderr.decode()}\n{net.text()}')
        exact = net.torch_step(data, weights, torch.float64, False)
        theirs = errors(net.torch_step(data, weights, torch.float32, args.precision == 'bf16'), exact)
        mine = errors(ours, exact)
        floor = FLOOR[args.precision]
        if max(theirs) > BROKEN:
            broken.append(number)
            theirs = (BROKEN,) * 3
        ok = all(m <= max(args.factor * t, floor) for m, t in zip(mine, theirs))
        within += ok
        ratios.append(mine[2] / max(theirs[2], 1e-9))
        worst = max(worst, (mine[2], number))
        if not ok:
            print(f'network {number}: loss, logits, gradients: ' + ', '.join(f'{m:.1e} ({t:.1e})' for m, t in zip(mine, theirs)), flush=True)
    mean = math.exp(sum(math.log(max(r, 1e-3)) for r in ratios) / len(ratios))
    print(f'{args.precision}: {within} of {args.count} networks within {args.factor:g} times PyTorch\'s error, or {FLOOR[args.precision]:g}; '
          f'errors of gradients are {mean:.2f} times PyTorch\'s in the geometric mean; the largest is {worst[0]:.1e} (network {worst[1]})' +
          (f'; PyTorch itself is wrong by more than {BROKEN:g} in networks {broken}' if broken else ''))
    sys.exit(0 if within >= SHARE[args.precision] * args.count and (mean < MEAN or args.precision == 'f32') else 1)


if __name__ == '__main__':
    main()
