#!/usr/bin/env bash
# Runs tests under sanitizers, compiled by clang, whose thread-safety analysis is an error, too:
#
#   tests/sanitize.sh address                ASan with UBSan over all tests
#   tests/sanitize.sh thread                 TSan over code with threads of our own (OpenMP's team is
#                                            not instrumented, so TSan runs with one compute thread)
#   tests/sanitize.sh address --essential    what continuous integration runs: parsers, codecs,
#   tests/sanitize.sh thread --essential     transport, memory plan; threads. Every library is
#                                            compiled nevertheless.
#
# Further arguments are ctest's.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  address)
    preset=asan
    tests='^(core|layers|optim|data|dist|apps)/'
    essential='^core/|^layers/(.+/)?(memory_plan|net_memory|net_memory_step|expand)_test|^data/|^apps/malformed_config_test'
    essential+='|^dist/(compression|transport)/|^dist/membership/(.+/)?(host_list|roster|rank_environment|job_token)_test'
    essential+='|^apps/launch/(parts|host_slots)_test|^dist/planner/facts_file_test|^dist/parameter_server/wire/'
    libraries=(programs)
    ;;
  thread)
    preset=tsan
    tests='^(core|data|dist)/|^apps/trainer/local/round_exchange_test'
    essential='^core/(.+/)?(mutex|trace|metrics|logging|stop_signal)_test|^data/(.+/)?(loader|worker_pool|image_cache)_test'
    essential+='|^dist/(gradients|liveness|transport)/|^dist/collectives/(executor|allreduce)_test|^dist/communicator_test'
    essential+='|^dist/parameter_server/wire/(server_thread|replica)_test'
    libraries=(ringtail_core ringtail_data ringtail_dist)
    export OMP_NUM_THREADS=1
    ;;
  *)
    echo "usage: tests/sanitize.sh address|thread [--essential] [arguments for ctest]" >&2
    exit 2
    ;;
esac
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
ninja -C build/$preset --quiet -k 0 "${libraries[@]}" "${targets[@]}"
export OMP_WAIT_POLICY=passive
ctest --test-dir build/$preset --output-on-failure --parallel "$(nproc)" --tests-regex "$tests" "$@"
