#!/usr/bin/env python3
"""Tests of how studies continue (apps/studies/cells.py, study.py, host_speeds.py, local_rounds.py, planner_cells.py): what is there is not
made again, and not taken for what it is not.     tests/apps/studies/cells_test.py [CASE]"""
import collections
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'apps/studies'))
import cells  # noqa: E402
import host_speeds  # noqa: E402
import local_rounds  # noqa: E402
import local_rounds_cells  # noqa: E402
import planner_cells  # noqa: E402
import study  # noqa: E402

# PROGRAM LOG NAME STATUS --out LINES: writes down that it ran, and what `emulate --json` does.
PROGRAM = '''#!/bin/sh
echo "$2" >>"$1"
printf '{"kind":"step","step":1}\\n{"kind":"evaluation","epoch":1,"accuracy":0.5}\\n{"kind":"evaluation","epoch":2,"accuracy":0.75}\\n' >"$5"
[ "$3" = 1 ] || echo '{"accuracy": 0.75, "not_finite": "'$([ "$3" = 3 ] && echo fc)'"}'
echo "why it ended" >&2
exit "$3"
'''


class StudyTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out, self.log, self.program = self.root / 'out', self.root / 'log', self.root / 'program'
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def args(self, overrides=(), threads=1):
        return types.SimpleNamespace(out=str(self.out), set=list(overrides), threads=threads, jobs=2, print_only=False)

    def files(self):
        return sorted(path.name for path in self.out.iterdir())


class CellsTest(StudyTest):

    def make(self, *names, status=0, **args):
        """Makes these cells, and returns which programs ran for that."""
        self.log.write_text('')
        with contextlib.redirect_stdout(io.StringIO()) as self.said:
            cells.make_all(self.args(**args), [(name, [str(self.program), str(self.log), name, str(status)], {'ranks': len(name)})
                                               for name in names])
        return sorted(self.ran())

    def ran(self):
        return self.log.read_text().split()

    def read(self, name, **args):
        return cells.read(self.args(**args), name)

    def test_a_cell_is_a_file(self):
        self.assertEqual(self.make('a', 'bb', overrides=['train.epochs=1'], threads=2), ['a', 'bb'])
        self.assertEqual(self.files(), ['a.json', 'bb.json'])
        found = json.loads((self.out / 'bb.json').read_text())
        self.assertGreaterEqual(found.pop('cpu_s'), 0)
        self.assertEqual(found, {'cell': {'ranks': 2}, 'set': ['train.epochs=1'], 'threads': 2, 'accuracy': 0.75, 'not_finite': '',
                                 'curve': [[1, 0.5], [2, 0.75]]})
        self.assertIn('bb: 75.00 %', self.said.getvalue())

    def test_only_what_is_missing_is_made(self):
        self.make('a', 'b', 'c')
        before = (self.out / 'a.json').stat().st_mtime_ns
        self.assertEqual(self.make('a', 'b', 'c'), [])
        (self.out / 'b.json').unlink()
        self.assertEqual(self.make('a', 'b', 'c', 'd'), ['b', 'd'])
        self.assertEqual((self.out / 'a.json').stat().st_mtime_ns, before)

    def test_what_an_interrupted_run_has_left_is_no_cell(self):
        self.out.mkdir()
        for end in ('.json.part', '.json.out', '.json.lines'):
            (self.out / f'a{end}').write_text('{"accuracy"')
        self.assertIsNone(self.read('a'))
        self.assertEqual(self.make('a'), ['a'])
        self.assertEqual(self.files(), ['a.json'])

    def test_a_cell_of_two_tables_is_made_once(self):
        self.assertEqual(self.make('a', 'b', 'a'), ['a', 'b'])

    def test_a_cell_of_other_settings_is_refused_before_anything_runs(self):
        self.make('b', overrides=['train.epochs=1'])
        for other in ({}, {'overrides': ['train.epochs=2']}, {'overrides': ['train.epochs=1', 'train.seed=2']}):
            with self.assertRaisesRegex(SystemExit, r'b\.json was made with --set \[.train.epochs=1.\], and .* is asked for', msg=other):
                self.make('a', 'b', **other)
            self.assertEqual(self.ran(), [])
        with self.assertRaisesRegex(SystemExit, 'made with --threads 1, and 2 is asked for'):
            self.make('a', 'b', overrides=['train.epochs=1'], threads=2)
        self.assertEqual(self.make('a', 'b', overrides=['train.epochs=1']), ['a'])

    def test_a_run_that_fails_is_made_again(self):
        with self.assertRaisesRegex(SystemExit, r'ended with 1: .*a\.json\.err says why'):
            self.make('a', status=1)
        self.assertEqual((self.out / 'a.json.err').read_text(), 'why it ended\n')
        self.assertNotIn('a.json', self.files())
        self.assertEqual(self.make('a'), ['a'])
        self.assertEqual(self.files(), ['a.json'])

    def test_a_run_that_diverges_is_a_result(self):
        self.assertEqual(self.make('a', status=3), ['a'])
        self.assertIn('a: diverged', self.said.getvalue())
        self.assertEqual(self.make('a', status=3), [])

    def test_results_in_words(self):
        def of(accuracy, not_finite=''):
            return {'accuracy': accuracy, 'not_finite': not_finite}

        self.assertEqual(cells.text_of([]), '')
        self.assertEqual(cells.text_of([None, None]), '')
        self.assertEqual(cells.text_of([of(0.9), None]), '90.00 %')
        self.assertEqual(cells.text_of([of(0.91), of(0.93)]), '92.00 % ± 1.41')
        self.assertEqual(cells.text_of([of(0.91), of(0.5, 'fc')]), '1 of 2 diverged')
        self.assertEqual(cells.text_of([of(0.5, 'fc'), None]), 'diverged')

    def test_estimates_are_of_what_is_missing_each_once_and_corrected(self):
        Cell = collections.namedtuple('Cell', ['name', 'estimate'])
        Cell.seconds = lambda cell: cell.estimate
        a, b, c = Cell('a', 600), Cell('b', 1200), Cell('c', 60)
        self.make('a')
        path = self.out / 'a.json'
        path.write_text(json.dumps(json.loads(path.read_text()) | {'cpu_s': 300}))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            cells.print_estimates(self.args(), {'first': [a, b], 'second': [b, c]})
        said = said.getvalue()
        self.assertIn('1 cells are measured: 0.50 times the estimates', said)
        self.assertIn('first: 2 cells, 1 to do beside the tables above, 10 CPU minutes', said)
        self.assertIn('second: 2 cells, 1 to do beside the tables above, 0 CPU minutes', said)
        self.assertIn('in all 10 CPU minutes, 0.1 hours', said)


