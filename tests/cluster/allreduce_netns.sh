#!/usr/bin/env bash
# The speed of the allreduce algorithms on links of 1 Gbit/s: four ranks in network namespaces
# (netns.sh), gRPC. Prints a table and the violations of these rules; exit status 1 if there are
# any:
#
#   ring and halving_doubling take at most 1 / 0.93 of the ideal, 2 (N - 1) / N of the bytes
#   single_reducer takes N / 2 to N times as long as ring
#   recursive_doubling is the fastest for 1 KiB among the candidates of "auto" (with four ranks the
#     single reducer, too, waits for two messages in a row, so that the two are about equally fast)
#
#   tests/cluster/allreduce_netns.sh [PROGRAM]        build/release/bin/bench_allreduce
#
# Takes about a minute. Needs root, and the Debian packages iproute2, util-linux and python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
readonly program=${1:-build/release/bin/bench_allreduce} ranks=4 gbit=1
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

measure() {  # NAME ALGORITHMS BYTES SECONDS
  tests/cluster/netns.sh -n $ranks -r ${gbit}gbit -- "$program" --algorithm "$2" --bytes "$3" \
    --seconds "$4" --link-gbit $gbit --shared-memory false --insecure --json >"$results/$1"
}
measure long ring,halving_doubling 25MB,100MB 5
measure baseline single_reducer 25MB 1
measure short single_reducer,ring,recursive_doubling,halving_doubling,binomial_tree 1KiB 2

python3 - $ranks "$results"/* <<'PYTHON'
import json
import sys

ranks = int(sys.argv[1])
rows = [row for path in sys.argv[2:] for row in json.load(open(path))['results']]
wrong = []


def ms(algorithm, size):
    return next(r['time_ms'] for r in rows if r['algorithm'] == algorithm and r['bytes'] == size)


print('| algorithm | bytes | ms | p90 | busbw MB/s | ideal ms | of ideal | CPU s/GB |')
print('|---|---|---|---|---|---|---|---|')
for r in rows:
    share = r['ideal_ms'] / r['time_ms']
    print(f"| {r['algorithm']} | {r['bytes']:,} | {r['time_ms']:.4g} | {r['p90_ms']:.4g} | "
          f"{r['busbw_gb_per_s'] * 1e3:.3g} | {r['ideal_ms']:.4g} | {share:.2f} | {r['cpu_s_per_gb']:.2g} |")
    if r['algorithm'] in ('ring', 'halving_doubling') and r['bytes'] > 1e6 and share < 0.93:
        wrong.append(f"{r['algorithm']} with {r['bytes']:,} bytes reaches {share:.3f} of the ideal, less than 0.93")
times = ms('single_reducer', 25_000_000) / ms('ring', 25_000_000)
print(f'single_reducer takes {times:.1f} times as long as ring')
if not ranks / 2 <= times <= ranks:
    wrong.append(f'that is not {ranks / 2:g} to {ranks} times')
shortest = min((r for r in rows if r['bytes'] == 1024 and r['algorithm'] != 'single_reducer'),
               key=lambda r: r['time_ms'])['algorithm']
print(f'the fastest with 1 KiB but for single_reducer: {shortest}')
if shortest != 'recursive_doubling':
    wrong.append('it is not recursive_doubling')
for sentence in wrong:
    print('NOT AS IT SHOULD BE: ' + sentence)
sys.exit(1 if wrong else 0)
PYTHON
