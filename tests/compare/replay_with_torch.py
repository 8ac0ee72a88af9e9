#!/usr/bin/python3
"""Compares training steps of `dogs_vs_cats replay` with PyTorch's, number for number.

For every network: the same weights, the same batch of 8 random images, 5 steps of SGD with Nesterov momentum, and
weight decay on weights alone. Compared: the loss of each step, the logits and every gradient of the first step, and by
how much every parameter and running statistic has changed after the last. PyTorch computes in double precision; the
last column is how far its own single precision is from that. Ringtail runs twice: with the convolutions that it finds
fastest, which is not always the same choice, and with Winograd's F(4x4, 3x3) wherever there is one, its least exact.

Errors are L2 norms relative to PyTorch's value, for each tensor. Of the error of a change, what rounding a parameter
to single precision may do in 5 steps is forgiven (2^-24 of the parameter for each): a change smaller than that cannot
be compared. This happens in mobilenet_v2 alone, to most gammas and betas. What is zero in exact arithmetic (the
gradient of a bias before a batch norm) must be below 1e-5 of the largest tensor.

A ReLU whose input is zero to within rounding, or a max-pool with two such maxima, may decide one way on one side and
the other way on the other. One such unit can change a gradient by 1 %, and PyTorch does that to itself, from one layout
to another. So weights and batch are chosen to make such units unlikely, looking at PyTorch alone:
  weights  Ringtail's initial ones. In deep nets (DEEP) every batch norm, but those that end residual branches, has a
           beta of three gammas: that is three standard deviations from where ReLU bends (of normal inputs one in 741
           is still below). Gamma is 0.1 there: the smaller it is, the larger is beta's gradient and the smaller is
           what rounding takes of beta; in mobilenet_v2 it is 1: beta is then as far from the other bend
           of ReLU6. Residual branches end with a quarter of the others' gamma, in all nets, and a beta of 0.
  batch    the first of 100 random ones on which each step lowers the loss, and on which PyTorch in single precision is
           within half of the limits: once as it is, and four times with every weight and pixel wrong by 2e-6,
           relative, which is twice the error of F(4x4, 3x3).
  rate     low enough that steps do lower the loss: where they overshoot, differences grow by orders of magnitude.
Decay is high, to be visible. Images are small, and the classifiers of alexnet and vgg11_bn have 128 hidden units, for
fewer units near a bend and for time. Dropout is set to 0 on both sides: two generators cannot agree.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/replay_with_torch.py [--program build/release/bin/dogs_vs_cats] [--nets lenet,resnet18]
                                     [--convolutions FASTEST,ONEDNN,WINOGRAD_4X4,WINOGRAD_2X2]
"""
import argparse
import copy
import functools
import json
import os
import struct
import subprocess
import sys
import tempfile
from typing import Callable, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, BATCH, CLASSES, MOMENTUM, DECAY, SMOOTHING = 5, 8, 2, 0.9, 0.05, 0.1
CANDIDATES, NUDGES, NUDGE, WELL_CONDITIONED = 100, 4, 2e-6, 0.5
LOSS_LIMIT, GRADIENT_LIMIT, PARAMETER_LIMIT = 1e-4, 1e-3, 1e-3   # relative
HIDDEN = 128  # units in hidden linear layers of alexnet and vgg11_bn
DTYPES = {'F32': np.float32, 'I32': np.int32, 'I64': np.int64}


def read_safetensors(path):
    with open(path, 'rb') as f:
        data = f.read()
    size, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + size])
    out = {}
    for name, t in header.items():
        if name == '__metadata__':
            continue
        begin, end = (8 + size + o for o in t['data_offsets'])
        out[name] = np.frombuffer(data[begin:end], DTYPES[t['dtype']]).reshape(t['shape']).copy()
    return out


