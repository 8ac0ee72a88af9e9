#!/usr/bin/python3
"""The shipped networks in bfloat16 beside PyTorch's autocast: how far either is from double precision, number for number.

The same weights (those of replay_with_torch.py), the same random batches of 8, one step and its gradients. Errors are L2 norms relative
to PyTorch in double precision: of the loss, the logits, all gradients together, and the worst tensor's gradient. Autocast keeps
batch norms' and ReLUs' results in bfloat16 as Ringtail does, and rounds gradients of weights, which Ringtail keeps in single precision.
A ReLU within rounding of its bend opens on one side alone, so one batch says little: errors are medians over BATCHES batches.
Ringtail may be FACTOR times as far as PyTorch is, in each column but that of the loss, which may be close by chance. MobileNet's ReLU6, for which PyTorch 1.13 has no bfloat16 kernel, is
a clamp there.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/bf16_with_torch.py [--program build/release/bin/dogs_vs_cats] [--nets lenet,resnet18]
"""
import argparse
import os
import statistics
import sys

import torch
import torch.nn.functional as F
from torch import nn

from random_networks_with_torch import errors as whole_errors
from replay_with_torch import NETS, ROOT, SMOOTHING, load, norm, random_batch, replay, set_batch_norms

BATCHES, FACTOR = 5, 1.5


class Clamp6(nn.Module):
    def forward(self, x):
        return x.clamp(0, 6)


def replace_relu6(module):
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU6):
            setattr(module, name, Clamp6())
        else:
            replace_relu6(child)


def torch_step(net, batch, weights, dtype, autocast):
    module = load(net, weights, dtype)
    replace_relu6(module)
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        logits = module(torch.from_numpy(batch[0]).to(dtype)).to(dtype)
    loss = F.cross_entropy(logits, torch.from_numpy(batch[1]).long(), label_smoothing=SMOOTHING)
    loss.backward()
    return loss.item(), logits.detach().numpy(), {k: p.grad.numpy() for k, p in module.named_parameters()}


def errors(step, exact):
    """Loss, logits, all gradients, the worst tensor of those that are not zero in exact arithmetic."""
    largest = max(norm(v) for v in exact[2].values())
    worst = max(norm(step[2][k] - v) / norm(v) for k, v in exact[2].items() if norm(v) > 1e-3 * largest)
    return (*whole_errors(step, exact), worst)


def compare(program, name):
    net = NETS[name]
    first = replay(program, name, random_batch(0, net.size), steps=1)
    weights = {k[5:]: v for k, v in first.items() if k.startswith('init.')}
    set_batch_norms(name, weights)
    rows = []
    for seed in range(BATCHES):
        batch = random_batch(seed, net.size)
        exact = torch_step(net, batch, weights, torch.float64, False)
        out = replay(program, name, batch, weights, steps=1, precision='bf16')
        ours = out['loss'][0], out['logits'], {k[5:]: v for k, v in out.items() if k.startswith('grad.')}
        rows.append((errors(ours, exact), errors(torch_step(net, batch, weights, torch.float32, True), exact)))
    ours, theirs = ([statistics.median(row[side][i] for row in rows) for i in range(4)] for side in (0, 1))
    ok = all(a <= FACTOR * b for a, b in zip(ours[1:], theirs[1:]))
    columns = lambda values: ', '.join(f'{value:.1e}' for value in values)
    print(f'| {name} @{net.size} | {columns(ours)} | {columns(theirs)} | {"ok" if ok else "DIFFERS"} |', flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=','.join(NETS))
    args = parser.parse_args()
    print('| net | Ringtail: loss, logits, gradients, worst tensor | PyTorch autocast: the same | |\n|---|---|---|---|')
    results = [compare(args.program, name) for name in args.nets.split(',')]
    sys.exit(0 if all(results) else 1)


if __name__ == '__main__':
    main()
