#!/usr/bin/python3
"""Reads what `dogs_vs_cats export --onnx` writes with other programs, and compares their probabilities with `evaluate`'s.

For each shipped network: a few steps on random images make weights and running statistics; it is exported. Then
  checker      python3-onnx accepts the file, and its shapes by inference are those that the file states
  OpenCV       cv2.dnn, batches of 1, 2 and 7
  ONNX Runtime the same, if --onnxruntime says where it is
compute the probabilities of seven random images. They must be within 1e-5 of those of `evaluate --csv`, which decodes the
same pixels from BMP files. Networks have their full width; images are normalised by unusual numbers. So that agreement
means something, probabilities have to depend on the image and no network may be certain: the spread of p over the images
and the mean of p (1 - p) are printed, and must be above 0.001, a hundred times the limit.

  apt-get install python3-opencv python3-onnx python3-numpy nodejs npm
  npm install --ignore-scripts --prefix ~/onnxruntime onnxruntime-node                  # optional
  tests/compare/onnx_with_others.py [--onnxruntime ~/onnxruntime] [--program build/release/bin/dogs_vs_cats] [--nets lenet]
"""
import argparse
import csv
import json
import os
import struct
import subprocess
import sys
import tempfile

import cv2
import numpy as np
import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = {'dogs_vs_cats': 64, 'quickstart': 64, 'lenet': 64, 'catdog_vgg': 64, 'alexnet': 96, 'vgg11_bn': 64,
         'resnet18': 64, 'resnet50': 64, 'mobilenet_v2': 64, 'highway': 64, 'small_images': 32}
BATCHES, IMAGES, LIMIT, LEAST = (1, 2, 7), 7, 1e-5, 1e-3


def write_bmp(path, image):
    """(height, width, 3) bytes, R G B; a width that is a multiple of 4."""
    height, width, _ = image.shape
    rows = image[::-1, :, ::-1].tobytes()
    with open(path, 'wb') as file:
        file.write(b'BM' + struct.pack('<IHHI', 54 + len(rows), 0, 0, 54))
        file.write(struct.pack('<IiiHHIIiiII', 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0))
        file.write(rows)


def write_images(folder, size, count, generator):
    """Random images in two folders; what evaluate calls them, and their pixels, (count, size, size, 3)."""
    # Large squares of colour and noise: after pooling, images of noise alone would all look the same.
    squares = generator.integers(0, 256, (count, 4, 4, 3)).repeat(size // 4, 1).repeat(size // 4, 2)
    noise = generator.integers(-40, 41, (count, size, size, 3))
    pixels = np.clip(squares + noise, 0, 255).astype(np.uint8)
    names = []
    for i, image in enumerate(pixels):
        names.append(f'{"ab"[i % 2]}/{i}.bmp')
        os.makedirs(os.path.join(folder, 'ab'[i % 2]), exist_ok=True)
        write_bmp(os.path.join(folder, names[-1]), image)
    return names, pixels


def run(program, *arguments):
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f'{program} {" ".join(arguments)}: exit code {result.returncode}\n{result.stderr}')


def train_and_export(program, net, size, folder):
    """The ONNX file; pixels as it takes them; what `evaluate` says of them."""
    generator = np.random.default_rng(3)
    paths = {name: os.path.join(folder, f'{net}-{name}') for name in ('train', 'seen', 'run', 'onnx', 'csv', 'pixels')}
    write_images(paths['train'], size, 16, generator)
    names, pixels = write_images(paths['seen'], size, IMAGES, generator)
    run(program, 'train', '--precision', 'f32', '--config', net, '--data', paths['train'], '--output', paths['run'], '--no-report',
        '--set', f'data.image_size={size}', '--set', 'train.phase=', '--set', f'train.evaluation_image_size={size}',
        '--set', 'train.evaluate_flipped=false', '--set', 'data.evaluation.crop_fraction=1', '--set', 'train.epochs=2',
        '--set', 'train.batch=4', '--set', 'train.accumulation=1', '--set', 'data.split.validation_fraction=0.25',
        '--set', 'optim.learning_rate=1e-4', '--set', 'data.mean=[100, 110, 120]', '--set', 'data.std=[250, 260, 270]')
    run(program, 'evaluate', '--checkpoint', paths['run'], '--data', paths['seen'], '--part', 'all', '--csv',
        paths['csv'])
    run(program, 'export', '--checkpoint', paths['run'], '--onnx', paths['onnx'])
    with open(paths['csv'], newline='', encoding='utf-8') as file:
        rows = {row['file']: [float(v) for k, v in row.items() if k.startswith('probability_')]
                for row in csv.DictReader(file)}
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2).astype(np.float32))
    planes.tofile(paths['pixels'])
    return {'net': net, 'model': paths['onnx'], 'pixels': paths['pixels'], 'size': size, 'batches': BATCHES,
            'planes': planes, 'expected': np.array([rows[name] for name in names])}


def check_file(job):
    """What the checker objects to; empty: nothing."""
    model = onnx.load(job['model'])
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    classes = json.loads({entry.key: entry.value for entry in model.metadata_props}['class_names'])
    return '' if classes == ['a', 'b'] else f'class_names are {classes}'


def by_opencv(job):
    results = []
    for batch in BATCHES:
        net = cv2.dnn.readNetFromONNX(job['model'])
        net.setInput(job['planes'][:batch])
        results.append(net.forward())
    return results


def by_onnxruntime(jobs, folder):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'run_onnx.mjs')
    asked = [{key: job[key] for key in ('model', 'pixels', 'size', 'batches')} for job in jobs]
    answer = subprocess.run(['node', script, os.path.abspath(os.path.expanduser(folder))], input=json.dumps(asked),
                            capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(f'onnxruntime: {answer.stderr}')
    return [[np.array(output['values']).reshape(output['shape']) for output in result['probabilities']]
            for result in json.loads(answer.stdout)]


def largest_difference(job, results):
    differences = [float(np.max(np.abs(result - job['expected'][:batch]))) for batch, result in zip(BATCHES, results)
                   if result.shape == (batch, 2)]
    return max(differences) if len(differences) == len(BATCHES) else float('inf')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--onnxruntime', help='the folder in which npm installed onnxruntime-node')
    parser.add_argument('--nets', default=','.join(SIZES))
    flags = parser.parse_args()
    shipped = {name[:-len('.textproto')] for name in os.listdir(os.path.join(ROOT, 'configs'))
               if name.endswith('.textproto')}
    if shipped != set(SIZES):
        sys.exit(f'the shipped networks are {sorted(shipped)}: add the new ones here')
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = [train_and_export(os.path.abspath(flags.program), net, SIZES[net], folder)
                for net in flags.nets.split(',')]
        runtime = by_onnxruntime(jobs, flags.onnxruntime) if flags.onnxruntime else [None] * len(jobs)
        for job, results in zip(jobs, runtime):
            objection, p = check_file(job), job['expected'][:, 0]
            spread, doubt = float(np.ptp(p)), float(np.mean(p * (1 - p)))
            opencv = largest_difference(job, by_opencv(job))
            other = largest_difference(job, results) if results else None
            right = not objection and opencv <= LIMIT and (other is None or other <= LIMIT) and min(spread, doubt) > LEAST
            failed += not right
            print(f'{job["net"]:13} {"right" if right else "WRONG"}  checker {objection or "accepts"}; OpenCV '
                  f'{opencv:.1e}; ONNX Runtime {"not asked" if other is None else format(other, ".1e")}; p '
                  f'spreads over {spread:.3f}, mean of p (1 - p) {doubt:.3f}')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
