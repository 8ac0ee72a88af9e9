#!/usr/bin/python3
"""Compares training steps of `dogs_vs_cats replay` with PyTorch's, number for number.

For every network: the same weights (Ringtail's initial ones), the same batch of 8 random pictures, 5 steps of SGD
with Nesterov momentum and weight decay on weights alone. Compared: the loss of each step, the logits and every
gradient of the first step, every parameter and running statistic after the last. Dropout is set to 0 on both
sides: two generators cannot agree.

Which weights and batch: a ReLU whose input is zero to within rounding may open on one side and stay shut on the
other, and in a deep net with batch norm a single one changes a gradient by 1 %. PyTorch does that to itself, from one
layout to another. So the batch is the first of 12 random ones on which PyTorch in single precision agrees with
PyTorch in double, which says nothing about Ringtail; the last column is that agreement. Pictures are small, so that
there are fewer units. In the deep nets (DEEP) there is always one such unit near the initial weights; there,
every batch norm before a ReLU has a beta of 3, three standard deviations from where ReLU bends (and from ReLU6's
other bend), and the rate is lower.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/replay_with_torch.py [--program build/release/bin/dogs_vs_cats] [--nets lenet,resnet18]
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, BATCH, MOMENTUM, DECAY = 5, 8, 0.9, 5e-4
RATE, DEEP_RATE, DEEP_BETA = 1e-3, 1e-4, 3.0
CANDIDATES, WELL_CONDITIONED = 12, 2e-4
LOSS_LIMIT, GRADIENT_LIMIT, PARAMETER_LIMIT = 1e-4, 1e-3, 1e-3   # relative
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
    """dogs_vs_cats (stem of two convolutions, max-pool) and quickstart (one convolution)."""

    def __init__(self, stem, widths, blocks, pool):
        super().__init__()
        self.deep_stem, last = len(stem) > 1, 3
        parts = []
        for i, c in enumerate(stem, 1):
            parts += [(f'conv{i}', nn.Conv2d(last, c, 3, 2 if i == 1 else 1, 1, bias=False)),
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


def without_dropout(net):
    for m in net.modules():
        if isinstance(m, nn.Dropout):
            m.p = 0.0
    return net


models = torchvision.models
# name: (PyTorch net, picture size, dropout layers of the config)
NETS = {
    'lenet': (lambda: plain_net((32, 64, 128), 128, 64), 64, ()),
    'catdog_vgg': (lambda: plain_net((32, 64, 128, 128), 512, 128), 128, ()),
    'alexnet': (lambda: models.alexnet(num_classes=2), 224, ('classifier.0', 'classifier.3')),
    'vgg11_bn': (lambda: models.vgg11_bn(num_classes=2), 32, ('classifier.2', 'classifier.5')),
    'resnet18': (lambda: models.resnet18(num_classes=2), 64, ()),
    'resnet50': (lambda: models.resnet50(num_classes=2), 64, ()),
    'mobilenet_v2': (lambda: models.mobilenet_v2(num_classes=2), 64, ('classifier.0',)),
    'highway': (Highway, 64, ()),
    'dogs_vs_cats': (lambda: SmallResNet((16, 32), (32, 64, 128, 256), 2, True), 64, ()),
    'quickstart': (lambda: SmallResNet((16,), (16, 32, 64, 128), 1, False), 64, ()),
}


def torch_name(name):
    return name.replace('downsample.pool', 'pool')


# Deep nets, and the batch norms that no ReLU follows: where residual branches end.
DEEP = {'resnet18': 'bn2', 'resnet50': 'bn3', 'mobilenet_v2': 'conv.3', 'dogs_vs_cats': 'bn2'}
BRANCH_END_GAMMA = 0.25  # zero-gamma would hide the gradients behind it


def prepare_weights(name, weights):
    """Ringtail's initial weights, changed where rounding would decide (see above)."""
    for key, value in weights.items():
        layer = key.rpartition('.')[0]
        if layer + '.running_mean' not in weights:
            continue
        branch_end = layer.endswith(DEEP.get(name, 'bn2'))
        if key.endswith('.weight') and branch_end:
            value[:] = BRANCH_END_GAMMA
        if key.endswith('.bias') and name in DEEP and not branch_end:
            value[:] = DEEP_BETA


def rate(name):
    return DEEP_RATE if name in DEEP else RATE


def relative(a, b):
    """L2 norm of the difference over that of PyTorch's value."""
    return float(np.linalg.norm((a - b).ravel().astype(np.float64)) / max(np.linalg.norm(b.ravel()), 1e-12))


def replay(program, net, size, dropouts, folder, weights, smoothing):
    out = os.path.join(folder, 'out.safetensors')
    settings = [f'data.image_size={size}', f'optim.learning_rate={rate(net)}', f'optim.weight_decay={DECAY}',
                'optim.constant={}', 'optim.warmup.epochs=0', f'optim.sgd.momentum={MOMENTUM}',
                'optim.sgd.nesterov=true', 'optim.clip_norm=0',
                f'net.layer[loss].softmax_cross_entropy.label_smoothing={smoothing}']
    settings += [f'net.layer[{d}].dropout.rate=0' for d in dropouts]
    command = [program, 'replay', '--config', os.path.join(ROOT, 'configs', net + '.textproto'),
               '--batch', os.path.join(folder, 'batch.safetensors'), '--steps', str(STEPS), '--out', out]
    if weights:
        command += ['--weights', weights]
    for s in settings:
        command += ['--set', s]
    subprocess.run(command, check=True)
    return read_safetensors(out)


