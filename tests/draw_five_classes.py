#!/usr/bin/python3
"""Draws 600 images in folders of five classes, for package_in_chroot.sh: draw_five_classes.py DRAWN OUTPUT.

DRAWN is a folder of `ringtail synthesize` with at least 120 cats and 120 dogs. Needs python3-opencv."""
import glob
import os
import random
import shutil
import sys

import cv2
import numpy as np

IMAGES = 120  # of a class


def shape(draw, colour):
    """A shape of about `colour` in noise, of any size and place."""
    image = np.random.randint(0, 160, (12, 15, 3), np.uint8)
    image = cv2.resize(image, (200, 160), interpolation=cv2.INTER_CUBIC)
    radius = random.randint(25, 60)
    centre = (random.randint(radius, 200 - radius), random.randint(radius, 160 - radius))
    draw(image, centre, radius, [min(255, max(0, c + random.randint(-40, 40))) for c in colour])
    return image


def circle(image, centre, radius, colour):
    cv2.circle(image, centre, radius, colour, -1, cv2.LINE_AA)


def polygon(image, centre, radius, colour, corners):
    turn = random.uniform(0, 2 * np.pi)
    angles = turn + 2 * np.pi * np.arange(corners) / corners
    points = np.stack([centre[0] + radius * np.cos(angles), centre[1] + radius * np.sin(angles)], axis=1)
    cv2.fillPoly(image, [points.astype(np.int32)], colour, cv2.LINE_AA)


def main():
    drawn, output = sys.argv[1:]
    random.seed(1)
    np.random.seed(1)
    animals = {'Kätzchen': 'cat', 'Hündchen': 'dog'}
    shapes = {'rote Äpfel': circle, 'grüne Würfel': lambda *a: polygon(*a, 4),
              'Dreiecke über allem': lambda *a: polygon(*a, 3)}
    colours = {'rote Äpfel': (40, 40, 200), 'grüne Würfel': (60, 180, 60), 'Dreiecke über allem': (200, 90, 60)}
    for name in [*animals, *shapes]:
        os.makedirs(os.path.join(output, name))
    for name, species in animals.items():
        files = sorted(glob.glob(os.path.join(glob.escape(drawn), '**', species + '.*.jpg'), recursive=True))
        for i, file in enumerate(files[:IMAGES]):
            shutil.copy(file, os.path.join(output, name, f'{i}.jpg'))
    for name, draw in shapes.items():
        for i in range(IMAGES):
            _, data = cv2.imencode('.jpg', shape(draw, colours[name]))  # imwrite takes no name with umlauts everywhere
            with open(os.path.join(output, name, f'{i}.jpg'), 'wb') as file:
                file.write(data.tobytes())


if __name__ == '__main__':
    main()
