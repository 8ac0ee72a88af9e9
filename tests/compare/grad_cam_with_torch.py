#!/usr/bin/python3
"""Compares Grad-CAM of `dogs_vs_cats replay --grad-cam` with PyTorch's, number for number.

For every network: the same random weights and running statistics, the same random images, evaluation mode. A forward
hook keeps the output of PyTorch's last layer before pooling; the gradient of each image's largest logit with respect to
it comes from autograd, and the map from equations 1 and 2 of Selvaraju et al. 2017, in ten lines below. Compared:
  logits       in evaluation mode
  activations  A, the last feature map, (N, C, H, W)
  gradients    of the largest logit with respect to A
  maps         ReLU(sum_c alpha_c A_c), divided by its largest value, (N, H, W)
Errors are L2 norms relative to PyTorch's in double precision, the largest of all images; in brackets those of PyTorch
in single precision. The limit is 1e-4 for each.

A ReLU or max-pool between A and the logits may decide one way on one side and the other way on the other where
its input is a tie within rounding (alexnet, vgg11_bn, lenet and catdog_vgg have such layers there). So the batch is the
first of 100 random ones on which PyTorch in single precision is within a tenth of the limit of itself in double, the
larger of the two logits is clear, and half of the maps or more are not zero. The two rows of the last layer are opposite:
one class's score is above zero then, and so is its map.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/grad_cam_with_torch.py [--program build/release/bin/dogs_vs_cats] [--nets resnet18,dogs_vs_cats]
                                       [--convolutions FASTEST,ONEDNN,WINOGRAD_4X4]
"""
import argparse
import os
import sys

import numpy as np
import torch

import replay_with_torch
from replay_with_torch import BATCH, NETS, ROOT

LIMIT, CANDIDATES, WELL_CONDITIONED = 1e-4, 100, 0.1
# Whose output is the last feature map.
LAYERS = {'lenet': 'relu3', 'catdog_vgg': 'relu4', 'alexnet': 'features.11', 'vgg11_bn': 'features.27',
          'resnet18': 'layer4', 'resnet50': 'layer4', 'mobilenet_v2': 'features.18', 'highway': 'group3',
          'dogs_vs_cats': 'layer4', 'quickstart': 'layer4', 'small_images': 'layer4'}
# Of images, where those of the other comparison would leave a map of 2 x 2 pixels.
SIZES = {'vgg11_bn': 64, 'resnet18': 128, 'resnet50': 96, 'mobilenet_v2': 128, 'highway': 32, 'dogs_vs_cats': 128,
         'quickstart': 64}
PARTS = ('logits', 'activations', 'gradients', 'maps')


def random_module(name):
    torch.manual_seed(1)
    module = NETS[name].build()
    for buffer_name, buffer in module.named_buffers():
        if buffer_name.endswith('running_mean'):
            buffer.normal_(0, 0.1)
        elif buffer_name.endswith('running_var'):
            buffer.uniform_(0.5, 2)
    head = [m for m in module.modules() if isinstance(m, torch.nn.Linear)][-1]
    with torch.no_grad():
        head.weight[1] = -head.weight[0]
        head.bias.zero_()
    return module.eval()


def torch_grad_cam(module, layer, images, dtype):
    module, kept = module.to(dtype), []

    def keep(_, __, output):
        output.retain_grad()
        kept.append(output)

    hook = dict(module.named_modules())[layer].register_forward_hook(keep)
    logits = module(torch.from_numpy(images).to(dtype))
    hook.remove()
    logits.max(dim=1).values.sum().backward()  # rows do not depend on one another
    activations, gradients = kept[0].detach(), kept[0].grad
    alpha = gradients.mean(dim=(2, 3), keepdim=True)
    maps = torch.relu((alpha * activations).sum(dim=1))
    largest = maps.amax(dim=(1, 2), keepdim=True)
    maps = torch.where(largest > 0, maps / largest, maps)
    parts = (logits, activations, gradients, maps)
    return {name: part.detach().numpy().astype(np.float64) for name, part in zip(PARTS, parts)}


def errors(got, exact):
    """The largest of all images, by part; where PyTorch's value is zero the other must be, too."""
    largest = {}
    for part in PARTS:
        assert got[part].shape == exact[part].shape, f'{part}: {got[part].shape} is not {exact[part].shape}'
        difference = [np.linalg.norm(a - b) for a, b in zip(got[part], exact[part])]
        size = [np.linalg.norm(b) for b in exact[part]]
        largest[part] = max(d / s if s > 0 else (0.0 if d == 0 else np.inf) for d, s in zip(difference, size))
    return largest


def well_conditioned_batch(name, module):
    """Images, PyTorch's Grad-CAM in double, and the errors of its single precision."""
    size = SIZES.get(name, NETS[name].size)
    for seed in range(CANDIDATES):
        images = np.random.default_rng(seed).standard_normal((BATCH, 3, size, size), dtype=np.float32)
        single = torch_grad_cam(module, LAYERS[name], images, torch.float32)
        exact = torch_grad_cam(module, LAYERS[name], images, torch.float64)
        module.float()
        own = errors(single, exact)
        # Half of the maps or more must not be zero, and the classes must not hang on rounding.
        speak = exact['maps'].max(axis=(1, 2)).mean()
        gaps = np.diff(np.sort(exact['logits'], axis=1)[:, -2:], axis=1)
        clear = gaps.min() > 1e-3 * np.abs(exact['logits']).max()
        if speak >= 0.5 and clear and max(own.values()) < WELL_CONDITIONED * LIMIT:
            return images, exact, own
    sys.exit(f'{name}: no batch of {CANDIDATES} is well conditioned')


def check(program, name, convolutions):
    module = random_module(name)
    images, exact, own = well_conditioned_batch(name, module)
    weights = {k: v.numpy() for k, v in module.state_dict().items() if not k.endswith('num_batches_tracked')}
    batch = images, np.arange(BATCH, dtype=np.int32) % 2
    good = True
    for convolution in convolutions:
        out = replay_with_torch.replay(program, name, batch, weights, 1, convolution, ('--grad-cam',))
        ours = errors({part: out['grad_cam.' + part].astype(np.float64) for part in PARTS}, exact)
        passed = max(ours.values()) < LIMIT
        good = good and passed
        columns = '  '.join(f'{part} {ours[part]:.1e} ({own[part]:.1e})' for part in PARTS)
        print(f'{name:<13} {convolution:<13} {columns}  {"" if passed else "FAILED"}', flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=','.join(NETS))
    parser.add_argument('--convolutions', default='FASTEST,WINOGRAD_4X4')
    flags = parser.parse_args()
    print('relative errors; in brackets those of PyTorch in single precision')
    results = [check(flags.program, name, flags.convolutions.split(',')) for name in flags.nets.split(',')]
    sys.exit(0 if all(results) else 1)


if __name__ == '__main__':
    main()
