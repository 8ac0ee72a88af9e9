"""Whether ranks get the share of the processor that their cgroups (cpu_groups.py) promise: all compute at once, for a second.

    got = share_check.measure(folder, rank, ranks)      by each rank, in its group; the mean over all ranks comes back

A limit on the processor holds at most what it promises, and gives less where the kernel looks too rarely: see dilated.py --period-ms.
"""
import statistics
import time

import rank_files

SECONDS = 1.0
ENTERED, GOT = 'entered', 'got'  # files of ranks


def of_all(folder, name, rank, ranks, own):
    """Tells `own`, and returns what every rank has told under this name."""
    rank_files.tell(folder / f'{name}{rank}', own)
    return [rank_files.heard(folder / f'{name}{other}') for other in range(ranks)]


def measure(folder, rank, ranks):
    """Mean share of a core, of ranks that compute at the same time. `folder`: a Path."""
    of_all(folder, ENTERED, rank, ranks, '')
    began, had = time.monotonic(), time.process_time()
    while time.monotonic() < began + SECONDS:
        pass
    share = (time.process_time() - had) / (time.monotonic() - began)
    return statistics.mean(map(float, of_all(folder, GOT, rank, ranks, repr(share))))
