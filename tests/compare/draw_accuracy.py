#!/usr/bin/python3
"""Draws accuracy.csv as accuracy.svg: accuracy over minutes of training, one line per curve. Needs Python alone.

  tests/compare/draw_accuracy.py            after accuracy.csv has changed
"""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
# Drawn curves, with their colours; the file may have more.
CURVES = {'Ringtail, Muon': '#0b6e99', 'Ringtail, SGD': '#6fb3cc', 'PyTorch': '#c4541c'}
WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 20, 44  # margins
MINUTES, STEP_MINUTES = 24, 4
PERCENT, STEP_PERCENT = (50, 100), 10


def x_of(minutes):
    return LEFT + (WIDTH - LEFT - RIGHT) * minutes / MINUTES


def y_of(percent):
    low, high = PERCENT
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (percent - low) / (high - low)


def read_curves():
    """{name: [(minutes, percent)]} in the order of the file."""
    curves = {}
    with open(os.path.join(HERE, 'accuracy.csv'), encoding='utf-8') as file:
        for line in file:
            if line.startswith('#'):
                continue
            name, minutes, percent = line.strip().split(';')
            curves.setdefault(name, []).append((float(minutes), float(percent)))
    return curves


def text(x, y, words, anchor='middle', more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'


def axes():
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for percent in range(PERCENT[0], PERCENT[1] + 1, STEP_PERCENT):
        y = y_of(percent)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>'
        yield text(LEFT - 8, y + 4, f'{percent} %', 'end')
    for minutes in range(0, MINUTES + 1, STEP_MINUTES):
        yield text(x_of(minutes), bottom + 18, f'{minutes}')
    yield text((LEFT + right) / 2, HEIGHT - 8, 'minutes of training on 2 cores (f32)')


def curve(name, points, color):
    places = ' '.join(f'{x_of(minutes):.1f},{y_of(percent):.1f}' for minutes, percent in points)
    yield f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="2"/>'
    minutes, percent = points[-1]
    yield f'<circle cx="{x_of(minutes):.1f}" cy="{y_of(percent):.1f}" r="3" fill="{color}"/>'


def legend(curves):
    for row, (name, color) in enumerate(CURVES.items()):
        y = y_of(75) + 34 * row
        yield text(WIDTH - RIGHT + 14, y, name, 'start', f' fill="{color}" font-weight="bold"')
        minutes, percent = curves[name][-1]
        yield text(WIDTH - RIGHT + 14, y + 15, f'{percent} % in {minutes} min', 'start', f' fill="{color}"')


def main():
    curves = read_curves()
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="12" fill="#333">', '<title>Validation accuracy on Dogs-vs-Cats over time</title>',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', *axes()]
    for name, color in CURVES.items():
        lines += curve(name, curves[name], color)
    lines += [*legend(curves), '</svg>']
    with open(os.path.join(HERE, 'accuracy.svg'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
