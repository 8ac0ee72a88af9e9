#!/usr/bin/python3
"""Times PyTorch's training step: zero_grad, forward, cross entropy, backward, SGD with momentum.

  torch_step.py NET SIZE BATCH THREADS LAYOUT STEPS [bf16]      prints {"times": [seconds], "peak_mib": N}
LAYOUT: nchw, nhwc (channels_last) or mkldnn (oneDNN's blocked layout from the first convolution to the last).
bf16: forward and loss under torch.autocast to bfloat16.
"""
import json
import resource
import sys
import time

import torch
import torchvision
from torch import nn

NAME, SIZE, BATCH, THREADS, LAYOUT, STEPS = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5], int(sys.argv[6])
BFLOAT16 = 'bf16' in sys.argv[7:]
WARM_UP = 2


class LeaveBlocked(nn.Module):
    """From oneDNN's blocked layout back to a plain tensor, before `module`."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.to_dense() if x.is_mkldnn else x)


def plain_net(channels, features):
    layers, last = [], 3
    for c in channels:
        layers += [nn.Conv2d(last, c, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2)]
        last = c
    side = SIZE >> len(channels)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(last * side * side, features), nn.ReLU(True),
                         nn.Linear(features, 2))


def build():
    if NAME == 'lenet':
        return plain_net((32, 64, 128), 128)
    if NAME == 'catdog_vgg':
        return plain_net((32, 64, 128, 128), 512)
    if NAME in ('dogs_vs_cats', 'small_images'):
        from replay_with_torch import NETS
        return NETS[NAME].build()
    return getattr(torchvision.models, NAME)(num_classes=2)


torch.set_num_threads(THREADS)
torch.manual_seed(1)
net = build().train()
x, y = torch.randn(BATCH, 3, SIZE, SIZE), torch.randint(0, 2, (BATCH,))
if LAYOUT == 'nhwc':
    net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
if LAYOUT == 'mkldnn':
    x = x.to_mkldnn()
    for parent in net.modules():
        for key, m in list(parent.named_children()):
            if isinstance(m, nn.Flatten):
                setattr(parent, key, LeaveBlocked(m))
    if hasattr(net, 'avgpool'):
        net.avgpool = LeaveBlocked(net.avgpool)
loss_function = nn.CrossEntropyLoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
times = []
for step in range(WARM_UP + STEPS):
    start = time.perf_counter()
    sgd.zero_grad(set_to_none=True)
    with torch.autocast('cpu', torch.bfloat16, enabled=BFLOAT16):
        loss = loss_function(net(x), y)
    loss.backward()
    sgd.step()
    times.append(time.perf_counter() - start)
print(json.dumps(dict(times=times[WARM_UP:], peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
