#!/usr/bin/python3
"""Time to accuracy on real Dogs-vs-Cats: configs/dogs_vs_cats.textproto beside PyTorch on the same images.

Both train on cat and dog 0 .. 9999 and validate on 10000 .. 11249, one after the other, from scratch, with all cores.
Minutes are those of training steps, waits for data included, evaluations not. PyTorch's recipe and its settings:
torch_training.py. A finished run in --out is shown again, not made again; Ringtail's unfinished runs continue.

  apt-get install python3-torch python3-numpy python3-opencv libopenblas0-openmp libtcmalloc-minimal4
  tests/compare/accuracy_with_torch.py --data ~/dogs-vs-cats/train [--seeds 1,2,3] [--out runs/accuracy]
"""
import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBRARIES = '/usr/lib/x86_64-linux-gnu'
SPLIT = {'train.first': 0, 'train.last': 9999, 'validation.first': 10000, 'validation.last': 11249}
MARKS = (0.925, 0.945, 0.95, 0.96)
TORCH_EPOCHS = 15


def ringtail_curve(args, seed):
    """[(epoch, minutes of training, validation accuracy)]"""
    folder = os.path.join(args.out, f'ringtail-{seed}')
    if not os.path.exists(os.path.join(folder, 'final.safetensors')):
        command = [args.program, 'train', '--config', os.path.join(ROOT, 'configs/dogs_vs_cats.textproto'),
                   '--data', args.data, '--output', folder, '--resume', '--set', f'train.seed={seed}']
        for field, value in SPLIT.items():
            command += ['--set', f'data.split.{field}={value}']
        subprocess.run(command, check=True)
    curve, minutes = [], 0.0
    with open(os.path.join(folder, 'metrics.jsonl')) as lines:
        for line in map(json.loads, lines):
            if line['kind'] == 'step':
                minutes += (line['step_ms'] or 0) / 60e3
            else:
                curve.append((line['epoch'], minutes, line['accuracy']))
    return curve


def torch_curve(args):
    out = os.path.join(args.out, 'torch.jsonl')
    if not os.path.exists(out) or sum(1 for _ in open(out)) < TORCH_EPOCHS:
        env = dict(os.environ, OMP_NUM_THREADS='2', LD_LIBRARY_PATH=f'{LIBRARIES}/openblas-openmp',
                   LD_PRELOAD=f'{LIBRARIES}/libtcmalloc_minimal.so.4')
        script = os.path.join(HERE, 'torch_training.py')
        subprocess.run(['/usr/bin/python3', script, args.data, str(TORCH_EPOCHS), out], env=env, check=True)
    with open(out) as lines:
        return [(row['epoch'], row['seconds'] / 60, row['accuracy']) for row in map(json.loads, lines)]


def minutes_to(curve, accuracy):
    return next((f'{minutes:.1f}' for _, minutes, reached in curve if reached >= accuracy), '')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--data', required=True, help='folder of cat.N.jpg and dog.N.jpg')
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--out', default='runs/accuracy')
    parser.add_argument('--seeds', default='1')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    curves = {f'Ringtail, seed {s}': ringtail_curve(args, s) for s in args.seeds.split(',')}
    curves['PyTorch'] = torch_curve(args)
    print('| | ' + ' | '.join(f'{100 * m:g} % after min' for m in MARKS) + ' | best % | last % | whole training, min |')
    print('|---' * (len(MARKS) + 4) + '|')
    for name, curve in curves.items():
        marks = ' | '.join(minutes_to(curve, m) for m in MARKS)
        best = max(accuracy for _, _, accuracy in curve)
        print(f'| {name} | {marks} | {100 * best:.2f} | {100 * curve[-1][2]:.2f} | {curve[-1][1]:.1f} |')
    for name, curve in curves.items():
        points = '  '.join(f'{minutes:.1f}: {100 * accuracy:.1f}' for _, minutes, accuracy in curve)
        print(f'\n{name} (minutes: accuracy %)\n{points}')


if __name__ == '__main__':
    main()