def write_safetensors(path, tensors):
    header, at, names = {}, 0, {np.dtype(v): k for k, v in DTYPES.items()}
    for name, t in tensors.items():
        header[name] = dict(dtype=names[t.dtype], shape=list(t.shape), data_offsets=[at, at + t.nbytes])
        at += t.nbytes
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text)
        for t in tensors.values():
            f.write(t.tobytes())


def plain_net(channels, features, size):
    """conv3x3 - relu - pool for each of `channels`, then two linear layers."""
    layers, last = {}, 3
    for i, c in enumerate(channels, 1):
        layers[f'conv{i}'] = nn.Conv2d(last, c, 3, padding=1)
        layers[f'relu{i}'] = nn.ReLU()
        layers[f'pool{i}'] = nn.MaxPool2d(2)
        last = c
    side = size >> len(channels)
    layers['flatten'] = nn.Flatten()
    layers['fc1'] = nn.Linear(last * side * side, features)
    layers['relu_fc'] = nn.ReLU()
    layers['fc2'] = nn.Linear(features, 2)
    net = nn.Sequential()
    for name, layer in layers.items():
        net.add_module(name, layer)
    return net


class Highway(nn.Module):
    class Gated(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.h, self.t = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

        def forward(self, x):
            s = torch.sigmoid(self.t(x))
            return s * F.relu(self.h(x)) + (1 - s) * x

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, 2, 1)
        self.group1 = nn.Sequential(*[self.Gated(32) for _ in range(8)])
        self.down1 = nn.Conv2d(32, 64, 3, 2, 1)
        self.group2 = nn.Sequential(*[self.Gated(64) for _ in range(8)])
        self.down2 = nn.Conv2d(64, 128, 3, 2, 1)
        self.group3 = nn.Sequential(*[self.Gated(128) for _ in range(8)])
        self.fc = nn.Linear(128, 2)

    def forward(self, x):
        x = self.group1(F.relu(self.stem(x)))
        x = self.group2(F.relu(self.down1(x)))
        x = self.group3(F.relu(self.down2(x)))
        return self.fc(x.mean((2, 3)))


class BasicBlock(nn.Module):
    def __init__(self, ci, co, stride, pool):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(ci, co, 3, stride, 1, bias=False), nn.BatchNorm2d(co)
        self.conv2, self.bn2 = nn.Conv2d(co, co, 3, 1, 1, bias=False), nn.BatchNorm2d(co)
        self.pool = stride if pool and stride > 1 else 0
        if stride != 1 or ci != co:
            self.downsample = nn.Sequential(nn.Conv2d(ci, co, 1, 1 if self.pool else stride, bias=False),
                                            nn.BatchNorm2d(co))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if hasattr(self, 'downsample'):
            if self.pool:
                x = F.avg_pool2d(x, self.pool, ceil_mode=True, count_include_pad=False)
            x = self.downsample(x)
        return F.relu(y + x)


class SmallResNet(nn.Module):
    """dogs_vs_cats (stem of two convolutions, max-pool), quickstart and small_images (one convolution)."""

    def __init__(self, stem, widths, blocks, pool, stride=2):
        super().__init__()
        self.deep_stem, last = len(stem) > 1, 3
        parts = []
        for i, c in enumerate(stem, 1):
            parts += [(f'conv{i}', nn.Conv2d(last, c, 3, stride if i == 1 else 1, 1, bias=False)),
                      (f'bn{i}', nn.BatchNorm2d(c)), (f'relu{i}', nn.ReLU())]
            last = c
        if self.deep_stem:
            self.stem = nn.Sequential()
            for name, m in parts:
                self.stem.add_module(name, m)
        else:
            for name, m in parts:
                self.add_module(name, m)
        for i, w in enumerate(widths, 1):
            stage = []
            for b in range(blocks):
                stage.append(BasicBlock(last, w, 2 if i > 1 and b == 0 else 1, pool))
                last = w
            self.add_module(f'layer{i}', nn.Sequential(*stage))
        self.fc = nn.Linear(last, 2)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x), 3, 2, 1) if self.deep_stem else self.relu1(self.bn1(self.conv1(x)))
        for i in range(1, 5):
            x = getattr(self, f'layer{i}')(x)
        return self.fc(x.mean((2, 3)))


