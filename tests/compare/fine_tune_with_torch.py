#!/usr/bin/python3
"""Checks what `train --weights` and `--freeze` do with the state dicts of torchvision, against PyTorch.

For each network: torchvision's, with 1000 classes, random weights and random running statistics (nothing is
downloaded), written as safetensors in F32 and F16, as .pth, and as a checkpoint of a training program with the prefix
"module.". `dogs_vs_cats replay` reads it with train.weights, with everything but the head frozen, and computes 10 steps
on a random batch. Compared:
  head      the logits of the first step, with the 1000 outputs of the file: PyTorch's in evaluation mode
  features  the same with 2 outputs, which are new: PyTorch's features times the new head
  frozen    after 10 steps: every weight and running statistic below the head has the bits of the file, and the head not
Errors are L2 norms relative to PyTorch's, in single precision on both sides.

  apt-get install python3-torch python3-torchvision python3-numpy
  tests/compare/fine_tune_with_torch.py [--program build/release/bin/dogs_vs_cats] [--nets resnet18,alexnet]
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH, SIZE, STEPS, LIMIT = 4, 64, 10, 1e-5
HEADS = {'resnet18': 'fc', 'resnet50': 'fc', 'mobilenet_v2': 'classifier.1', 'vgg11_bn': 'classifier.6',
         'alexnet': 'classifier.6'}
NAMES = {np.dtype(np.float32): 'F32', np.dtype(np.float16): 'F16', np.dtype(np.int32): 'I32',
         np.dtype(np.int64): 'I64'}


def write_safetensors(path, tensors):
    header, data, offset = {}, [], 0
    for name in sorted(tensors):  # as the safetensors library sorts them, among others
        array = np.ascontiguousarray(tensors[name])
        header[name] = {'dtype': NAMES[array.dtype], 'shape': list(tensors[name].shape),
                        'data_offsets': [offset, offset + array.nbytes]}
        offset += array.nbytes
        data.append(array.tobytes())
    text = json.dumps(header).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(data))


def read_safetensors(path):
    with open(path, 'rb') as f:
        size, = struct.unpack('<Q', f.read(8))
        header, data = json.loads(f.read(size)), f.read()
    dtypes = {name: dtype for dtype, name in NAMES.items()}
    return {name: np.frombuffer(data[entry['data_offsets'][0]:entry['data_offsets'][1]],
                                dtypes[entry['dtype']]).reshape(entry['shape'])
            for name, entry in header.items() if name != '__metadata__'}


def make_model(net):
    torch.manual_seed(1)
    model = getattr(torchvision.models, net)(num_classes=1000)
    for name, buffer in model.named_buffers():
        if name.endswith('running_mean'):
            buffer.normal_(0, 0.1)
        elif name.endswith('running_var'):
            buffer.uniform_(0.5, 2)
    return model.eval()


def write_files(model, folder):
    """Paths by format, and the state dict that each is of."""
    full = {name: value.clone() for name, value in model.state_dict().items()}
    half = {name: value.half() if value.is_floating_point() else value for name, value in full.items()}
    arrays = lambda state: {name: value.numpy() for name, value in state.items()}
    paths = {name: os.path.join(folder, name) for name in ('f32', 'f16', 'pth', 'checkpoint')}
    write_safetensors(paths['f32'], arrays(full))
    write_safetensors(paths['f16'], arrays(half))
    torch.save(model.state_dict(), paths['pth'])
    torch.save({'epoch': 3, 'model': {'module.' + name: value for name, value in full.items()}}, paths['checkpoint'])
    return {'f32': (paths['f32'], full), 'f16': (paths['f16'], {n: v.float() for n, v in half.items()}),
            'pth': (paths['pth'], full), 'checkpoint': (paths['checkpoint'], full)}


def replay(program, net, weights, batch, out, outputs):
    command = [program, 'replay', '--config', net, '--batch', batch, '--out', out, '--steps', str(STEPS)]
    for assignment in (f'train.weights="{weights}"', 'train.freeze=all-but-head', 'optim.sgd={}',
                       'optim.learning_rate=0.01', f'net.layer[{HEADS[net]}].linear.out_features={outputs}'):
        command += ['--set', assignment]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return read_safetensors(out)


def error(got, wanted):
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def logits_of(model, images, head=None):
    """With another head: its weight and bias."""
    with torch.no_grad():
        if head is None:
            return model(images).numpy()
        features = []
        layer = dict(model.named_modules())[HEADS[model.net]]
        hook = layer.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
        model(images)
        hook.remove()
        return features[0].numpy() @ head[0].T + head[1]


def check(program, net, folder):
    model = make_model(net)
    model.net = net
    images = torch.randn(BATCH, 3, SIZE, SIZE)
    batch, out = os.path.join(folder, 'batch'), os.path.join(folder, 'out')
    write_safetensors(batch, {'images': images.numpy(), 'labels': np.arange(BATCH, dtype=np.int32) % 2})
    failed = False
    for kind, (path, state) in write_files(model, folder).items():
        model.load_state_dict(state)
        with_head = replay(program, net, path, batch, out, 1000)
        new_head = replay(program, net, path, batch, out, 2)
        head = HEADS[net]
        own = [new_head[f'init.{head}.{part}'] for part in ('weight', 'bias')]
        errors = (error(with_head['logits'], logits_of(model, images)),
                  error(new_head['logits'], logits_of(model, images, own)))
        changed = [name for name, value in state.items()
                   if not name.startswith(head + '.') and not name.endswith('num_batches_tracked')
                   and not np.array_equal(new_head['param.' + name].view(np.int32), value.numpy().view(np.int32))]
        learned = all(not np.array_equal(new_head[f'param.{head}.{part}'], start)
                      for part, start in zip(('weight', 'bias'), own))
        good = max(errors) < LIMIT and not changed and learned
        failed = failed or not good
        print(f'{net:<13} {kind:<10} head {errors[0]:.1e}  features {errors[1]:.1e}  frozen: '
              f'{"the same bits" if not changed else f"CHANGED: {changed[:3]}"}  '
              f'{"" if good else "FAILED"}', flush=True)
    return not failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=','.join(HEADS))
    flags = parser.parse_args()
    results = []
    for net in flags.nets.split(','):
        with tempfile.TemporaryDirectory() as folder:
            results.append(check(flags.program, net, folder))
    sys.exit(0 if all(results) else 1)


if __name__ == '__main__':
    main()