def torch_steps(build, rate, weights, images, labels, smoothing, dtype):
    """Losses, first logits, first gradients, final state."""
    net = without_dropout(build()).train()
    state = net.state_dict()
    wanted = {k for k in state if not k.endswith('num_batches_tracked')}
    assert wanted == set(weights), f'parameter names differ: {sorted(wanted ^ set(weights))[:6]}'
    net.load_state_dict({k: torch.from_numpy(weights[k].copy()) for k in wanted}, strict=False)
    net = net.to(dtype)
    matrices = [p for p in net.parameters() if p.ndim > 1]
    vectors = [p for p in net.parameters() if p.ndim <= 1]
    sgd = torch.optim.SGD([{'params': matrices, 'weight_decay': DECAY}, {'params': vectors, 'weight_decay': 0}],
                          lr=rate, momentum=MOMENTUM, nesterov=True)
    x = torch.from_numpy(images).to(dtype)
    y = torch.from_numpy(labels).long()
    losses, gradients, first_logits = [], {}, None
    for step in range(STEPS):
        sgd.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y, label_smoothing=smoothing)
        loss.backward()
        if step == 0:
            first_logits = logits.detach().numpy().copy()
            gradients = {k: p.grad.numpy().copy() for k, p in net.named_parameters()}
        losses.append(loss.item())
        sgd.step()
    return losses, first_logits, gradients, {k: v.numpy() for k, v in net.state_dict().items() if k in wanted}


def errors(ours, theirs):
    """Worst relative differences: loss, gradients (error, name), parameters (error, name)."""
    for losses, logits, gradients, state in (ours, theirs):
        for values in (losses, logits, *gradients.values(), *state.values()):
            if not np.isfinite(values).all():
                return math.inf, (math.inf, 'not finite'), (math.inf, 'not finite')
    loss = max(abs(a - b) / abs(b) for a, b in zip(ours[0], theirs[0]))
    # A gradient that is zero in exact arithmetic (a bias before a batch norm) is noise on both sides.
    floor = 1e-5 * max(np.linalg.norm(g) for g in theirs[2].values())
    gradients = max((relative(ours[2][k], g), k) for k, g in theirs[2].items() if np.linalg.norm(g) > floor)
    parameters = max((float(np.linalg.norm(ours[3][k] - v) / max(np.linalg.norm(v), 1e-3)), k)
                     for k, v in theirs[3].items())
    return loss, gradients, parameters


def compare(program, name):
    build, size, dropouts = NETS[name]
    smoothing = 0.1
    with tempfile.TemporaryDirectory() as folder:
        batch_path, weight_path = (os.path.join(folder, f + '.safetensors') for f in ('batch', 'weights'))
        images, labels = random_batch(0, size)
        write_safetensors(batch_path, {'images': images, 'labels': labels})
        first = replay(program, name, size, dropouts, folder, None, smoothing)
        weights = {k[5:]: v for k, v in first.items() if k.startswith('init.')}
        prepare_weights(name, weights)
        write_safetensors(weight_path, weights)
        candidates = []
        for seed in range(CANDIDATES):
            images, labels = random_batch(seed, size)
            single, double = (torch_steps(build, rate(name), weights, images, labels, smoothing, t)
                              for t in (torch.float32, torch.float64))
            loss, (gradient, _), (parameter, _) = errors(single, double)
            candidates.append((max(gradient, parameter), seed, single))
            if candidates[-1][0] <= WELL_CONDITIONED:
                break
        own_error, seed, theirs = min(candidates, key=lambda c: c[0])
        images, labels = random_batch(seed, size)
        write_safetensors(batch_path, {'images': images, 'labels': labels})
        out = replay(program, name, size, dropouts, folder, weight_path, smoothing)
    ours = (out['loss'], out['logits'], {k: out['grad.' + k] for k in theirs[2]},
            {k: out['param.' + k] for k in theirs[3]})
    loss, (gradient, worst_gradient), (parameter, worst_parameter) = errors(ours, theirs)
    ok = loss <= LOSS_LIMIT and gradient <= GRADIENT_LIMIT and parameter <= PARAMETER_LIMIT
    print(f'| {name} @{size} | {sum(g.size for g in theirs[2].values()):,} | {loss:.1e} | '
          f'{relative(ours[1], theirs[1]):.1e} | {gradient:.1e} ({worst_gradient}) | '
          f'{parameter:.1e} ({worst_parameter}) | {"ok" if ok else "DIFFERS"} | {own_error:.1e} (batch {seed}) |',
          flush=True)
    return ok


def random_batch(seed, size):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((BATCH, 3, size, size), np.float32), rng.integers(0, 2, BATCH).astype(np.int32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=','.join(NETS))
    args = parser.parse_args()
    print('| net | parameters | loss (worst of 5, relative) | logits | gradient (worst, relative L2) | '
          'parameter after 5 steps (worst) | | PyTorch single against double |')
    print('|---|---|---|---|---|---|---|---|')
    results = [compare(args.program, name) for name in args.nets.split(',')]
    sys.exit(0 if all(results) else 1)


if __name__ == '__main__':
    main()
