#!/bin/sh
# Stops runs of the default network at random moments, on one rank and on two, resumes each, and
# compares the result with undisturbed runs (tests/apps/stopped_runs_test.cc; ctest makes 40 stops).
#
#   tests/stopped_runs.sh [STOPS [SEED [BUILD]]]      default: 500, 1, build/release
#
# About 1.5 s for each stop on a core. Ends with one line of counts; exit code 1 if any stop was not
# in order, or any result has other bits.
set -eu
cd "$(dirname "$0")/.."
stops=${1:-500} seed=${2:-1} build=${3:-build/release}
ninja -C "$build" --quiet programs apps_stopped_runs_test
RINGTAIL_STOPPED_RUNS=$stops RINGTAIL_STOPPED_RUNS_SEED=$seed exec "$build/tests/apps_stopped_runs_test"
