"""What dilated.py says of a finished run of `dogs_vs_cats train`: rank 0's metrics.jsonl, in the time of the hosts.

    figures = report(pathlib.Path('run/metrics.jsonl'), dilation, warm_up=5)     a dictionary
    print(as_text(figures | ...))                                                with what dilated.py adds
"""
import itertools
import json
import statistics
import sys

TIMES = ('step_ms', 'data_wait_ms', 'forward_ms', 'backward_ms', 'exposed_comm_ms', 'hidden_comm_ms', 'encode_ms', 'decode_ms')


def refuse(message):
    sys.exit(f'dilated.sh: {message}')


def report(metrics, dilation, warm_up):
    """Medians over the steps after the first `warm_up`, undilated."""
    lines = [json.loads(line) for line in metrics.read_text(encoding='utf-8').splitlines()]
    steps = [line for line in lines if line['kind'] in ('step', 'update')][warm_up:]
    if not steps:
        refuse(f'no more than {warm_up} steps were trained; fewer of them to warm up: --warm-up')

    def middle(values):
        values = [value for value in values if value is not None]
        return statistics.median(values) if values else None

    figures = {'steps': len(steps), 'images_per_s': middle(line['images_per_s'] for line in steps) * dilation.factor}
    times = sorted(line['step_ms'] for line in steps if line['step_ms'] is not None)
    figures['step_ms_quartiles'] = [times[round((len(times) - 1) * q)] / dilation.factor for q in (0.25, 0.75)]
    for name in TIMES:
        value = middle(line[name] for line in steps)
        figures[name] = None if value is None else value / dilation.factor
    figures['comm_bytes'] = middle(line['comm_bytes'] for line in steps)
    if steps[0]['kind'] == 'update':
        return figures | report_of_updates(steps, dilation)
    rounds = [line for line in lines if line['kind'] == 'round']
    counted = [line for line, begin in zip(rounds, begins_of(rounds)) if begin >= steps[0]['step'] - 1]
    if rounds and not counted:
        refuse(f'no round began after the {warm_up} steps to warm up: train more steps, or fewer of them to warm up: --warm-up')
    return figures | (report_of_rounds(counted, dilation) if rounds else {})


def begins_of(rounds):
    """How many steps were done when the time of each round's line began. The line of a round that overlaps comes at the end of the next
    one, and has the time since the line before: that of the next one's steps. But the first has the time of its own steps; so has the last,
    which comes at once with the one before."""
    begins = [line['step'] - line['local_steps'] for line in rounds]
    if len(rounds) > 1 and rounds[-2]['step'] == rounds[-1]['step']:
        begins[0] -= rounds[1]['local_steps']
        begins[1:-1] = [line['step'] for line in rounds[:-2]]
    return begins


def report_of_updates(updates, dilation):
    """Of servers: all images over all of the time; the staleness of all gradients."""
    updates = [line for line in updates if line['images_per_s']]
    images, seconds = sum(line['batch'] for line in updates), sum(line['batch'] / line['images_per_s'] for line in updates)
    histogram = [sum(counts) for counts in itertools.zip_longest(*(line['staleness_histogram'] for line in updates), fillvalue=0)]
    return {'updates': updates[-1]['version'] - updates[0]['version'], 'images_per_s': images / seconds * dilation.factor,
            'staleness_histogram': histogram, 'discarded': sum(line['discarded'] for line in updates),
            'blocked_share': sum(line['blocked_ms'] for line in updates) / 1e3 / seconds}


def report_of_rounds(rounds, dilation):
    """Of local rounds: all images over all of the time, which includes the waiting at the ends of rounds."""
    seconds = sum(line['step_ms'] for line in rounds) / 1e3
    return {'rounds': len(rounds), 'local_steps': statistics.median(line['local_steps'] for line in rounds),
            'images_per_s': sum(line['batch'] for line in rounds) / seconds * dilation.factor,
            'exposed_share': sum(line['exposed_comm_ms'] for line in rounds) / 1e3 / seconds,
            'bytes_per_image': sum(line['comm_bytes'] for line in rounds) / sum(line['batch'] for line in rounds)}


def as_text(result):
    link = 'links without limit'
    if result['link_mbit']:
        link = f'links of {result["link_mbit"]:g} Mbit/s'
    lines = [f'{result["hosts"]} hosts of {result["cores"]} cores at {result["rate"]}: {result["dilation"]:g} times slower here, '
             f'{link}, {result["share"]:g} of a core each']
    if result['probe_mb_per_s']:
        lines.append(f'probe: {result["probe_mb_per_s"]:.4g} MB/s of {result["expected_mb_per_s"]:.4g}')
    for rank, factor in result['slow'].items():
        lines.append(f'rank {rank}: {factor:g} times slower than the others')
    if 'steps' in result:
        low, high = result['step_ms_quartiles']
        lines.append(f'{result["images_per_s"]:.4g} images/s; step {result["step_ms"]:.4g} ms (quartiles {low:.4g}, {high:.4g}); '
                     f'medians of {result["steps"]} steps of rank 0, in the time of these hosts:')
        lines += [f'  {name[:-3]:<14} {result[name]:>10.3f} ms' for name in TIMES[1:] if result[name] is not None]
        if not result.get('updates'):
            lines.append(f'  sent by rank 0 {result["comm_bytes"] / 1e6:>9.3f} MB')
    if result.get('updates'):
        lines.append(f'{result["updates"]} updates, {result["discarded"]} gradients thrown away; rank 0 waited for servers '
                     f'{result["blocked_share"]:.1%} of the time; gradients by staleness, from 0: '
                     + ' '.join(map(str, result['staleness_histogram'])))
    if 'rounds' in result:
        lines.append(f'{result["rounds"]} rounds of {result["local_steps"]:g} local steps: images/s above are theirs; rank 0 waited '
                     f'for exchanges {result["exposed_share"]:.1%} of the time and sent {result["bytes_per_image"]:.0f} bytes per '
                     'image of all ranks')
    return '\n'.join(lines)
