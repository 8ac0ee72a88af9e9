#!/usr/bin/env python3
"""Tests of dilated.py but for the ranks themselves: numbers, commands, what is refused.     tests/cluster/dilated_test.py [CASE]"""
import argparse
import contextlib
import io
import json
import pathlib
import tempfile
import unittest
from unittest import mock

import dilated
import share_check
from dilated import Dilation


class DilationTest(unittest.TestCase):

    def test_hosts_share_nine_tenths_of_the_cores(self):
        dilation = Dilation(hosts=8, cores=8, rate=1e9, slow={}, here=2)
        self.assertAlmostEqual(dilation.factor, 64 / 1.8)
        self.assertAlmostEqual(dilation.share, 0.225)
        self.assertEqual(dilation.shares, [dilation.share] * 8)
        self.assertAlmostEqual(sum(dilation.shares), 1.8)

    def test_everything_is_as_many_times_slower(self):
        dilation = Dilation(hosts=8, cores=8, rate=1e9, slow={}, here=2)
        self.assertAlmostEqual(dilation.bits_per_s, 1e9 / dilation.factor)
        self.assertAlmostEqual(dilation.bytes_per_s(), 1e9 / dilation.factor / 8 * 1448 / 1514)

    def test_hosts_that_fit_are_never_made_faster(self):
        dilation = Dilation(hosts=2, cores=2, rate=1e9, slow={}, here=16)
        self.assertEqual((dilation.factor, dilation.share, dilation.bits_per_s), (1, 2, 1e9))

    def test_a_slow_host_gets_less_and_the_others_no_more(self):
        dilation = Dilation(hosts=4, cores=1, rate=None, slow={1: 2, 3: 5}, here=2)
        even = Dilation(hosts=4, cores=1, rate=None, slow={}, here=2)
        self.assertEqual(dilation.factor, even.factor)
        for share, part in zip(dilation.shares, [1, 1 / 2, 1, 1 / 5]):
            self.assertAlmostEqual(share, even.share * part)

    def test_the_period_is_long_enough_for_the_smallest_quota(self):
        self.assertEqual(Dilation(2, 1, None, {}, here=2).period_ms, 10)
        self.assertEqual(Dilation(2, 1, None, {}, here=2, period_ms=4).period_ms, 4)
        small = Dilation(8, 1, None, {0: 10}, here=2)  # 0.0225 of a core: 10 ms would be a quota of 0.2 ms
        self.assertAlmostEqual(small.period_ms, 1 / 0.0225)
        self.assertAlmostEqual(small.period_ms * min(small.shares), 1)

    def test_threads_are_whole_cores_and_at_least_one(self):
        for here, threads in ((2, 1), (64, 3), (160, 8)):
            self.assertEqual(Dilation(16, 8, None, {}, here).threads, threads, here)

    def test_links_without_limit(self):
        self.assertIsNone(Dilation(8, 8, None, {}, here=2).bits_per_s)

    def test_a_burst_is_what_comes_in_two_milliseconds(self):
        self.assertEqual(Dilation(1, 1, 1e9, {}, here=2).burst(), 250_000)
        self.assertEqual(Dilation(1, 1, 10e6, {}, here=2).burst(), 16 << 10)


class FlagTest(unittest.TestCase):

    def test_rates(self):
        for text, rate in (('none', None), ('100mbit', 100e6), ('2.5gbit', 2.5e9), ('31250kbit', 31.25e6)):
            self.assertEqual(dilated.rate_of(text), rate, text)

    def test_no_rates(self):
        for text in ('', '0mbit', '0.0gbit', '100', 'mbit', '1Gbit', '1 gbit', '-1gbit', '1gbit/s', '1.gbit', 'unlimited'):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, 'not a rate', msg=text):
                dilated.rate_of(text)

    def test_slow_hosts(self):
        self.assertEqual(dilated.slow_of('3:2'), (3, 2))
        self.assertEqual(dilated.slow_of('0:1.5'), (0, 1.5))

    def test_no_slow_hosts(self):
        for text in ('', '3', '3:', ':2', '3:0.5', '3:0', '-1:2', '3:-2', '3:2:1', '3:2x', 'x:2'):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, 'not RANK:FACTOR', msg=text):
                dilated.slow_of(text)

    def parse(self, *words):
        with mock.patch('sys.argv', ['dilated.sh', *words]), contextlib.redirect_stderr(io.StringIO()) as self.said:
            return dilated.parse()

    def test_arguments(self):
        args = self.parse('-n', '4', '-k', '2', '-r', '100mbit', '--slow', '1:2', '--slow', '3:4', '--', 'dogs_vs_cats', 'train', '--data', 'x')
        self.assertEqual((args.hosts, args.cores, args.bits_per_s, args.slow), (4, 2, 100e6, {1: 2, 3: 4}))
        self.assertEqual(args.command, ['dogs_vs_cats', 'train', '--data', 'x'])

    def test_what_is_asked_for_is_refused(self):
        train = ['--', 'dogs_vs_cats', 'train']
        for words, why in ((['-n', '0', *train], 'at least one host'), (['-n', '201', *train], 'at most 200'),
                           (['-k', '0', *train], 'one core'), (['--period-ms', '0.5', *train], 'a period'),
                           (['-r', 'fast', *train], 'not a rate'), (['-n', '4', '--slow', '4:2', *train], 'a rank that is not there'),
                           (['--apart', '--', 'dogs_vs_cats', 'plan', '--measure'], '--apart is for'), ([], 'required')):
            with self.assertRaises(SystemExit, msg=words) as end:
                self.parse(*words)
            self.assertEqual(end.exception.code, 2)
            self.assertIn(why, self.said.getvalue())


class FieldTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name, 'own.textproto')
        self.config.write_text('data {\n  # cache_mib: 7 was too little\n  cache_mib: 300  # not 400\n}\ndist { hang_timeout_s: 2.5 }\n')

    def of(self, *command, name='data.cache_mib'):
        return dilated.field(['dogs_vs_cats', 'train', *command], name, 1024)

    def test_of_the_config_that_is_given(self):
        self.assertEqual(self.of('--config', str(self.config)), 300)
        self.assertEqual(self.of(f'--config={self.config}', name='dist.hang_timeout_s'), 2.5)

    def test_the_default_if_the_config_does_not_say(self):
        self.assertEqual(self.of('--config', str(self.config), name='dist.join_timeout_s'), 1024)

    def test_of_a_shipped_config_by_its_name_or_of_the_built_in_one(self):
        configs = dilated.ROOT / 'configs'
        self.assertEqual(self.of(), self.of('--config', str(configs / 'dogs_vs_cats.textproto')))
        self.assertEqual(self.of('--config', 'small_images'), self.of('--config', str(configs / 'small_images.textproto')))
        self.assertIn(f'cache_mib: {self.of("--config", "small_images"):g}', (configs / 'small_images.textproto').read_text())

    def test_the_last_set_counts(self):
        self.assertEqual(self.of('--config', str(self.config), '--set', 'data.cache_mib=5', '--set=data.cache_mib=6'), 6)
        self.assertEqual(self.of('--set', 'data.cache_mib=5', '--set', 'data.cache_mib=6', '--set', 'data.cache_mib_more=7'), 6)

    def test_flags_with_a_space_or_an_equals_sign(self):
        self.assertEqual(dilated.given(['p', '--output', 'a', '--output=b=c', '--outputs', 'd'], '--output'), ['a', 'b=c'])
        self.assertEqual(dilated.given(['p', '--output'], '--output'), [])


