#!/usr/bin/env bash
# Runs a command under Open MPI's mpirun on this host:
#
#   tests/cluster/mpirun.sh [-n RANKS] COMMAND...    default: 4 ranks of dist_rank_environment_main
#
# Installs openmpi-bin if it is missing (which needs root). Programs of the
# build are found by name.
set -euo pipefail
release=$(cd "$(dirname "$0")/../.." && pwd)/build/release
export PATH=$release/bin:$PATH

if ! command -v mpirun >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openmpi-bin >/dev/null
fi
ranks=4
if [ "${1:-}" = -n ]; then ranks=$2; shift 2; fi
[ $# -gt 0 ] || set -- "$release/tests/dist_rank_environment_main"
options=(--oversubscribe)
[ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
exec timeout 600 mpirun "${options[@]}" -np "$ranks" "$@"
