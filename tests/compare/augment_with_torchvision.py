#!/usr/bin/python3
"""Compares every operation of TrivialAugment with torchvision's, pixel for pixel, on images that are not tensors.

Needs python3-torchvision, python3-pil, and the worker `data_pixel_operation_main` (built with the tests). Each operation runs at all
31 magnitudes of torchvision's TrivialAugmentWide and both signs, on square and oblong images, with nearest pixels and bilinear.
At most one level of difference, in at most 1 of 1,000 values, is allowed for: torch's magnitudes are f32.

    tests/compare/augment_with_torchvision.py [--worker build/release/tests/data_pixel_operation_main]
"""
import argparse
import subprocess
import sys

import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment

LIMIT = 1e-3  # of the values of an operation


def draw(width, height, seed):
    """Smooth colours, edges and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    planes = [127 + 100 * np.sin(x / rng.uniform(3, 9) + y / rng.uniform(3, 9) + c) for c in range(3)]
    image = np.stack(planes, axis=-1) + rng.normal(0, 12, (height, width, 3))
    image[height // 3:height // 2, width // 4:width // 2] = rng.integers(0, 256, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def ours(worker, operation, magnitude, bilinear, image):
    height, width, _ = image.shape
    command = [worker, str(operation), repr(magnitude), str(int(bilinear)), str(width), str(height)]
    result = subprocess.run(command, input=image.tobytes(), stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(result, np.uint8).reshape(image.shape)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--worker', default='build/release/tests/data_pixel_operation_main')
    args = parser.parse_args()
    images = [draw(64, 64, 1), draw(61, 45, 2), draw(224, 224, 3)]
    space = autoaugment.TrivialAugmentWide()._augmentation_space(31)
    failed = 0
    for number, (name, (magnitudes, signed)) in enumerate(space.items()):
        compared = different = worst = 0
        values = [float(m) for m in magnitudes] if magnitudes.ndim else [0.0]
        values += [-m for m in values if m] if signed else []
        for magnitude in values:
            whole = float(int(magnitude)) if name.startswith('Translate') else magnitude
            for mode in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR):
                for image in images:
                    theirs = np.asarray(autoaugment._apply_op(Image.fromarray(image), name, magnitude, mode, None))
                    mine = ours(args.worker, number, whole, mode == InterpolationMode.BILINEAR, image)
                    distance = np.abs(mine.astype(int) - theirs)
                    compared += distance.size
                    different += int(np.count_nonzero(distance))
                    worst = max(worst, int(distance.max()))
        wrong = different > LIMIT * compared or (worst > 1 and different > 0 and name in COLOURS)
        failed += wrong
        print(f'{name:13} {len(values):3} magnitudes: {different} of {compared} values differ, by at most {worst}'
              f'{"  TOO MANY" if wrong else ""}')
    return 1 if failed else 0


COLOURS = ('Brightness', 'Color', 'Contrast', 'Sharpness', 'Posterize', 'Solarize', 'AutoContrast', 'Equalize')

if __name__ == '__main__':
    sys.exit(main())
