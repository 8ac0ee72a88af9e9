"""What the studies share: runs of dogs_vs_cats, and what their metrics.jsonl say."""
import json
import os
import statistics
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the studies compare with, whatever rule a config has of its own.
SGD = ['optim.sgd.momentum=0.9', 'optim.sgd.nesterov=true', 'optim.learning_rate=0.1', 'optim.batch_scaling.rule=NONE']
SIXTEEN_EPOCHS = os.path.join(ROOT, 'apps/studies/sixteen_epochs.textproto')
WIRE = 0.949  # apps/plan/link_rate.h: what a program has of a link's rate
WARM_UP_STEPS = 3  # first touches, and the time until all ranks are there


def add_arguments(parser):
    parser.add_argument('--data', required=True, help='folder with images (Kaggle names, or a folder per class)')
    parser.add_argument('--programs', default=os.path.join(ROOT, 'build/release/bin'), help='folder')
    parser.add_argument('--set', action='append', default=[], help='more overrides for all runs; repeatable')


def sets(overrides):
    return [word for override in overrides for word in ('--set', override)]


class Run:
    """What a finished run has written."""

    def __init__(self, folder, log):
        self.log = log
        with open(os.path.join(folder, 'metrics.jsonl'), encoding='utf-8') as file:
            lines = [json.loads(line) for line in file]
        self.steps = [line for line in lines if line['kind'] == 'step']
        self.evaluations = [line for line in lines if line['kind'] == 'evaluation']

    def median(self, key):
        return statistics.median(step[key] for step in self.steps[WARM_UP_STEPS:])

    def sent_bytes(self):
        """Of the rank that sends the most."""
        return statistics.median(max(rank['comm_bytes'] for rank in step['ranks']) if step['ranks']
                                 else step['comm_bytes'] for step in self.steps[WARM_UP_STEPS:])

    def accuracy(self):
        return self.evaluations[-1]['accuracy'] if self.evaluations else None


def train(args, config, overrides, ranks=1, rate=None, threads=1):
    """One training run: on this machine, or with `rate` on a namespace for each rank."""
    with tempfile.TemporaryDirectory() as folder:
        program = [os.path.join(args.programs, 'dogs_vs_cats'), 'train', '--config',
                   os.path.join(ROOT, 'configs', config), '--data', args.data, '--output', folder,
                   '--threads', str(threads)] + sets(overrides + args.set)
        if rate is not None:
            program = [os.path.join(ROOT, 'tests/cluster/netns.sh'), '-n', str(ranks), '-r', rate, '--'] + \
                program + ['--insecure']
        elif ranks > 1:
            program = [os.path.join(args.programs, 'ringtail_launch'), '-n', str(ranks), '--'] + program
        done = subprocess.run(program, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f'{" ".join(program)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}')
        return Run(folder, done.stdout + done.stderr)


def read_result(args, path):
    """What a study has written; refused if that was with other settings, as far as the file says with which."""
    with open(path, encoding='utf-8') as file:
        result = json.load(file)
    for field in ('set', 'threads'):
        now = getattr(args, field, None)
        if field in result and now is not None and result[field] != now:
            raise SystemExit(f'{path} was made with --{field} {result[field]}, and {now} is asked for: take another --out, or remove it')
    return result


def once(args, path, make):
    """What make() returns, kept in a file, which is written at the end, so that a study that was interrupted continues."""
    if not os.path.exists(path):
        with open(path + '.part', 'w', encoding='utf-8') as file:
            json.dump(make(), file)
        os.rename(path + '.part', path)
    return read_result(args, path)


def percent(fraction):
    return '' if fraction is None else f'{100 * fraction:.2f} %'
