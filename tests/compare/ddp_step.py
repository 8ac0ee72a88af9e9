#!/usr/bin/python3
"""Times a training step of PyTorch's DistributedDataParallel (Gloo) with the network of the default config; a rank of a job.

  tests/cluster/dilated.sh -n 8 -k 8 -r 1gbit -- tests/compare/ddp_step.py SIZE BATCH STEPS     in slow motion: BATCH images a rank

Rank 0 prints {"images_per_s": of all ranks, "step_s": [...]}, in the time of this machine: times dilated.sh's dilation, images/s are
those of its hosts. Random images, kept in memory; SGD with momentum, which takes less time than the config's Muon; buckets of 25 MB, no
broadcast of running statistics; channels_last, the fastest layout here. RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT say which rank.

  apt-get install python3-torch python3-torchvision libopenblas0-openmp libtcmalloc-minimal4
  LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4 ...
"""
import json
import os
import statistics
import sys
import time

import torch
from torch import distributed, nn

from replay_with_torch import NETS

WARM_UP = 2


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    size, batch, steps = map(int, sys.argv[1:])
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
    torch.manual_seed(1)
    distributed.init_process_group('gloo', init_method='env://')
    net = NETS['dogs_vs_cats'].build().train().to(memory_format=torch.channels_last)
    net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True, broadcast_buffers=False)
    x = torch.randn(batch, 3, size, size).to(memory_format=torch.channels_last)
    y = torch.randint(0, 2, (batch,))
    loss_function = nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    times = []
    for _ in range(WARM_UP + steps):
        start = time.perf_counter()
        sgd.zero_grad(set_to_none=True)
        loss_function(net(x), y).backward()
        sgd.step()
        times.append(time.perf_counter() - start)
    times = times[WARM_UP:]
    if distributed.get_rank() == 0:
        print(json.dumps({'images_per_s': batch * distributed.get_world_size() / statistics.median(times), 'step_s': times}))
    distributed.barrier()


if __name__ == '__main__':
    main()