class OnceTest(StudyTest):

    def setUp(self):
        super().setUp()
        self.out.mkdir()
        self.made = 0

    def make(self):
        self.made += 1
        return {'made': self.made}

    def failing(self):
        raise RuntimeError('interrupted')

    def once(self, make=None, overrides=()):
        return study.once(self.args(overrides), str(self.out / 'a.json'), make or (lambda: self.make() | {'set': list(overrides)}))

    def test_a_study_makes_once_what_is_not_interrupted(self):
        with self.assertRaisesRegex(RuntimeError, 'interrupted'):
            self.once(self.failing)
        self.assertEqual([self.once()['made'] for _ in range(3)], [1, 1, 1])
        self.assertEqual(self.files(), ['a.json'])
        with self.assertRaisesRegex(SystemExit, 'made with --set'):
            self.once(overrides=['train.epochs=2'])

    def test_a_file_that_does_not_say_its_settings_is_taken(self):
        self.once(self.make)
        self.assertEqual(self.once(overrides=['train.epochs=2']), {'made': 1})

    def kept(self, make=None, print_only=False, overrides=()):
        args = self.args(overrides)
        args.print_only = print_only
        with contextlib.redirect_stdout(io.StringIO()) as self.said:
            return host_speeds.kept(args, 'a', make or self.make)

    def test_hosts_are_measured_once_and_not_at_all_for_printing(self):
        self.assertIsNone(self.kept(print_only=True))
        self.assertEqual(self.made, 0)
        with self.assertRaisesRegex(RuntimeError, 'interrupted'):
            self.kept(self.failing)
        for print_only in (False, False, True):
            self.assertEqual(self.kept(print_only=print_only), {'made': 1, 'set': []})
        self.assertEqual(self.files(), ['a.json'])
        with self.assertRaisesRegex(SystemExit, 'made with --set'):
            self.kept(overrides=['train.epochs=2'])

    def test_a_run_of_all_sizes_has_a_speed_of_each(self):
        """Four steps an epoch: 6 epochs of 64 pixels, 6 of 96, 4 of 128; the first two steps do not count."""
        speeds = [1000] * 2 + [64] * 22 + [96] * 24 + [128] * 16
        metrics = self.root / 'metrics.jsonl'
        metrics.write_text(''.join(json.dumps({'kind': kind, 'images_per_s': speed}) + '\n'
                                   for speed in speeds for kind in ('step', 'evaluation')))
        factor = host_speeds.dilated.Dilation(8, 8, rate=None, slow={}, here=len(os.sched_getaffinity(0))).factor
        self.assertEqual(host_speeds.speeds_by_size(metrics, 8, 8), {size: int(size) * factor for size in ('64', '96', '128')})


