// The command line of bench_loader.
#ifndef RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_FLAGS_H_
#define RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_FLAGS_H_

#include <cstdint>
#include <string>

#include "apps/bench_loader/bench_loader.h"

namespace CLI {
class App;
}

namespace ringtail {

class LoaderFlags {
 public:
  LoaderFlags();
  LoaderFlags(const LoaderFlags&) = delete;
  LoaderFlags& operator=(const LoaderFlags&) = delete;

  void AddTo(CLI::App* app);  // this object must outlive the parsing
  LoaderBenchmarkOptions Benchmark() const;
  bool as_json() const { return as_json_; }

 private:
  LoaderBenchmarkOptions options_;
  std::string path_;
  int image_size_;
  float min_area_;
  int64_t cache_mib_ = 0;  // without the cache, every image is read and decoded each time
  bool as_json_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_FLAGS_H_
