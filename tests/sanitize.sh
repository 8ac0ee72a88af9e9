#!/usr/bin/env bash
# Runs tests under sanitizers, compiled by clang, whose thread-safety analysis is an error, too:
#
#   tests/sanitize.sh address                ASan with UBSan over all tests
#   tests/sanitize.sh thread                 TSan over code with threads of our own (OpenMP's team is
#                                            not instrumented, so TSan runs with one compute thread)
#   tests/sanitize.sh address --essential    what continuous integration runs: parsers, codecs,
#   tests/sanitize.sh thread --essential     transport, memory plan; threads
#
# Further arguments are ctest's.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  address)
    preset=asan
    tests='^(core|layers|optim|data|dist|apps)/'
    essential='^core/(config|machine|storage/weights)/|^core/(utf8|printable|aligned_buffer|bfloat16)_test'
    essential+='|^core/storage/(checkpoint|checkpoint_damage|checkpoint_parts|crc32c|file|safetensors|safetensors_hostile)_test'
    essential+='|^layers/(.+/)?(memory_plan|net_memory|net_memory_step|expand)_test|^data/'
    essential+='|^dist/(compression|transport)/|^dist/membership/(.+/)?(host_list|roster|rank_environment|job_token)_test'
    essential+='|^apps/launch/(parts|host_slots)_test|^dist/planner/facts_file_test|^dist/parameter_server/wire/'
    ;;
  thread)
    preset=tsan
    tests='^(core|data|dist)/|^apps/trainer/local/round_exchange_test'
    essential='^core/(.+/)?(mutex|trace|metrics|logging|stop_signal)_test|^data/(.+/)?(loader|worker_pool|image_cache)_test'
    essential+='|^dist/(gradients|liveness)/|^dist/transport/(grpc/|mpi/|shared_memory/)?[a-z_]*(transport|memory|queue|tolerance)_test'
    essential+='|^dist/collectives/(executor|allreduce)_test|^dist/communicator_test'
    essential+='|^dist/parameter_server/wire/(server_thread|replica)_test'
    export OMP_NUM_THREADS=1
    ;;
  *)
    echo "usage: tests/sanitize.sh address|thread [--essential] [arguments for ctest]" >&2
    exit 2
    ;;
esac
readonly processors=$(nproc --all)  # nproc alone heeds OMP_NUM_THREADS
shift
if [ "${1:-}" = --essential ]; then
  tests=$essential
  shift
fi

apps/install_packages.sh --tests
cmake --preset $preset -Wno-dev >/dev/null
# tests/dist/transport/frames/frame_test.cc is the test dist/transport/frames/frame_test and the
# target dist_frame_test.
targets=()
while read -r test; do
  folder=${test%%/*}
  [[ $test == apps/launch/* ]] && folder=apps_launch
  targets+=("${folder}_${test##*/}")
done < <(cd tests && find . -name '*_test.cc' | sed 's|^\./||; s|\.cc$||' | grep -E "$tests" | sort)
ninja -C build/$preset --quiet -k 0 "${targets[@]}"
export OMP_WAIT_POLICY=passive
ctest --test-dir build/$preset --output-on-failure --parallel $processors --tests-regex "$tests" "$@"
