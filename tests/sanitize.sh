#!/usr/bin/env bash
# Runs tests under sanitizers, compiled by clang, whose thread-safety analysis is an error, too:
#
#   tests/sanitize.sh address                ASan with UBSan over all tests
#   tests/sanitize.sh thread                 TSan over code with threads of our own (OpenMP's team is
#                                            not instrumented, so TSan runs with one compute thread)
#   tests/sanitize.sh address --essential    what continuous integration runs: what reads files and
#   tests/sanitize.sh thread --essential     messages of others; threads
#
# Steps and rounds that travel while a rank computes the next run on the communication thread of
# dist/gradients/, which is essential; the round itself, apps/trainer/local/, is only in the whole run,
# since apps and layers would double what is compiled.
#
# Further arguments are ctest's.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  address)
    preset=asan
    tests='^(core|layers|optim|data|dist|apps)/'
    essential='^core/(config|storage/weights)/|^core/storage/(checkpoint_damage|safetensors|safetensors_hostile)_test'
    essential+='|^data/|^dist/(compression|planner)/(.+/)?[a-z_]*(codecs?|state|facts_file)_test'
    essential+='|^dist/transport/(frames|door)/|^dist/transport/(.+/)?(damaged_wire|shared_memory_hostile)_test'
    essential+='|^dist/membership/(.+/)?(host_list|roster|rank_environment|job_token)_test'
    essential+='|^dist/parameter_server/wire/(messages|shard_service)_test|^apps/launch/(parts|host_slots)_test'
    ;;
  thread)
    preset=tsan
    tests='^(core|data|dist)/|^apps/trainer/(local/(round_exchange|local_update)|update/step_exchange|asynchronous/worker_round(_end)?)_test'
    essential='^core/(.+/)?(mutex|trace|metrics|logging|stop_signal)_test|^data/(.+/)?(loader|worker_pool|image_cache)_test'
    essential+='|^dist/transport/(grpc/|shared_memory/)?[a-z_]*(transport|memory|queue|tolerance)_test'
    essential+='|^dist/(liveness|gradients)/[a-z_]*(monitor|process|synchronizer)_test'
    essential+='|^dist/collectives/(executor|allreduce)_test|^dist/pipeline/message_stream_test|^dist/communicator_test|^dist/parameter_server/wire/(server_thread|replica)_test'
    export OMP_NUM_THREADS=1
    ;;
  *)
    echo "usage: tests/sanitize.sh address|thread [--essential] [arguments for ctest]" >&2
    exit 2
    ;;
esac
readonly processors=$(nproc --all)  # nproc alone heeds OMP_NUM_THREADS
shift
build=build/$preset
flags=()
if [ "${1:-}" = --essential ]; then
  tests=$essential
  shift
  # Compiles in two thirds of the time, with TSan in half (CMakeLists.txt keeps -O1 for kernels, and with TSan for data/,
  # since tsan_suppressions.txt knows its frames as inlining leaves them).
  build+=-essential
  flags=(-DCMAKE_CXX_FLAGS=-O0)
fi

apps/install_packages.sh --tests
cmake --preset $preset -B $build "${flags[@]}" -Wno-dev >/dev/null
# tests/dist/transport/frames/frame_test.cc is the test dist/transport/frames/frame_test and the
# target dist_frame_test.
targets=()
names='^$'
while read -r test; do
  names+="|^$test\$"  # ctest's regular expressions take no more than nine parentheses
  folder=${test%%/*}
  [[ $test == apps/launch/* ]] && folder=apps_launch
  targets+=("${folder}_${test##*/}")
done < <(cd tests && find . -name '*_test.cc' | sed 's|^\./||; s|\.cc$||' | grep -E "$tests" | sort)
ninja -C $build --quiet -k 0 "${targets[@]}"
export OMP_WAIT_POLICY=passive
ctest --test-dir $build --output-on-failure --parallel $processors --tests-regex "$names" --no-tests=error "$@"