class LocalRoundsTest(unittest.TestCase):
    CELLS = {cell for table in local_rounds_cells.TABLES.values() for cell in table} | set(local_rounds_cells.MODES.values())

    def settings(self, cell, *settings):
        args = types.SimpleNamespace(programs='bin', data='images', threads=1, set=list(settings))
        command = local_rounds.command_of(args, cell)
        return [after for word, after in zip(command, command[1:]) if word == '--set']

    def test_a_name_is_of_one_cell(self):
        self.assertEqual(len({cell.name for cell in self.CELLS}), len(self.CELLS))

    def test_more_settings_come_last(self):
        cell = local_rounds_cells.MODES['rounds8']
        self.assertEqual(self.settings(cell, 'train.seed=9', 'optim.muon.matrices=F32')[-2:], ['train.seed=9', 'optim.muon.matrices=F32'])

    def test_settings_of_another_rule_do_not_switch_to_it(self):
        of_sgd = [cell for cell in self.CELLS if cell.optimizer == 'sgd']
        self.assertTrue(of_sgd)
        for cell in of_sgd:
            found = self.settings(cell, 'optim.muon.matrices=F32', 'optim.sgd.momentum=0.8')
            self.assertFalse([setting for setting in found if setting.startswith('optim.muon')])
            self.assertEqual(found[-1], 'optim.sgd.momentum=0.8')


class PlannerCellsTest(StudyTest):
    CELL = {'net': 'lenet', 'ranks': 2, 'rate': '1gbit', 'cores': 1, 'scheme': 'dense', 'period': 1}

    def main(self, *flags):
        with mock.patch.object(sys, 'argv', ['planner_cells.py', '--data', 'images', '--out', str(self.out), *flags]):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as self.said:
                planner_cells.main()

    def test_nothing_is_measured_for_printing(self):
        with mock.patch.object(planner_cells, 'choose_cells') as choose, self.assertRaises(SystemExit):
            self.main('--print-only')
        choose.assert_not_called()
        self.assertIn('cells.json is not there', self.said.getvalue())
        self.assertFalse(self.out.exists())

    def test_a_folder_is_of_the_settings_that_it_was_begun_with(self):
        with mock.patch.object(planner_cells, 'choose_cells', return_value={'written': '', 'version': '', 'cells': [self.CELL]}):
            self.main('--choose-only', '--set', 'train.seed=9')
        with self.assertRaisesRegex(SystemExit, r'settings\.json was made with --set'):
            self.main('--choose-only')

        def measured(*_):
            return {'predicted': {'step': 1}, 'failed': 'no links', 'core_seconds': [1, 1]}

        with mock.patch.multiple(planner_cells, predict_and_measure=measured, core_seconds=lambda _: 1):
            self.main('--set', 'train.seed=9')
        self.assertEqual(json.loads((self.out / 'cell-lenet-2-1gbit-1-dense-1.json').read_text())['set'], ['train.seed=9'])
        self.main('--print-only', '--set', 'train.seed=9')
        with self.assertRaisesRegex(SystemExit, r'dense-1\.json was made with --set'):
            self.main('--print-only')

    def test_settings_are_for_predictions_and_runs(self):
        self.out.mkdir()
        for name, text in (('facts-lenet-2.textproto', ''), ('facts-lenet-2.textproto.cores', '1'), ('links-2-1gbit-1.json', json.dumps(
                {'latency_us': 1, 'cpu_s_per_gb': 1, 'cpu_us_per_message': 1, 'bytes_per_s': 1}))):
            (self.out / name).write_text(text)
        program = self.root / 'dogs_vs_cats'
        program.write_text(f'#!/bin/sh\necho "$*" >>{self.log}\necho \'{{"asked": []}}\'\n')
        program.chmod(0o755)
        args = self.args(['train.seed=9'])
        args.programs = str(self.root)
        planner_cells.predict_world(args, self.CELL)
        commands = self.log.read_text().splitlines()
        self.assertTrue(commands)
        for command in commands:
            self.assertIn(' --set train.seed=9 ', command)
        self.assertEqual(planner_cells.overrides_of(args, self.CELL)[-1], 'train.seed=9')


if __name__ == '__main__':
    unittest.main()
