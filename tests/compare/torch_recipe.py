#!/usr/bin/python3
"""Trains PyTorch by the recipe of configs/dogs_vs_cats.textproto, in bfloat16 by autocast or in f32, on real Dogs-vs-Cats.

  torch_recipe.py IMAGES OUT.jsonl [--epochs N] [--precision bf16|f32] [--threads N] [--seed N]     one JSON line per epoch

IMAGES holds cat.N.jpg and dog.N.jpg; 0 .. 9999 train, 10000 .. 11249 validate. The same network, Muon, batch, rate, schedule, phases of
image size, augmentation that grows, averaged weights, label smoothing, and evaluation at 1.125 times the size with the mirror image.
What differs: random numbers; images are kept at 160 pixels and not at their own size; Muon iterates the matrix itself, as Jordan et al.
do; and the last layer's steps follow its norm of the moment (the config has head_norm: START). --epochs stops early, on the way of the whole schedule. Seconds are those of training alone, waits for images
included; a thread of its own draws the next batch.

  apt-get install python3-torch python3-torchvision python3-opencv libopenblas0-openmp libtcmalloc-minimal4
  LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 ...
"""
import argparse
import contextlib
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import torch
import torch.nn.functional as F

from replay_with_torch import NETS
from torch_training import MEAN, STD, load

EPOCHS, BATCH, RATE, POWER, DECAY, MOMENTUM, TRUST, AVERAGING = 31, 256, 1.2, 1.5, 5e-4, 0.9, 0.02, 0.995
PHASES = {1: 64, 3: 96, 22: 128}  # the epoch from which on, counted from 1; and pixels
MIN_AREA, JITTER, RAMP_START, RAMP_EPOCHS = 0.35, 0.2, 0.5, 10
STORED, EVALUATION_SCALE = 160, 1.125


def pixels(images, size):
    blob = np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA) for image in images])
    return ((torch.from_numpy(blob).permute(0, 3, 1, 2).float() - MEAN) / STD).contiguous(memory_format=torch.channels_last)


def augmented(image, strength, random):
    """A crop of an area and aspect ratio drawn at random (Szegedy et al. 2015), mirrored or not, of changed colours."""
    share = random.uniform(1 - strength * (1 - MIN_AREA), 1)
    aspect = math.exp(random.uniform(-math.log(4 / 3), math.log(4 / 3)))
    width, height = (min(STORED, round(STORED * math.sqrt(share * a))) for a in (aspect, 1 / aspect))
    x, y = random.integers(0, STORED - width + 1), random.integers(0, STORED - height + 1)
    crop = image[y:y + height, x:x + width].astype(np.float32)
    if random.random() < 0.5:
        crop = crop[:, ::-1]
    brightness, contrast, saturation = 1 + strength * JITTER * random.uniform(-1, 1, 3)
    crop = crop * brightness
    crop = crop.mean() + contrast * (crop - crop.mean())
    grey = crop.mean(axis=2, keepdims=True)
    return np.clip(grey + saturation * (crop - grey), 0, 255)


def orthogonal(x):
    """As optim/orthogonalize.h."""
    x = x / (x.norm() + 1e-12)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for linear, cubic, quintic in ((8.3853, -24.5675, 18.0384), (4.0936, -3.0159, 0.5612), (3.7086, -2.7477, 0.5314),
                                   (2.7981, -2.0729, 0.4573)):
        a = x @ x.T
        x = linear * x + (cubic * a + quintic * a @ a) @ x
    return x.T if tall else x


class Muon:
    def __init__(self, net):
        self.velocities = [(p, torch.zeros_like(p)) for p in net.parameters()]

    @torch.no_grad()
    def step(self, rate):
        for p, v in self.velocities:
            v.mul_(MOMENTUM).add_(p.grad)
            u = p.grad + MOMENTUM * v
            if p.ndim == 1:
                p.sub_(rate * u)
                continue
            o = orthogonal(u.reshape(len(u), -1)).reshape(p.shape)
            p.mul_(1 - rate * DECAY).sub_(rate * TRUST * p.norm() / (o.norm() + 1e-12) * o)


