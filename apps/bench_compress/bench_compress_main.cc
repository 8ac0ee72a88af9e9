// bench_compress: speed, size and error of the gradient codecs and sketches (bench_compress.h).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench_compress/bench_compress.h"
#include "apps/bench_compress/bench_compress_flags.h"
#include "apps/bench_program.h"

namespace ringtail {
namespace {

StatusOr<int> Run(const CompressFlags& flags) {
  RT_ASSIGN_OR_RETURN(const CompressBenchmarkOptions options, flags.Benchmark());
  RT_ASSIGN_OR_RETURN(const std::vector<CompressRate> rates, BenchmarkCompression(options));
  std::fputs((flags.as_json ? CompressionJson(rates) : CompressionTable(rates)).c_str(), stdout);
  return kExitSuccess;
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) {
  ringtail::CompressFlags flags;
  CLI::App app("Measures gradient compression: speed, size and error of each codec and sketch.");
  ringtail::AddCompressFlags(&app, &flags);
  return ringtail::RunBenchProgram("bench_compress", &app, argc, argv,
                                   [&] { return ringtail::Run(flags); });
}
