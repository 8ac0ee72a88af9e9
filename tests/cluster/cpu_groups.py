"""Shares of the processor, held by the kernel: a process in a cpu cgroup with a quota gets so much time in each period and no more,
also while every other process sleeps. Needs root; OSError says what is missing.

    groups = CpuGroups(shares=[0.25, 0.25, 0.125], period_ms=10)
    (groups.ranks[2] / 'cgroup.procs').write_text(str(pid))       with all of its threads
    groups.remove()
"""
import os
import pathlib
import re
import sys
import time


def version1_folder(mounts, groups):
    """Of the cpu cgroup of this process, from the words of each line of /proc/self/mounts, and /proc/self/cgroup; None: it has none."""
    for _, folder, kind, options, *_ in mounts:
        if kind == 'cgroup' and 'cpu' in options.split(','):
            own = re.search(r'^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$', groups, re.M)
            return pathlib.Path(folder) / own[1].lstrip('/')
    return None


class CpuGroups:
    """A cpu cgroup for each rank, below that of this process (version 1), or below the root (version 2: a group with processes
    of its own cannot divide its processor time)."""

    def __init__(self, shares, period_ms):
        """`shares`: of a core, by rank."""
        self.root = self._parent() / f'ringtail-dilated-{os.getpid()}'
        self.ranks = [self.root / f'rank{rank}' for rank in range(len(shares))]
        period_us = round(period_ms * 1000)
        try:
            self.root.mkdir()
            # Other programs get what the ranks leave: the largest weights.
            if self.version1:
                (self.root / 'cpu.shares').write_text('262144')
            else:
                (self.root / 'cpu.weight').write_text('10000')
                (self.root / 'cgroup.subtree_control').write_text('+cpu')
            for folder, share in zip(self.ranks, shares):
                folder.mkdir()
                quota_us = round(period_us * share)
                if self.version1:
                    (folder / 'cpu.cfs_period_us').write_text(str(period_us))
                    (folder / 'cpu.cfs_quota_us').write_text(str(quota_us))
                else:
                    (folder / 'cpu.max').write_text(f'{quota_us} {period_us}')
        except BaseException as error:  # a signal's, too
            self.remove()
            if isinstance(error, OSError):
                raise OSError(f'no cpu cgroup can be made: {error}') from error
            raise

    def _parent(self):
        mounts = [line.split() for line in pathlib.Path('/proc/self/mounts').read_text().splitlines()]
        own = version1_folder(mounts, pathlib.Path('/proc/self/cgroup').read_text())
        self.version1 = own is not None
        if own:
            return own
        for _, folder, kind, *_ in mounts:
            root = pathlib.Path(folder)
            if kind == 'cgroup2' and 'cpu' in (root / 'cgroup.controllers').read_text().split():
                (root / 'cgroup.subtree_control').write_text('+cpu')
                return root
        raise OSError('no cpu cgroup is mounted')

    def remove(self):
        """Also if processes in them have been killed just now. Says what stays, since a process is still in it."""
        for folder in [*self.ranks, self.root]:
            for _ in range(100):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    time.sleep(0.05)
                    continue
                break
            else:
                print(f'cpu_groups: {folder} could not be removed', file=sys.stderr)