def few_hidden(net):
    """The net with HIDDEN units in the hidden linear layers of its classifier."""
    linears = [i for i, layer in enumerate(net.classifier) if isinstance(layer, nn.Linear)]
    widths = [net.classifier[linears[0]].in_features, HIDDEN, HIDDEN, CLASSES]
    for i, inputs, outputs in zip(linears, widths, widths[1:]):
        net.classifier[i] = nn.Linear(inputs, outputs)
    return net


class Net(NamedTuple):
    build: Callable[[], nn.Module]
    size: int    # of images
    rate: float  # of learning
    settings: tuple = ()  # of the config, on top of those for all


def no_dropout(*layers):
    return tuple(f'net.layer[{layer}].dropout.rate=0' for layer in layers)


def hidden(*layers):
    return tuple(f'net.layer[{layer}].linear.out_features={HIDDEN}' for layer in layers)


models = torchvision.models
NETS = {
    'lenet': Net(lambda: plain_net((32, 64, 128), 128, 32), 32, 3e-5),
    'catdog_vgg': Net(lambda: plain_net((32, 64, 128, 128), 512, 64), 64, 1e-5),
    'alexnet': Net(lambda: few_hidden(models.alexnet()), 96, 3e-6,
                   no_dropout('classifier.0', 'classifier.3') + hidden('classifier.1', 'classifier.4')),
    'vgg11_bn': Net(lambda: few_hidden(models.vgg11_bn()), 32, 1e-4,
                    no_dropout('classifier.2', 'classifier.5') + hidden('classifier.0', 'classifier.3')),
    'resnet18': Net(lambda: models.resnet18(num_classes=CLASSES), 64, 1e-3),
    'resnet50': Net(lambda: models.resnet50(num_classes=CLASSES), 64, 1e-3),
    'mobilenet_v2': Net(lambda: models.mobilenet_v2(num_classes=CLASSES), 64, 1e-5, no_dropout('classifier.0')),
    'highway': Net(Highway, 16, 1e-1),
    'dogs_vs_cats': Net(lambda: SmallResNet((16, 32), (32, 64, 128, 256), 2, True), 64, 1e-3),
    'quickstart': Net(lambda: SmallResNet((16,), (16, 32, 64, 128), 1, False), 32, 1e-2),
    'small_images': Net(lambda: SmallResNet((32,), (32, 64, 128, 256), 2, True, stride=1), 32, 1e-3),
}


# Deep nets, and the batch norms that no ReLU follows: where residual branches end.
DEEP = {'resnet18': 'bn2', 'resnet50': 'bn3', 'mobilenet_v2': 'conv.3', 'dogs_vs_cats': 'bn2', 'small_images': 'bn2',
        'vgg11_bn': None}
DEEP_GAMMA, BETA_OVER_GAMMA = 0.1, 3.0
BRANCH_END = 0.25  # times gamma; zero would hide the gradients behind it


def set_batch_norms(name, weights):
    """Gammas and betas of the weights: see above."""
    branch_end = DEEP.get(name, 'bn2')
    gamma = DEEP_GAMMA if name in DEEP and name != 'mobilenet_v2' else 1.0
    for layer in [k.removesuffix('.running_mean') for k in weights if k.endswith('.running_mean')]:
        if branch_end and layer.endswith(branch_end):
            weights[layer + '.weight'][:] = gamma * BRANCH_END
        elif name in DEEP:
            weights[layer + '.weight'][:] = gamma
            weights[layer + '.bias'][:] = gamma * BETA_OVER_GAMMA


class Run(NamedTuple):
    losses: list
    logits: np.ndarray  # of the first step
    gradients: dict     # of the first step
    changes: dict       # of parameters and running statistics, over all steps


