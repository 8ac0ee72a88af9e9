#!/usr/bin/env python3
"""Tests of cpu_groups.py on folders that are no cgroups: what is written where.     tests/cluster/cpu_groups_test.py [CASE]"""
import contextlib
import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import cpu_groups


class FakeGroups(cpu_groups.CpuGroups):
    """Below a folder that is given."""
    parent, version1 = None, True

    def _parent(self):
        return self.parent


class CpuGroupsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def make(self, shares, period_ms, version1):
        with mock.patch.multiple(FakeGroups, parent=self.root, version1=version1):
            return FakeGroups(shares, period_ms)

    def files(self):
        return {str(path.relative_to(self.root / f'ringtail-dilated-{os.getpid()}')): path.read_text()
                for path in self.root.rglob('*') if path.is_file()}

    def test_quotas_of_version_1(self):
        groups = self.make([0.225, 0.1125], 10, version1=True)
        self.assertEqual(self.files(), {'cpu.shares': '262144', 'rank0/cpu.cfs_period_us': '10000', 'rank0/cpu.cfs_quota_us': '2250',
                                        'rank1/cpu.cfs_period_us': '10000', 'rank1/cpu.cfs_quota_us': '1125'})
        self.assertEqual([folder.name for folder in groups.ranks], ['rank0', 'rank1'])

    def test_quotas_of_version_2(self):
        self.make([2.5, 0.0225], 44.4444, version1=False)
        self.assertEqual(self.files(), {'cpu.weight': '10000', 'cgroup.subtree_control': '+cpu', 'rank0/cpu.max': '111110 44444',
                                        'rank1/cpu.max': '1000 44444'})

    def test_what_cannot_be_made_is_said_and_nothing_stays(self):
        (self.root / 'file').write_text('')
        self.root /= 'file'
        with self.assertRaisesRegex(OSError, 'no cpu cgroup can be made: .*ringtail-dilated'), \
                contextlib.redirect_stderr(io.StringIO()), mock.patch('time.sleep'):
            self.make([1], 10, version1=True)

    def test_groups_are_removed_and_what_stays_is_named(self):
        groups = cpu_groups.CpuGroups.__new__(cpu_groups.CpuGroups)
        groups.root = self.root / 'all'
        groups.ranks = [groups.root / 'rank0', groups.root / 'rank1']
        for folder in (groups.root, groups.ranks[0]):  # rank1 has not been made
            folder.mkdir()
        groups.remove()
        self.assertFalse(groups.root.exists())
        groups.root.mkdir()
        (groups.root / 'process').write_text('')
        with contextlib.redirect_stderr(io.StringIO()) as said, mock.patch('time.sleep') as waited:
            groups.remove()
        self.assertIn('all could not be removed', said.getvalue())
        self.assertEqual(waited.call_count, 100)


class FolderTest(unittest.TestCase):
    MOUNTS = ['tmpfs /sys/fs/cgroup tmpfs rw 0 0', 'cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0',
              'cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0', 'cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0']

    def folder(self, groups, mounts=None):
        return cpu_groups.version1_folder([line.split() for line in mounts or self.MOUNTS], groups)

    def test_below_the_group_of_this_process(self):
        for groups in ('3:cpuset:/a\n2:cpu,cpuacct:/b/c\n1:name=systemd:/d\n', '2:cpuacct,cpu:/b/c\n', '3:cpuset:/a\n2:cpu:/b/c\n0::/e\n'):
            self.assertEqual(self.folder(groups), pathlib.Path('/sys/fs/cgroup/cpu,cpuacct/b/c'), groups)

    def test_the_root(self):
        self.assertEqual(self.folder('2:cpu,cpuacct:/\n'), pathlib.Path('/sys/fs/cgroup/cpu,cpuacct'))

    def test_version_2_alone(self):
        self.assertIsNone(self.folder('0::/a\n', mounts=['cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0', *self.MOUNTS[:2]]))


if __name__ == '__main__':
    unittest.main()
