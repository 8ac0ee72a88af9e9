#include "apps/bench_program.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "apps/help/wrapped_help.h"
#include "core/stop_signal.h"
#include "core/terminate.h"
#include "core/text/printable.h"

namespace ringtail {

int RunBenchProgram(const char* program, CLI::App* app, int argc, char** argv,
                    const std::function<StatusOr<int>()>& run, int (*code_of)(const Status&)) {
  ExplainTermination(program);
  IgnoreBrokenPipes();
  app->formatter(std::make_shared<WrappedHelp>());
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app->exit(error) == 0 ? kExitSuccess : kExitUsage;
  }
  const StatusOr<int> exit_code = run();
  if (exit_code.ok()) return *exit_code;
  const Status& status = exit_code.status();
  std::fprintf(stderr, "%s: %s\n", program, Printable(status.message()).c_str());
  return code_of(status);
}

}  // namespace ringtail
