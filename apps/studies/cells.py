"""What the studies with the emulator share: cells, each a training run whose result is a file.

A cell is a name and a command's fields. Its file is written when the run is done, so that the same command continues with the cells
that are missing, and tables share cells. A file that was made with other --set or --threads is refused.
"""
import concurrent.futures
import json
import os
import statistics
import sys

import study


def add_arguments(parser, out):
    study.add_arguments(parser)
    parser.add_argument('--out', default=out, help='folder, a file for each cell')
    parser.add_argument('--seeds', default='1')
    parser.add_argument('--jobs', type=int, default=len(os.sched_getaffinity(0)), help='cells at once')
    parser.add_argument('--threads', type=int, default=1, help='of each cell')


def emulate(args, config, overrides, script):
    """The command that trains a cell."""
    return [os.path.join(args.programs, 'dogs_vs_cats'), 'emulate', '--json', '--data', args.data, '--threads', str(args.threads),
            '--config', os.path.join(study.ROOT, config)] + study.sets(overrides + args.set) + [
                word for field in script for word in ('--script-set', field)]


def read(args, name):
    path = os.path.join(args.out, name + '.json')
    return study.read_result(args, path) if os.path.exists(path) else None


def curve_of(path):
    """[epoch, validation accuracy] of each evaluation."""
    with open(path, encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    return [[line['epoch'], line['accuracy']] for line in lines if line['kind'] == 'evaluation']


def make(args, name, command, about):
    """The cell's file; a cell that diverges is a result, too (exit code 3)."""
    path = os.path.join(args.out, name + '.json')
    command = command + ['--out', path + '.lines']
    with open(path + '.out', 'w+', encoding='utf-8') as out:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_OPEN, 2, path + '.err', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)])
        _, status, usage = os.wait4(pid, 0)
        out.seek(0)
        text = out.read()
    status = os.waitstatus_to_exitcode(status)
    if status not in (0, 3):
        raise SystemExit(f'{" ".join(command)}\nended with {status}: {path}.err says why')
    result = {'cell': about, 'set': args.set, 'threads': args.threads, 'cpu_s': usage.ru_utime + usage.ru_stime, **json.loads(text),
              'curve': curve_of(path + '.lines')}
    with open(path + '.part', 'w', encoding='utf-8') as file:
        json.dump(result, file, indent=1)
    os.rename(path + '.part', path)
    for end in ('.out', '.err', '.lines'):
        os.remove(path + end)
    sys.stdout.write(f'{name}: {text_of([result])}, {result["cpu_s"] / 60:.1f} CPU minutes\n')
    sys.stdout.flush()


def make_all(args, cells):
    """`cells`: (name, command, about) of each; those that have no file yet are made."""
    os.makedirs(args.out, exist_ok=True)
    missing = {cell[0]: cell for cell in cells if read(args, cell[0]) is None}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = [pool.submit(make, args, *cell) for cell in missing.values()]
        try:
            for cell in concurrent.futures.as_completed(running):
                cell.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def print_estimates(args, tables):
    """What there is to do: `tables` are names and cells, with a name and an estimate in seconds() that measured cells correct."""
    known = [(cell, read(args, cell.name)) for group in tables.values() for cell in group]
    ratios = [result['cpu_s'] / cell.seconds() for cell, result in known if result and result.get('cpu_s')]
    scale = statistics.median(ratios) if ratios else 1
    print(f'{len(ratios)} cells are measured: {scale:.2f} times the estimates')
    counted, everything = set(), 0
    for name, group in tables.items():
        left = [cell for cell in dict.fromkeys(group) if cell not in counted and read(args, cell.name) is None]
        counted.update(left)
        minutes = scale * sum(cell.seconds() for cell in left) / 60
        everything += minutes
        print(f'\n{name}: {len(group)} cells, {len(left)} to do beside the tables above, {minutes:.0f} CPU minutes')
        for cell in left:
            print(f'  {scale * cell.seconds() / 60:6.1f}  {cell.name}')
    print(f'\nin all {everything:.0f} CPU minutes, {everything / args.jobs / args.threads / 60:.1f} hours')


def text_of(results):
    """Mean accuracy, and what it varies by."""
    results = [result for result in results if result]
    if not results:
        return ''
    diverged = sum(bool(result['not_finite']) for result in results)
    if diverged:
        return 'diverged' if diverged == len(results) else f'{diverged} of {len(results)} diverged'
    values = [result['accuracy'] for result in results]
    spread = f' ± {100 * statistics.stdev(values):.2f}' if len(values) > 1 else ''
    return study.percent(statistics.mean(values)) + spread
