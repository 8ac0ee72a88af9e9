#!/usr/bin/python3
"""Reads TensorBoard's event files of a run while it trains, after it was stopped and resumed, and at its end.

The messages are described here, from TensorFlow's schema, and decoded by python3-protobuf; checksums are computed bit by
bit. At any time every record must be whole and right; the points are those of metrics.jsonl, each step once, as floats.
What a TensorBoard that has been open all along shows is checked, too: it reads a folder's files in the order of their
names, each from where it was, and forgets what it has read from the step of a session's start on.

  apt-get install python3-protobuf
  tests/compare/events_with_protobuf.py [--program build/release/bin/dogs_vs_cats]
"""
import argparse
import glob
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAGS = ('loss', 'accuracy', 'learning_rate')


def event_class():
    file = descriptor_pb2.FileDescriptorProto(name='event', package='t', syntax='proto3')
    kinds = descriptor_pb2.FieldDescriptorProto
    fields = {'Value': [('tag', 1, kinds.TYPE_STRING, ''), ('simple_value', 2, kinds.TYPE_FLOAT, '')],
              'Summary': [('value', 1, kinds.TYPE_MESSAGE, '.t.Value')],
              'SessionLog': [('status', 1, kinds.TYPE_INT32, '')],  # 1: START
              'Event': [('wall_time', 1, kinds.TYPE_DOUBLE, ''), ('step', 2, kinds.TYPE_INT64, ''),
                        ('file_version', 3, kinds.TYPE_STRING, ''), ('summary', 5, kinds.TYPE_MESSAGE, '.t.Summary'),
                        ('session_log', 7, kinds.TYPE_MESSAGE, '.t.SessionLog')]}
    for name, members in fields.items():
        message = file.message_type.add(name=name)
        for field, number, kind, type_name in members:
            label = kinds.LABEL_REPEATED if name == 'Summary' else kinds.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=kind, label=label, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName('t.Event'))


EVENT = event_class()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


class Tail:
    """A file that is read from where it was."""

    def __init__(self, path):
        self.file = open(path, 'rb')  # stays readable when it is removed

    def read(self):
        data, at, events = self.file.read(), 0, []
        while at < len(data):
            length, crc = struct.unpack_from('<QI', data, at)
            content = data[at + 12:at + 12 + length]
            assert crc == masked_crc(data[at:at + 8]), 'the checksum of a length is wrong'
            assert struct.unpack_from('<I', data, at + 12 + length)[0] == masked_crc(content), 'a checksum is wrong'
            events.append(EVENT.FromString(content))
            at += 16 + length
        assert at == len(data), 'a record is torn'
        return events


class Viewer:
    """What TensorBoard has of one folder."""

    def __init__(self, folder):
        self.folder, self.name, self.tail, self.points = folder, '', None, {}

    def look(self):
        names = sorted(os.path.basename(p) for p in glob.glob(glob.escape(self.folder) + '/*tfevents*'))
        assert len(names) <= 1, f'{self.folder} has {names}'
        if self.tail:
            self.take(self.tail.read())
        for name in names:
            if name > self.name:
                self.name, self.tail = name, Tail(os.path.join(self.folder, name))
                self.take(self.tail.read())

    def take(self, events):
        for event in events:
            if event.session_log.status == 1:
                self.points = {step: point for step, point in self.points.items() if step < event.step}
            if event.summary.value:
                assert event.step not in self.points, f'step {event.step} is there twice'
                self.points[event.step] = {v.tag: v.simple_value for v in event.summary.value}


def metrics(run, kind):
    as_float = lambda x: struct.unpack('<f', struct.pack('<f', x))[0]
    with open(os.path.join(run, 'metrics.jsonl'), encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    return {line['step']: {tag: as_float(line[tag]) for tag in TAGS if line[tag] is not None}
            for line in lines if line['kind'] == kind}


def compare(run, viewers, what, ahead=0):
    """`ahead`: so many points may be there whose line in metrics.jsonl is not: an event is written first."""
    def right(points, expected):
        extra = points.keys() - expected.keys()
        return len(extra) <= ahead and {s: p for s, p in points.items() if s not in extra} == expected

    for part, kind in (('train', 'step'), ('validation', 'evaluation')):
        fresh = Viewer(os.path.join(run, 'tensorboard', part))
        fresh.look()
        viewers[part].look()
        expected = metrics(run, kind)
        assert right(fresh.points, expected), f'{what}: a new reader of {part} has other points than metrics.jsonl'
        assert right(viewers[part].points, expected), f'{what}: the open reader of {part} has other points'
        print(f'{what}: {part} has {len(expected)} points, as metrics.jsonl')


def watch(process, viewers):
    """The numbers of points that were seen while the process ran."""
    seen = set()
    while process.poll() is None:
        for viewer in viewers.values():
            viewer.look()
        seen.add(len(viewers['train'].points))
        time.sleep(0.02)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default=os.path.join(ROOT, 'build/release/bin/dogs_vs_cats'))
    program = os.path.abspath(parser.parse_args().program)
    with tempfile.TemporaryDirectory() as folder:
        data, run = os.path.join(folder, 'data'), os.path.join(folder, 'run')
        subprocess.run([program, 'synthesize', '--out', data, '--images', '64'], check=True, stdout=subprocess.DEVNULL)
        command = [program, 'train', '--no-report', '--output', run, '--config', 'quickstart', '--data', data,
                   '--set', 'train.epochs=30', '--set', 'train.batch=8']
        viewers = {part: Viewer(os.path.join(run, 'tensorboard', part)) for part in ('train', 'validation')}
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while len(viewers['train'].points) < 30 and first.poll() is None:
            viewers['train'].look()
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)  # steps since the last checkpoint will be written again
        first.wait()
        compare(run, viewers, 'killed', ahead=1)
        before = len(viewers['train'].points)
        second = subprocess.Popen([*command, '--resume'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = watch(second, viewers)
        if second.returncode:
            sys.exit(f'train --resume: exit code {second.returncode}')
        compare(run, viewers, 'resumed, and at its end')
        total = len(viewers['train'].points)
        print(f'while the resumed run trained, {len(seen)} different numbers of points of {total} were seen')
        if not (min(seen) <= before and len(seen) > 10):
            sys.exit('points did not come while the run trained')


if __name__ == '__main__':
    main()