def rate_at(step, steps_per_epoch):
    warm_up, steps = steps_per_epoch, EPOCHS * steps_per_epoch
    return RATE * (1 - step / steps) ** POWER * min(1, (step + 1) / warm_up)


def average(averaged, net, steps):
    keep = min(AVERAGING, (1 + steps) / (10 + steps))
    with torch.no_grad():
        for mean, now in zip(averaged.state_dict().values(), net.state_dict().values()):
            mean.copy_(keep * mean + (1 - keep) * now if mean.is_floating_point() else now)


def accuracy(net, images, labels, size, precision):
    net.eval()
    right = 0
    with torch.no_grad(), precision():
        for i in range(0, len(images), 250):
            x = pixels(images[i:i + 250], size)
            probabilities = net(x).float().softmax(1) + net(x.flip(3)).float().softmax(1)
            right += (probabilities.argmax(1) == labels[i:i + 250]).sum().item()
    return right / len(images)


def begin(doc, folder, epochs):
    """Flags of the command line, with PyTorch set by them; a generator of random numbers; the context of forward passes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(folder)
    parser.add_argument('out')
    parser.add_argument('--epochs', type=int, default=epochs)
    parser.add_argument('--precision', choices=['bf16', 'f32'], default='bf16')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    cv2.setNumThreads(1)
    precision = contextlib.nullcontext if args.precision == 'f32' else lambda: torch.autocast('cpu', torch.bfloat16)
    return args, np.random.default_rng(args.seed), precision


def initialise(net):
    """As the configs: He's normal distribution, and 0 for the last scale of a residual block."""
    for name, p in net.named_parameters():
        if p.ndim == 4:
            torch.nn.init.kaiming_normal_(p, mode='fan_out', nonlinearity='relu')
        elif name.endswith('bn2.weight') and name.startswith('layer'):
            torch.nn.init.zeros_(p)


def main():
    args, random, precision = begin(__doc__, 'images', EPOCHS)
    images, labels = load(args.images, range(10000), STORED)
    validation = load(args.images, range(10000, 11250), STORED)
    nets = [NETS['dogs_vs_cats'].build().to(memory_format=torch.channels_last) for _ in range(2)]
    net, averaged = nets
    initialise(net)
    averaged.load_state_dict(net.state_dict())
    muon, steps, step, seconds = Muon(net), len(images) // BATCH, 0, 0.0
    with open(args.out, 'w') as out, ThreadPoolExecutor(1) as ahead:
        for epoch in range(1, args.epochs + 1):
            start, size = time.perf_counter(), PHASES[max(first for first in PHASES if first <= epoch)]
            order = random.permutation(len(images))

            def draw(k):
                rows = order[k * BATCH:(k + 1) * BATCH]
                strength = RAMP_START + (1 - RAMP_START) * min(1, (epoch - 1) / RAMP_EPOCHS)
                return pixels([augmented(images[row], strength, random) for row in rows], size), labels[rows]

            net.train()
            following = ahead.submit(draw, 0)
            for k in range(steps):
                x, y = following.result()
                if k + 1 < steps:
                    following = ahead.submit(draw, k + 1)
                for p in net.parameters():
                    p.grad = None
                with precision():
                    loss = F.cross_entropy(net(x).float(), y, label_smoothing=0.1)
                loss.backward()
                muon.step(rate_at(step, steps))
                step += 1
                average(averaged, net, step)
            seconds += time.perf_counter() - start
            row = {'epoch': epoch, 'pixels': size, 'seconds': round(seconds, 1),
                   'accuracy': accuracy(averaged, *validation, int(size * EVALUATION_SCALE), precision)}
            print(row, flush=True)
            out.write(json.dumps(row) + '\n')


if __name__ == '__main__':
    main()