class CommandTest(unittest.TestCase):

    def setUp(self):
        self.dilation = Dilation(hosts=8, cores=8, rate=1e9, slow={}, here=2)  # 35.6 times slower, one thread
        for name, command in (('train', ['dogs_vs_cats', 'train', '--config', 'lenet']),
                              ('plan', ['/bin/dogs_vs_cats', 'plan', '--measure', '--config', 'lenet'])):
            setattr(self, name, command)

    def of(self, command, hosts=8, together=True, dilation=None):
        made = dilated.ringtail_command(command, dilation or self.dilation, hosts, together, pathlib.Path('/work/run'))
        self.assertEqual(made[:len(command)], command)
        self.assertTrue(all(isinstance(word, str) for word in made))
        return made

    def settings(self, made):
        """What counts: the last of each name."""
        return dict(setting.split('=', 1) for setting in dilated.given(made, '--set'))

    def test_what_is_one_of_ours(self):
        for command in (self.train, ['build/bin/dogs_vs_cats', 'train']):
            self.assertTrue(dilated.is_training(command))
            self.assertFalse(dilated.is_measuring(command))
        self.assertTrue(dilated.is_measuring(self.plan))
        self.assertFalse(dilated.is_training(self.plan))
        for command in (['dogs_vs_cats'], ['dogs_vs_cats', 'plan', '--from', 'facts'], ['bench_allreduce', 'train'], ['python3', 'train', '--measure']):
            self.assertFalse(dilated.is_training(command) or dilated.is_measuring(command), command)

    def test_what_training_gets(self):
        made = self.of(self.train)
        self.assertEqual(dilated.given(made, '--threads'), ['1'])
        self.assertEqual(dilated.given(made, '--output'), ['/work/run'])
        self.assertEqual(made.count('--insecure'), 1)
        self.assertEqual(self.settings(made), {'dist.hang_timeout_s': '355.556', 'dist.join_timeout_s': '1066.67', 'data.cache_mib': '128'})

    def test_what_measuring_gets(self):
        made = self.of(self.plan)
        self.assertEqual(dilated.given(made, '--threads'), ['1'])
        self.assertEqual(dilated.given(made, '--output'), [])
        self.assertEqual(made.count('--insecure'), 1)
        self.assertEqual(self.settings(made), {'dist.hang_timeout_s': '355.556', 'dist.join_timeout_s': '1066.67'})

    def test_what_is_given_stays(self):
        for given in (['--threads', '2', '--output', 'mine', '--insecure'], ['--threads=2', '--output=mine', '--insecure']):
            made = self.of(self.train + given)
            self.assertEqual(dilated.given(made, '--threads'), ['2'])
            self.assertEqual(dilated.given(made, '--output'), ['mine'])
            self.assertEqual(made.count('--insecure'), 1)

    def test_plain_connections_only_between_hosts_without_certificates(self):
        self.assertNotIn('--insecure', self.of(self.train, together=False))
        self.assertNotIn('--insecure', self.of(self.train + ['--tls-cert', 'pem']))

    def test_fields_that_are_given_are_dilated_behind_them(self):
        made = self.of(self.train + ['--set', 'dist.hang_timeout_s=60', '--set', 'data.cache_mib=100', '--set', 'train.epochs=1'])
        self.assertEqual(self.settings(made), {'dist.hang_timeout_s': '2133.33', 'dist.join_timeout_s': '1066.67', 'data.cache_mib': '12',
                                               'train.epochs': '1'})

    def test_time_limits_end_where_the_config_refuses_them(self):
        made = self.settings(self.of(self.train + ['--set', 'dist.join_timeout_s=80000']))
        self.assertEqual(made['dist.join_timeout_s'], '86400')

    def test_nothing_is_dilated_where_the_hosts_fit(self):
        made = self.settings(self.of(self.train, hosts=1, together=False, dilation=Dilation(1, 1, None, {}, here=2)))
        self.assertEqual(made, {'dist.hang_timeout_s': '10', 'dist.join_timeout_s': '30', 'data.cache_mib': '1024'})


class RefusalTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def links(self, *probes, rank=0):
        """Whether links that are to carry 1 MB/s are right, by what probes find; and how many were made."""
        settings = {'work': str(self.work), 'bytes_per_s': 1e6, 'hosts': 2}
        with mock.patch.object(dilated, 'probe_links', side_effect=probes) as probe, contextlib.redirect_stderr(io.StringIO()) as self.said:
            return dilated.links_are_right(settings, rank), probe.call_count

    def test_links_within_three_percent(self):
        for found in (0.9701e6, 1e6, 1.0299e6):
            self.assertEqual(self.links(found), (True, 1), found)
        self.assertEqual(self.said.getvalue(), '')

    def test_links_that_are_too_slow_too_fast_or_not_measured_three_times(self):
        for found, said in ((0.9699e6, '0.9699 MB/s'), (1.0301e6, '1.03 MB/s'), (None, 'nothing')):
            self.assertEqual(self.links(found, found, found), (False, 3), found)
            self.assertEqual(self.said.getvalue().count(f'the probe finds {said} between hosts where 1 are expected'), 3)

    def test_links_that_are_right_at_last(self):
        self.assertEqual(self.links(0.5e6, None, 1e6), (True, 3))
        self.assertEqual(self.said.getvalue().count('the probe finds'), 2)
        self.assertEqual([json.loads((self.work / f'probe{i}').read_text()) for i in range(3)], [0.5e6, None, 1e6])

    def test_other_ranks_do_as_rank_0_says(self):
        for i, found in enumerate((2e6, 1e6)):
            (self.work / f'probe{i}').write_text(json.dumps(found))
        self.assertEqual(self.links(None, None, rank=1), (True, 2))
        self.assertEqual(self.said.getvalue(), '')

    def share(self, measured, rank=0):
        settings = {'work': str(self.work), 'share': 0.2, 'hosts': 2}
        with mock.patch.object(share_check, 'measure', return_value=measured), contextlib.redirect_stderr(io.StringIO()) as self.said:
            return dilated.share_is_right(settings, rank)

    def test_shares_down_to_95_percent(self):
        for measured in (0.1901, 0.2, 0.5):
            self.assertTrue(self.share(measured), measured)
        self.assertEqual(self.said.getvalue(), '')

    def test_shares_below_are_refused_by_all_and_named_once(self):
        self.assertFalse(self.share(0.1899, rank=1))
        self.assertEqual(self.said.getvalue(), '')
        self.assertFalse(self.share(0.1899))
        self.assertIn('ranks get 0.190 of a core where 0.200 are expected', self.said.getvalue())

    def test_the_share_is_the_mean_of_all_ranks(self):
        (self.work / 'entered1').write_text('')
        (self.work / 'got1').write_text('0.55')
        with mock.patch.object(share_check, 'time') as clock:
            clock.monotonic.side_effect = [10, 10.5, 11, 11]  # begins, once around, over, read
            clock.process_time.side_effect = [3, 3.45]
            self.assertAlmostEqual(share_check.measure(self.work, 0, 2), 0.5)
        self.assertAlmostEqual(float((self.work / 'got0').read_text()), 0.45)

    def refused(self, links, share, bytes_per_s=1e6):
        """Exit status of a rank, and what it has done before."""
        group = self.work / 'group0'
        group.mkdir(exist_ok=True)
        settings = {'work': str(self.work), 'bytes_per_s': bytes_per_s, 'groups': [str(group)], 'apart': False, 'command': ['program', 'x'],
                    'environment': {'ADDED': '1'}}
        with mock.patch.dict('os.environ', {'RANK': '0'}), mock.patch('os.dup2'), \
                mock.patch.object(dilated, 'links_are_right', return_value=links) as probed, \
                mock.patch.object(dilated, 'share_is_right', return_value=share) as shared, mock.patch('os.execvpe') as program:
            try:
                dilated.be_rank(settings)
                status = 0
            except SystemExit as end:
                status = end.code
        return status, [mocked.call_count for mocked in (probed, shared, program)]

    def test_a_program_starts_only_behind_both(self):
        self.assertEqual(self.refused(links=True, share=True), (0, [1, 1, 1]))
        self.assertEqual(self.refused(links=False, share=True), (1, [1, 0, 0]))
        self.assertEqual(self.refused(links=True, share=False), (1, [1, 1, 0]))

    def test_links_without_limit_are_not_probed(self):
        self.assertEqual(self.refused(links=False, share=True, bytes_per_s=None), (0, [0, 1, 1]))


