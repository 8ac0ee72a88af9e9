// Measures the loader: images per second from files to normalised batches, for several numbers of
// workers.
//
// For each number of workers: one batch to warm up the page cache and the buffers, then rounds of
// `images` images. The consumer only waits, so that the loader runs at its full speed.
// Thread-safety: one call at a time. Cost: rounds * images / rate, for each number of workers.
#ifndef RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_H_
#define RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"

namespace ringtail {

struct LoaderBenchmarkOptions {
  DataConfig data;
  std::vector<int> workers = {1};
  int64_t batch = 64;
  int64_t images = 2000;  // per round
  int rounds = 5;
};

struct LoaderRate {
  int workers = 0;
  double images_per_s = 0;  // median of the rounds
  double lowest_images_per_s = 0, highest_images_per_s = 0;
  // Per second of processor time, over all rounds: the speed of one core without competition.
  double images_per_cpu_s = 0;
  // Percentiles of the time from one batch to the next.
  double batch_ms_p50 = 0, batch_ms_p90 = 0, batch_ms_p99 = 0;
};

struct LoaderBenchmark {
  std::string data;  // description of the data set
  int64_t image_size = 0, batch = 0, bad_images = 0;
  std::vector<LoaderRate> rates;  // in the order of options.workers
};

StatusOr<LoaderBenchmark> BenchmarkLoader(const LoaderBenchmarkOptions& options);

std::string LoaderBenchmarkTable(const LoaderBenchmark& result);
std::string LoaderBenchmarkJson(const LoaderBenchmark& result);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_LOADER_BENCH_LOADER_H_
