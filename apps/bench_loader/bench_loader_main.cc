// bench_loader: how many images per second the loader delivers (apps/bench_loader/bench_loader.h).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "apps/bench_loader/bench_loader.h"
#include "apps/bench_loader/bench_loader_flags.h"
#include "apps/bench_program.h"

namespace ringtail {
namespace {

StatusOr<int> Run(const LoaderFlags& flags) {
  RT_ASSIGN_OR_RETURN(const LoaderBenchmark result, BenchmarkLoader(flags.Benchmark()));
  const std::string text =
      flags.as_json() ? LoaderBenchmarkJson(result) : LoaderBenchmarkTable(result);
  std::fputs(text.c_str(), stdout);
  return kExitSuccess;
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) {
  ringtail::LoaderFlags flags;
  CLI::App app("Measures how fast images are read, decoded, cropped and normalised.");
  flags.AddTo(&app);
  return ringtail::RunBenchProgram("bench_loader", &app, argc, argv,
                                   [&] { return ringtail::Run(flags); });
}
