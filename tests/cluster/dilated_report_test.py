#!/usr/bin/env python3
"""Tests of what dilated.py says of a run.     tests/cluster/dilated_report_test.py [CASE]"""
import json
import pathlib
import tempfile
import unittest

import dilated_report
from dilated import Dilation

DILATION = Dilation(hosts=4, cores=1, rate=1e9, slow={}, here=2)
D = DILATION.factor  # 2.22


def step(number, ms=100, **more):
    return {'kind': 'step', 'step': number, 'images_per_s': 1000 * 32 / ms, 'step_ms': ms, 'data_wait_ms': 1, 'forward_ms': 30, 'backward_ms': 40,
            'exposed_comm_ms': 20, 'hidden_comm_ms': None, 'encode_ms': None, 'decode_ms': None, 'comm_bytes': 1000, **more}


def own_step(number):
    """Of a round: nothing is exchanged."""
    return step(number, exposed_comm_ms=None, comm_bytes=None)


def round_of(number, local_steps, ms=400, batch=128, waited_ms=0, sent=0):
    return {'kind': 'round', 'step': number, 'local_steps': local_steps, 'step_ms': ms, 'batch': batch, 'exposed_comm_ms': waited_ms,
            'comm_bytes': sent}


def rounds_of(*lines):
    return [round_of(*line) for line in lines]


class BeginsTest(unittest.TestCase):

    def begins(self, *lines):
        return dilated_report.begins_of(rounds_of(*lines))

    def test_rounds_that_are_waited_for(self):
        self.assertEqual(self.begins((4, 4), (8, 4), (12, 4)), [0, 4, 8])

    def test_of_different_lengths(self):
        self.assertEqual(self.begins((4, 4), (6, 2), (14, 8)), [0, 4, 6])

    def test_behind_steps_that_all_ranks_make_together(self):
        self.assertEqual(self.begins((14, 4), (18, 4)), [10, 14])

    def test_none_and_one(self):
        self.assertEqual(self.begins(), [])
        self.assertEqual(self.begins((4, 4)), [0])

    def test_overlapped_rounds_whose_lines_come_a_round_late(self):
        # Steps 1-4, 5-8, 9-12, 13-16. The line of 1-4 comes after 8, but has the time of 1-4; that of 5-8 has the time of 9-12, that of
        # 9-12 the time of 13-16, at whose end the last one comes, too, with the time of its own steps.
        self.assertEqual(self.begins((8, 4), (12, 4), (16, 4), (16, 4)), [0, 8, 12, 12])

    def test_overlapped_rounds_of_different_lengths(self):
        # Steps 1-2, 3-5, 6-9, 10-15, 16-18.
        self.assertEqual(self.begins((5, 2), (9, 3), (15, 4), (18, 6), (18, 3)), [0, 5, 9, 15, 15])

    def test_two_overlapped_rounds_whose_lines_come_at_once(self):
        self.assertEqual(self.begins((7, 4), (7, 3)), [0, 4])

    def test_overlapped_behind_steps_that_all_ranks_make_together(self):
        self.assertEqual(self.begins((18, 4), (22, 4), (22, 4)), [10, 18, 18])


class ReportTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.metrics = pathlib.Path(folder.name, 'metrics.jsonl')

    def of(self, lines, warm_up):
        self.metrics.write_text(''.join(json.dumps(line) + '\n' for line in lines))
        return dilated_report.report(self.metrics, DILATION, warm_up)

    def test_medians_of_steps_in_the_time_of_the_hosts(self):
        lines = [step(1, 900), step(2, 100), {'kind': 'evaluation', 'accuracy': 0.5}, step(3, 200), step(4, 400, comm_bytes=3000)]
        found = self.of(lines, warm_up=1)
        self.assertEqual(found['steps'], 3)
        self.assertAlmostEqual(found['step_ms'], 200 / D)
        self.assertAlmostEqual(found['images_per_s'], 160 * D)
        self.assertAlmostEqual(found['forward_ms'], 30 / D)
        self.assertEqual(found['comm_bytes'], 1000)
        for name in ('hidden_comm_ms', 'encode_ms', 'decode_ms'):
            self.assertIsNone(found[name])

    def test_quartiles(self):
        found = self.of([step(i, ms) for i, ms in enumerate((50, 40, 30, 20, 10), start=1)], warm_up=0)
        low, high = found['step_ms_quartiles']
        self.assertAlmostEqual(low, 20 / D)
        self.assertAlmostEqual(high, 40 / D)

    def test_a_value_that_not_every_step_has(self):
        found = self.of([step(1, encode_ms=4), step(2), step(3, encode_ms=8)], warm_up=0)
        self.assertAlmostEqual(found['encode_ms'], 6 / D)

    def test_no_step_behind_the_warm_up(self):
        with self.assertRaisesRegex(SystemExit, 'no more than 2 steps were trained'):
            self.of([step(1), step(2)], warm_up=2)

    def of_rounds(self, lines, steps, warm_up):
        return self.of([own_step(i) for i in range(1, steps + 1)] + rounds_of(*lines), warm_up)

    def test_rounds_that_are_waited_for(self):
        # steps, milliseconds, images of all ranks, of them waited, bytes; the first is not warm.
        lines = [(4, 4, 4000, 512, 2000, 9), (8, 4, 500, 512, 100, 100), (10, 2, 300, 256, 100, 92)]
        found = self.of_rounds(lines, steps=10, warm_up=4)
        self.assertEqual((found['rounds'], found['local_steps']), (2, 3))
        self.assertAlmostEqual(found['images_per_s'], 768 / 0.8 * D)
        self.assertAlmostEqual(found['exposed_share'], 0.25)
        self.assertAlmostEqual(found['bytes_per_image'], 0.25)

    def test_a_round_with_one_step_of_the_warm_up_does_not_count(self):
        lines = [(4, 4), (8, 4), (12, 4)]
        self.assertEqual([self.of_rounds(lines, 12, warm_up)['rounds'] for warm_up in (0, 1, 4, 5, 8)], [3, 2, 2, 1, 1])
        with self.assertRaisesRegex(SystemExit, 'no round began after the 9 steps'):
            self.of_rounds(lines, 12, warm_up=9)

    def test_overlapped_rounds_count_by_the_steps_of_their_time(self):
        lines = [(8, 4), (12, 4), (16, 4), (16, 4)]  # in the time from 0, 8, 12 and 12
        self.assertEqual([self.of_rounds(lines, 16, warm_up)['rounds'] for warm_up in (0, 1, 4, 8, 9, 12)], [4, 3, 3, 3, 2, 2])

    def test_servers(self):
        def update(version, images, seconds, staleness, discarded, blocked_ms):
            return step(version, kind='update', version=version, batch=images, images_per_s=images and images / seconds,
                        staleness_histogram=staleness, discarded=discarded, blocked_ms=blocked_ms)

        lines = [update(3, 64, 9, [9], 9, 9), update(10, 100, 1, [1, 2], 1, 300), update(12, 0, 0, [50], 5, 99),
                 update(20, 300, 3, [4, 5, 6], 2, 100)]
        found = self.of(lines, warm_up=1)
        self.assertEqual((found['updates'], found['discarded'], found['staleness_histogram']), (10, 3, [5, 7, 6]))
        self.assertAlmostEqual(found['images_per_s'], 400 / 4 * D)
        self.assertAlmostEqual(found['blocked_share'], 0.1)


class TextTest(unittest.TestCase):
    RUN = {'hosts': 4, 'cores': 1, 'rate': '1gbit', 'dilation': 2.5, 'share': 0.4, 'slow': {}, 'link_mbit': 400, 'probe_mb_per_s': 47.5,
           'expected_mb_per_s': 47.8}

    def test_of_a_program_that_reports_itself(self):
        self.assertEqual(dilated_report.as_text(self.RUN), '4 hosts of 1 cores at 1gbit: 2.5 times slower here, links of 400 Mbit/s, 0.4 of a '
                                                           'core each\nprobe: 47.5 MB/s of 47.8')

    def test_without_links_with_a_slow_rank(self):
        said = dilated_report.as_text(self.RUN | {'link_mbit': None, 'probe_mb_per_s': None, 'slow': {3: 2.0}})
        self.assertIn('links without limit', said)
        self.assertNotIn('probe', said)
        self.assertIn('rank 3: 2 times slower', said)

    def test_of_training(self):
        steps = {name: None for name in dilated_report.TIMES} | {
            'steps': 20, 'images_per_s': 1234.4, 'step_ms': 20.51, 'step_ms_quartiles': [19, 22], 'forward_ms': 5.25, 'comm_bytes': 2.5e6}
        said = dilated_report.as_text(self.RUN | steps)
        self.assertIn('1234 images/s; step 20.51 ms (quartiles 19, 22); medians of 20 steps', said)
        self.assertRegex(said, r'forward +5\.250 ms')
        self.assertNotIn('backward', said)
        self.assertRegex(said, r'sent by rank 0 +2\.500 MB')
        said = dilated_report.as_text(self.RUN | steps | {'rounds': 3, 'local_steps': 4, 'exposed_share': 0.125, 'bytes_per_image': 295})
        self.assertIn('3 rounds of 4 local steps', said)
        self.assertIn('12.5% of the time and sent 295 bytes', said)
        said = dilated_report.as_text(self.RUN | steps | {'updates': 9, 'discarded': 1, 'blocked_share': 0.5, 'staleness_histogram': [3, 4]})
        self.assertIn('9 updates, 1 gradients thrown away', said)
        self.assertIn('from 0: 3 4', said)
        self.assertNotIn('sent by rank 0', said)


if __name__ == '__main__':
    unittest.main()