class RunTest(unittest.TestCase):

    def run_with(self, *words, apart=False, rate='1gbit', hosts=8):
        """What ranks find in their settings; netns.sh's arguments."""
        with tempfile.TemporaryDirectory() as folder, mock.patch('subprocess.Popen') as process:
            process.return_value.wait.return_value = 7
            args = argparse.Namespace(command=list(words), hosts=hosts, apart=apart, programs=pathlib.Path(folder))
            dilation = Dilation(hosts, 8, dilated.rate_of(rate), {0: 2}, here=2)
            groups = mock.Mock(ranks=[pathlib.Path('/groups', str(rank)) for rank in range(hosts)])
            self.assertEqual(dilated.run(args, dilation, groups, pathlib.Path(folder)), 7)
            return json.loads(pathlib.Path(folder, 'settings').read_text()), [str(word) for word in process.call_args.args[0]][1:]

    def test_training_and_measuring_are_told_what_they_need(self):
        for words in (['dogs_vs_cats', 'train'], ['dogs_vs_cats', 'plan', '--measure']):
            found, _ = self.run_with(*words)
            self.assertIn('dist.hang_timeout_s=355.556', found['command'])
            self.assertIn('--insecure', found['command'])
            self.assertNotIn('OMP_NUM_THREADS', found['environment'])
        self.assertNotIn('--insecure', self.run_with('dogs_vs_cats', 'train', apart=True)[0]['command'])
        self.assertNotIn('--insecure', self.run_with('dogs_vs_cats', 'train', hosts=1)[0]['command'])

    def test_other_programs_are_told_by_the_environment(self):
        found, _ = self.run_with('python3', 'any.py')
        self.assertEqual(found['command'], ['python3', 'any.py'])
        self.assertEqual(found['environment'], {'GLOO_SOCKET_IFNAME': 'eth0', 'OMP_NUM_THREADS': '1'})

    def test_what_ranks_expect_of_links_and_shares(self):
        found, netns = self.run_with('python3', 'any.py')
        self.assertAlmostEqual(found['bytes_per_s'], 28.125e6 / 8 * 1448 / 1514)
        self.assertAlmostEqual(found['share'], (7 * 0.225 + 0.1125) / 8)
        self.assertEqual(netns[:7], ['-n', '8', '-r', '28125000bit', '-b', '16384', '--'])
        found, netns = self.run_with('python3', 'any.py', rate='none')
        self.assertIsNone(found['bytes_per_s'])
        self.assertEqual(netns[:5], ['-n', '8', '-r', 'none', '--'])
        self.assertIsNone(self.run_with('python3', 'any.py', hosts=1)[0]['bytes_per_s'])


if __name__ == '__main__':
    unittest.main()
