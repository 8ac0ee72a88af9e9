#!/usr/bin/python3
"""Trains PyTorch on Tiny ImageNet: the network of configs/small_images.textproto, SGD, an ordinary recipe.

  tiny_imagenet_with_torch.py FOLDER OUT.jsonl [--epochs N] [--precision bf16|f32] [--threads N] [--seed N]     one JSON line per epoch

FOLDER holds train/CLASS/ (images anywhere below), val/images/ and val/val_annotations.txt, images of any one size; they are kept in
memory. Seconds are those of training alone, waits for images included; a thread of its own draws the next batch. Beside it, with val/
sorted into folders of classes as train/ is:

  dogs_vs_cats train --config small_images --data FOLDER --set optim.sgd.momentum=0.9 --set optim.sgd.nesterov=true \\
      --set optim.learning_rate=0.2 --set optim.batch_scaling.rule=NONE --set optim.ema_decay=0 --set train.epochs=5

  apt-get install python3-torch python3-torchvision python3-opencv libopenblas0-openmp libtcmalloc-minimal4
  LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 ...
"""
import glob
import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import torch
import torch.nn.functional as F

from replay_with_torch import NETS
from torch_recipe import begin, initialise, pixels

BATCH, RATE, WARM_UP, DECAY, MIN_AREA, EVALUATION_SIZE = 256, 0.2, 1, 5e-4, 0.5, 40


def load(folder):
    """Images and labels, to train on and to validate."""
    classes = sorted(os.listdir(os.path.join(folder, 'train')))
    training = [(path, label) for label, name in enumerate(classes)
                for path in glob.glob(os.path.join(folder, 'train', name, '**', '*.JPEG'), recursive=True)]
    with open(os.path.join(folder, 'val/val_annotations.txt'), encoding='utf-8') as lines:
        validation = [(os.path.join(folder, 'val/images', words[0]), classes.index(words[1])) for words in map(str.split, lines)]
    return [(np.stack([cv2.imread(path) for path, _ in rows]), torch.tensor([label for _, label in rows]))
            for rows in (training, validation)]


def augmented(image, random):
    """A crop of an area and aspect ratio drawn at random (Szegedy et al. 2015), mirrored or not."""
    side = len(image)
    share, aspect = random.uniform(MIN_AREA, 1), math.exp(random.uniform(-math.log(4 / 3), math.log(4 / 3)))
    width, height = (min(side, round(side * math.sqrt(share * a))) for a in (aspect, 1 / aspect))
    x, y = random.integers(0, side - width + 1), random.integers(0, side - height + 1)
    crop = image[y:y + height, x:x + width]
    return crop[:, ::-1] if random.random() < 0.5 else crop


def rate_at(step, per_epoch, epochs):
    warm_up, steps = WARM_UP * per_epoch, epochs * per_epoch
    return RATE * min((step + 1) / warm_up, 0.5 * (1 + math.cos(math.pi * max(0, step - warm_up) / max(1, steps - warm_up))))


def accuracies(net, images, labels, precision):
    """The shares of top-1 and top-5."""
    net.eval()
    right = np.zeros(2)
    with torch.no_grad(), precision():
        for i in range(0, len(images), 250):
            x = pixels(images[i:i + 250], EVALUATION_SIZE)
            best = (net(x).float().softmax(1) + net(x.flip(3)).float().softmax(1)).topk(5).indices == labels[i:i + 250, None]
            right += (best[:, 0].sum().item(), best.sum().item())
    return right / len(images)


def main():
    args, random, precision = begin(__doc__, 'folder', 5)
    (images, labels), validation = load(args.folder)
    net = NETS['small_images'].build()
    net.fc = torch.nn.Linear(net.fc.in_features, int(labels.max()) + 1)
    net = net.to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD([{'params': [p for p in net.parameters() if p.ndim > 1], 'weight_decay': DECAY},
                           {'params': [p for p in net.parameters() if p.ndim <= 1], 'weight_decay': 0}],
                          lr=RATE, momentum=0.9, nesterov=True)
    initialise(net)
    steps, seconds = len(images) // BATCH, 0.0
    with open(args.out, 'w') as out, ThreadPoolExecutor(1) as ahead:
        for epoch in range(args.epochs):
            start, order = time.perf_counter(), random.permutation(len(images))

            def draw(k):
                rows = order[k * BATCH:(k + 1) * BATCH]
                return pixels([augmented(images[row], random) for row in rows], images.shape[1]), labels[rows]

            net.train()
            following = ahead.submit(draw, 0)
            for k in range(steps):
                x, y = following.result()
                if k + 1 < steps:
                    following = ahead.submit(draw, k + 1)
                sgd.zero_grad(set_to_none=True)
                with precision():
                    loss = F.cross_entropy(net(x).float(), y, label_smoothing=0.1)
                loss.backward()
                for group in sgd.param_groups:
                    group['lr'] = rate_at(epoch * steps + k, steps, args.epochs)
                sgd.step()
            seconds += time.perf_counter() - start
            top_1, top_5 = accuracies(net, *validation, precision)
            row = {'epoch': epoch + 1, 'seconds': round(seconds, 1), 'top_1': top_1, 'top_5': top_5}
            print(row, flush=True)
            out.write(json.dumps(row) + '\n')


if __name__ == '__main__':
    main()