def replay(program, name, batch, weights=None, steps=STEPS, convolution='FASTEST', flags=(), precision='f32'):
    """What the program writes."""
    net = NETS[name]
    settings = [f'data.image_size={net.size}', f'optim.learning_rate={net.rate}', f'optim.weight_decay={DECAY}',
                'optim.constant={}', 'optim.warmup.epochs=0', f'optim.sgd.momentum={MOMENTUM}',
                'optim.sgd.nesterov=true', 'optim.clip_norm=0', f'net.convolution={convolution}',
                f'net.layer[loss].softmax_cross_entropy.label_smoothing={SMOOTHING}', *net.settings]
    with tempfile.TemporaryDirectory() as folder:
        path = {f: os.path.join(folder, f + '.safetensors') for f in ('batch', 'weights', 'out')}
        write_safetensors(path['batch'], dict(zip(('images', 'labels'), batch)))
        command = [program, 'replay', '--config', os.path.join(ROOT, 'configs', name + '.textproto'),
                   '--batch', path['batch'], '--steps', str(steps), '--out', path['out'],
                   '--precision', precision, *flags]
        if weights:
            write_safetensors(path['weights'], weights)
            command += ['--weights', path['weights']]
        for s in settings:
            command += ['--set', s]
        subprocess.run(command, check=True)
        return read_safetensors(path['out'])


def ringtail_run(program, name, batch, weights, convolution):
    out = replay(program, name, batch, weights, convolution=convolution)
    return Run(out['loss'], out['logits'], {k[5:]: v for k, v in out.items() if k.startswith('grad.')},
               {k: out['param.' + k].astype(np.float64) - v for k, v in weights.items()})


@functools.cache
def built(net):
    return net.build()


def load(net, weights, dtype):
    module = copy.deepcopy(built(net)).train()
    for m in module.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    wanted = {k for k in module.state_dict() if not k.endswith('num_batches_tracked')}
    assert wanted == set(weights), f'parameter names differ: {sorted(wanted ^ set(weights))[:6]}'
    module.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    return module.to(dtype)


def torch_run(net, batch, weights, dtype):
    module = load(net, weights, dtype)
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim <= 1]
    sgd = torch.optim.SGD([{'params': matrices, 'weight_decay': DECAY}, {'params': vectors, 'weight_decay': 0}],
                          lr=net.rate, momentum=MOMENTUM, nesterov=True)
    x, y = torch.from_numpy(batch[0]).to(dtype), torch.from_numpy(batch[1]).long()
    losses, gradients, first_logits = [], {}, None
    for step in range(STEPS):
        sgd.zero_grad()
        logits = module(x)
        loss = F.cross_entropy(logits, y, label_smoothing=SMOOTHING)
        loss.backward()
        if step == 0:
            first_logits = logits.detach().numpy().copy()
            gradients = {k: p.grad.numpy().copy() for k, p in module.named_parameters()}
        losses.append(loss.item())
        sgd.step()
    state = {k: v.numpy().astype(np.float64) for k, v in module.state_dict().items()}
    return Run(losses, first_logits, gradients, {k: state[k] - v for k, v in weights.items()})


def norm(a):
    return float(np.linalg.norm(a.ravel().astype(np.float64)))


def worst(ours, exact, rounding):
    """The largest relative error, and the name of its tensor. Errors of `rounding`, by name, are forgiven."""
    largest = max(norm(v) for v in exact.values())

    def error(name):
        size = norm(exact[name])
        if size < 1e-9 * largest:  # zero in exact arithmetic
            size = 1e-5 * largest / GRADIENT_LIMIT
        return max(0.0, norm(ours[name] - exact[name]) - rounding.get(name, 0.0)) / size

    return max((error(name), name) for name in exact)


