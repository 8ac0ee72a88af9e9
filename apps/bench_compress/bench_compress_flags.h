// The command line of bench_compress.
#ifndef RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_FLAGS_H_
#define RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_FLAGS_H_

#include <string>
#include <vector>

#include "apps/bench_compress/bench_compress.h"
#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

struct CompressFlags {
  std::vector<std::string> sizes = {"1MB", "9MB"};
  bool as_json = false;
  CompressBenchmarkOptions benchmark;  // without `bytes`, which Benchmark() adds

  StatusOr<CompressBenchmarkOptions> Benchmark() const;
};

// `flags` must outlive the parsing.
void AddCompressFlags(CLI::App* app, CompressFlags* flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_FLAGS_H_
