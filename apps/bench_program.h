// What the main functions of all benchmark programs share.
#ifndef RINGTAIL_APPS_BENCH_PROGRAM_H_
#define RINGTAIL_APPS_BENCH_PROGRAM_H_

#include <functional>

#include "apps/exit_code.h"
#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

// Parses the command line by `app` and calls `run`, which returns the exit code. Prints an error of
// either as one sentence behind `program`, a literal, on standard error, and returns its exit code:
// 2 for a wrong command line, `code_of` for an error of `run`.
int RunBenchProgram(const char* program, CLI::App* app, int argc, char** argv,
                    const std::function<StatusOr<int>()>& run,
                    int (*code_of)(const Status&) = ExitCodeOf);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_PROGRAM_H_
