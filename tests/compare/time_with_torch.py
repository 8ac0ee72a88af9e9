#!/usr/bin/python3
"""Training speed and peak memory of Ringtail beside PyTorch at its fastest CPU settings.

Every net is measured in alternating runs (PyTorch, Ringtail, PyTorch, ...), one process each, so that a noisy
machine disturbs both sides alike. PyTorch runs with OpenBLAS, tcmalloc and, per net, the faster of channels_last
and oneDNN's blocked layout (--layouts). With --precision bf16 Ringtail's side is that, and PyTorch may have, per net,
autocast to bfloat16, where that is faster than its f32; its best f32 is measured in the same rounds. `untuned` is Debian's PyTorch untuned: plain layout, glibc's allocator.

  apt-get install python3-torch python3-torchvision libopenblas0-openmp libtcmalloc-minimal4
  tests/compare/time_with_torch.py [--nets resnet18:128:32,lenet:64:32] [--rounds 3]
"""
import argparse
import json
import math
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIBRARIES = '/usr/lib/x86_64-linux-gnu'
NETS = ('lenet:64:32,catdog_vgg:128:32,alexnet:224:32,vgg11_bn:128:32,resnet18:128:32,resnet18:224:32,'
        'mobilenet_v2:128:32,mobilenet_v2:224:32,resnet50:224:8')


def torch_run(net, settings, threads, steps, tuned):
    """`settings`: a layout, and ' bf16'. None if PyTorch cannot do that."""
    name, size, batch = net.split(':')
    layout, *precision = settings.split()
    env = dict(os.environ)
    if tuned:
        env['OMP_NUM_THREADS'] = str(threads)
        env['LD_LIBRARY_PATH'] = f'{LIBRARIES}/openblas-openmp'
        env['LD_PRELOAD'] = f'{LIBRARIES}/libtcmalloc_minimal.so.4'
    run = subprocess.run(['/usr/bin/python3', os.path.join(HERE, 'torch_step.py'), name, size, batch, str(threads),
                          layout, str(steps), *precision], env=env, capture_output=True, text=True)
    if run.returncode != 0:
        return None  # the blocked layout lacks some operations (ReLU6)
    result = json.loads(run.stdout)
    return statistics.median(result['times']) * 1e3, result['peak_mib']


def ringtail_run(net, args):
    name, size, batch = net.split(':')
    run = subprocess.run([args.program, 'time', '--config', os.path.join(ROOT, 'configs', name + '.textproto'), '--batch',
                          batch, '--precision', args.precision, '--set', f'data.image_size={size}', '--threads', str(args.threads), '--iterations',
                          str(args.steps), '--json', *(word for override in args.set for word in ('--set', override))], check=True, capture_output=True, text=True)
    result = json.loads(run.stdout)
    return result['step_ms'], result['peak_memory_mib']


def probes(net, args):
    """Settings of PyTorch -> ms of a step."""
    layouts = args.layouts.split(',')
    known = {}
    for settings in layouts + [f'{layout} bf16' for layout in layouts if args.precision == 'bf16']:
        probe = torch_run(net, settings, args.threads, args.steps, True)
        if probe:
            known[settings] = probe[0]
    return known


def measure(net, best, single, args):
    """One round: (ms, MiB) of PyTorch's best settings, of its best in f32, and of Ringtail."""
    fastest = torch_run(net, best, args.threads, args.steps, True)
    return {'best': fastest, 'single': fastest if single == best else torch_run(net, single, args.threads, args.steps, True),
            'ringtail': ringtail_run(net, args)}


def listed(ratios):
    return ', '.join(f'{ratio:.2f}' for ratio in ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    parser.add_argument('--nets', default=NETS, help='name:size:batch,...')
    parser.add_argument('--threads', type=int, default=os.cpu_count())
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--steps', type=int, default=5)
    parser.add_argument('--layouts', default='nhwc,mkldnn')
    parser.add_argument('--precision', default='f32', choices=['f32', 'bf16'], help='of Ringtail; PyTorch takes its faster one')
    parser.add_argument('--set', action='append', default=[], help='override for Ringtail; repeatable')
    parser.add_argument('--untuned', action='store_true', help='also PyTorch untuned')
    args = parser.parse_args()
    print('| net @size, batch | PyTorch tuned ms (layout) | Ringtail ms | speed ratio per round | median | peak MiB PyTorch | Ringtail | '
          'memory ratio | PyTorch f32 ms (layout) | ratio to it per round | median | PyTorch untuned ms |')
    print('|---' * 12 + '|')
    speeds, single_speeds, memories = [], [], []
    for net in args.nets.split(','):
        known = probes(net, args)
        best, single = min(known, key=known.get), min((name for name in known if 'bf16' not in name), key=known.get)
        rounds = [measure(net, best, single, args) for _ in range(args.rounds)]
        untuned = torch_run(net, 'nchw', 1, 2, False)[0] if args.untuned else float('nan')
        median = lambda key, i: statistics.median(sides[key][i] for sides in rounds)
        ratios, single_ratios = ([sides[key][0] / sides['ringtail'][0] for sides in rounds] for key in ('best', 'single'))
        speeds.append(statistics.median(ratios))
        single_speeds.append(statistics.median(single_ratios))
        memories.append(median('ringtail', 1) / median('best', 1))
        name, size, batch = net.split(':')
        print(f'| {name} @{size}, {batch} | {median("best", 0):.0f} ({best}) | {median("ringtail", 0):.0f} | {listed(ratios)} | '
              f'{speeds[-1]:.2f} | {median("best", 1):.0f} | {median("ringtail", 1):.0f} | {memories[-1]:.2f} | '
              f'{median("single", 0):.0f} ({single}) | {listed(single_ratios)} | {single_speeds[-1]:.2f} | {untuned:.0f} |', flush=True)
    mean = lambda values: math.exp(statistics.fmean(map(math.log, values)))
    print(f'geometric mean: speed {mean(speeds):.2f}, memory {mean(memories):.2f}; speed beside PyTorch in f32 {mean(single_speeds):.2f}')


if __name__ == '__main__':
    main()
