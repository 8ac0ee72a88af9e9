// Programs that train and get a signal after some of their steps. They print a line for each step
// (train.log_every_steps=1).
#ifndef RINGTAIL_TESTS_APPS_SIGNALLED_PROGRAM_H_
#define RINGTAIL_TESTS_APPS_SIGNALLED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/testing/process.h"

namespace ringtail {

// Returns when it has printed the lines of `steps` steps; false if it ends before.
bool WaitForSteps(ChildProcess* child, uint64_t steps);

// Starts the program and sends `signal` after fewer than `most_steps` steps, and a time of less
// than `most_microseconds`.
ProcessResult SignalAtRandom(const std::vector<std::string>& program, int signal,
                             uint64_t most_steps, uint64_t most_microseconds, Rng* rng);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_SIGNALLED_PROGRAM_H_
