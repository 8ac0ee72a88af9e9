"""Whether ranks get the share of the processor that their cgroups (cpu_groups.py) promise: all compute at once, for a second.

    got = share_check.measure(folder, rank, ranks)      by each rank, in its group; the mean over all ranks comes back

A limit on the processor holds at most what it promises, and gives less where the kernel looks too rarely: see dilated.py --period-ms.
"""
import pathlib
import statistics
import time

SECONDS = 1.0
ENTERED, GOT = 'entered', 'got'  # files of ranks


def tell(path, text):
    """Others find the whole text or no file."""
    path.with_suffix('.new').write_text(text)
    path.with_suffix('.new').rename(path)


def of_all(folder, name, ranks):
    """What every rank has told, once all have."""
    paths = [pathlib.Path(folder) / f'{name}{rank}' for rank in range(ranks)]
    while not all(path.exists() for path in paths):
        time.sleep(0.01)
    return [path.read_text() for path in paths]


def measure(folder, rank, ranks):
    """Mean share of a core, of ranks that compute at the same time."""
    tell(pathlib.Path(folder) / f'{ENTERED}{rank}', '')
    of_all(folder, ENTERED, ranks)
    began, had = time.monotonic(), time.process_time()
    while time.monotonic() < began + SECONDS:
        pass
    share = (time.process_time() - had) / (time.monotonic() - began)
    tell(pathlib.Path(folder) / f'{GOT}{rank}', repr(share))
    return statistics.mean(map(float, of_all(folder, GOT, ranks)))
