// Ranks under the real mpirun on this host, for tests. Thread-safety: functions without state.
#ifndef RINGTAIL_TESTS_TESTING_MPIRUN_H_
#define RINGTAIL_TESTS_TESTING_MPIRUN_H_

#include <string>
#include <vector>

#include "tests/testing/process.h"

namespace ringtail {

// mpirun -np `ranks` `command`, at most five minutes. The output is that of all ranks.
ProcessResult RunMpirun(int ranks, const std::vector<std::string>& command);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_MPIRUN_H_
