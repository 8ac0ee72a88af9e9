#!/usr/bin/python3
"""Trains PyTorch on Dogs-vs-Cats: a half-width ResNet-18, a fixed and ordinary recipe, the best CPU settings.

  torch_training.py IMAGES EPOCHS OUT.jsonl [--train N] [--seed N]    one JSON line per epoch: seconds, accuracy

IMAGES holds cat.N.jpg and dog.N.jpg. Trains on N below --train, validates on 10000 .. 11249. Images are decoded
once and kept in memory. Seconds are those of training alone.
"""
import argparse
import json
import math
import time

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SIZE, BATCH, RATE, WARM_UP, WIDTH, THREADS = 112, 128, 0.2, 2, 32, 2
STORED = SIZE + SIZE // 7
VALIDATION = range(10000, 11250)
MEAN = torch.tensor([0.406, 0.456, 0.485]).view(1, 3, 1, 1) * 255   # blue, green, red
STD = torch.tensor([0.225, 0.224, 0.229]).view(1, 3, 1, 1) * 255


class Block(nn.Module):
    def __init__(self, ci, co, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(ci, co, 3, stride, 1, bias=False), nn.BatchNorm2d(co)
        self.conv2, self.bn2 = nn.Conv2d(co, co, 3, 1, 1, bias=False), nn.BatchNorm2d(co)
        self.shortcut = nn.Sequential()
        if stride != 1 or ci != co:
            self.shortcut = nn.Sequential(nn.Conv2d(ci, co, 1, stride, bias=False), nn.BatchNorm2d(co))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), True)
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x), True)


def resnet18(w):
    stem = [nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    stages = [Block(max(w, w << i >> (j == 0)), w << i, 2 if i and not j else 1) for i in range(4) for j in range(2)]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * w, 2))


def load(folder, numbers, side=STORED):
    """Images of side x side pixels, and their labels."""
    images, labels = [], []
    for n in numbers:
        for label, name in enumerate(('cat', 'dog')):
            image = cv2.imread(f'{folder}/{name}.{n}.jpg')
            if image is not None:
                images.append(cv2.resize(image, (side, side), interpolation=cv2.INTER_AREA))
                labels.append(label)
    return np.stack(images), torch.tensor(labels)


def random_crop(image):
    side = np.random.randint(int(STORED * .55), STORED + 1)
    y, x = np.random.randint(0, STORED - side + 1, 2)
    crop = cv2.resize(image[y:y + side, x:x + side], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
    return crop[:, ::-1] if np.random.rand() < .5 else crop


def centre_crop(image):
    edge = (STORED - SIZE) // 2
    return image[edge:edge + SIZE, edge:edge + SIZE]


def batch(images, crop):
    pixels = np.stack([crop(p) for p in images])
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2).to(torch.float32) - MEAN) / STD   # channels_last


def accuracy(net, images, labels, part=250):
    net.eval()
    with torch.no_grad():
        right = sum((net(batch(images[i:i + part], centre_crop)).argmax(1) == labels[i:i + part]).sum().item()
                    for i in range(0, len(images), part))
    net.train()
    return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('images')
    parser.add_argument('epochs', type=int)
    parser.add_argument('out')
    parser.add_argument('--train', type=int, default=10000)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    torch.set_num_threads(THREADS)
    cv2.setNumThreads(1)
    images, labels = load(args.images, range(args.train))
    validation = load(args.images, VALIDATION)
    net = resnet18(WIDTH).to(memory_format=torch.channels_last).train()
    sgd = torch.optim.SGD([{'params': [p for p in net.parameters() if p.ndim > 1], 'weight_decay': 5e-4},
                           {'params': [p for p in net.parameters() if p.ndim <= 1], 'weight_decay': 0}],
                          lr=RATE, momentum=0.9, nesterov=True)
    steps = len(images) // BATCH
    warm_up, total = WARM_UP * steps, args.epochs * steps
    schedule = torch.optim.lr_scheduler.LambdaLR(sgd, lambda k: (k + 1) / warm_up if k < warm_up else 0.5 * (
        1 + math.cos(math.pi * (k - warm_up) / max(total - warm_up, 1))))
    seconds = 0.0
    with open(args.out, 'w') as out:
        for epoch in range(1, args.epochs + 1):
            start, loss_sum = time.perf_counter(), 0.0
            order = np.random.permutation(len(images))
            for k in range(steps):
                chosen = order[k * BATCH:(k + 1) * BATCH]
                loss = F.cross_entropy(net(batch(images[chosen], random_crop)), labels[chosen], label_smoothing=0.1)
                sgd.zero_grad(set_to_none=True)
                loss.backward()
                sgd.step()
                schedule.step()
                loss_sum += loss.item()
            seconds += time.perf_counter() - start
            row = dict(epoch=epoch, seconds=round(seconds, 1), loss=round(loss_sum / steps, 4),
                       accuracy=accuracy(net, *validation))
            print(row, flush=True)
            out.write(json.dumps(row) + '\n')
            out.flush()


if __name__ == '__main__':
    main()