class Errors(NamedTuple):
    loss: float
    logits: float
    gradient: tuple  # error, name of the tensor
    change: tuple    # error, name of the tensor

    def share_of_limits(self):
        return max(self.loss / LOSS_LIMIT, self.gradient[0] / GRADIENT_LIMIT, self.change[0] / PARAMETER_LIMIT)


def errors(run, exact, weights):
    for values in (run.losses, run.logits, *run.gradients.values(), *run.changes.values()):
        if not np.isfinite(values).all():  # max() might pass over it
            return Errors(np.inf, np.inf, (np.inf, 'not finite'), (np.inf, 'not finite'))
    rounding = {k: STEPS * 2.0**-24 * norm(v) for k, v in weights.items()}
    return Errors(max(abs(a - b) / abs(b) for a, b in zip(run.losses, exact.losses)),
                  norm(run.logits - exact.logits) / norm(exact.logits),
                  worst(run.gradients, exact.gradients, {}), worst(run.changes, exact.changes, rounding))


def nudged(array, rng):
    return (array * (1 + NUDGE * rng.standard_normal(array.shape))).astype(np.float32)


def well_conditioned(name, weights):
    """The first such batch: its number, itself, PyTorch's run in double precision, the errors of single precision."""
    net = NETS[name]
    for seed in range(CANDIDATES):
        images, labels = batch = random_batch(seed, net.size)
        exact = torch_run(net, batch, weights, torch.float64)
        if any(after >= before for before, after in zip(exact.losses, exact.losses[1:])):
            continue
        rng = np.random.default_rng(seed)

        def nudged_errors():
            others = {k: nudged(v, rng) for k, v in weights.items()}
            return errors(torch_run(net, (nudged(images, rng), labels), others, torch.float32), exact, weights)

        own = errors(torch_run(net, batch, weights, torch.float32), exact, weights)
        if own.share_of_limits() <= WELL_CONDITIONED and all(
                nudged_errors().share_of_limits() <= WELL_CONDITIONED for _ in range(NUDGES)):
            return seed, batch, exact, own
    sys.exit(f'{name}: none of {CANDIDATES} batches is well-conditioned')


def compare(program, name, convolutions):
    """Prints a row for each of `convolutions`; whether all are within the limits."""
    size = NETS[name].size
    first = replay(program, name, random_batch(0, size), steps=1)
    weights = {k[5:]: v for k, v in first.items() if k.startswith('init.')}
    set_batch_norms(name, weights)
    seed, batch, exact, own = well_conditioned(name, weights)
    parameters = sum(g.size for g in exact.gradients.values())
    all_ok = True
    for convolution in convolutions:
        e = errors(ringtail_run(program, name, batch, weights, convolution), exact, weights)
        ok = e.share_of_limits() <= 1
        all_ok = all_ok and ok
        print(f'| {name} @{size} | {convolution} | {parameters:,} | {e.loss:.1e} | {e.logits:.1e} | '
              f'{e.gradient[0]:.1e} ({e.gradient[1]}) | {e.change[0]:.1e} ({e.change[1]}) | '
              f'{"ok" if ok else "DIFFERS"} | {own.loss:.1e}, {own.logits:.1e}, {own.gradient[0]:.1e}, '
              f'{own.change[0]:.1e} (batch {seed}) |', flush=True)
    return all_ok


def random_batch(seed, size):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((BATCH, 3, size, size), np.float32), rng.integers(0, 2, BATCH).astype(np.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=','.join(NETS))
    parser.add_argument('--convolutions', default='FASTEST,WINOGRAD_4X4')
    args = parser.parse_args()
    print('| net | convolution | parameters | loss (worst of 5, relative) | logits | gradient (worst, relative L2) | '
          'change after 5 steps (worst, relative L2) | | PyTorch in single precision: the same four |')
    print('|---|---|---|---|---|---|---|---|---|')
    results = [compare(args.program, name, args.convolutions.split(',')) for name in args.nets.split(',')]
    sys.exit(0 if all(results) else 1)


if __name__ == '__main__':
    main()
