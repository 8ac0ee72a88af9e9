#include "apps/bench_loader/bench_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/machine/processor_time.h"
#include "core/stopwatch.h"
#include "data/dataset.h"
#include "data/loader.h"

namespace ringtail {
namespace {

// The smallest value that at least a `share` of all values do not exceed. `values` is not empty.
double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

StatusOr<LoaderRate> MeasureRate(DataLoader* loader, int workers,
                                 const LoaderBenchmarkOptions& options) {
  RT_RETURN_IF_ERROR(loader->Next().status());
  const int64_t batches = std::max<int64_t>(options.images / options.batch, 1);
  std::vector<double> rates, batch_ms;
  const double cpu_start = ProcessSeconds();
  for (int round = 0; round < options.rounds; ++round) {
    const Stopwatch round_time;
    for (int64_t i = 0; i < batches; ++i) {
      const Stopwatch batch_time;
      RT_RETURN_IF_ERROR(loader->Next().status());
      batch_ms.push_back(batch_time.Seconds() * 1e3);
    }
    rates.push_back(static_cast<double>(batches * options.batch) / round_time.Seconds());
  }
  LoaderRate rate;
  rate.workers = workers;
  rate.images_per_s = Percentile(rates, 0.5);
  rate.lowest_images_per_s = Percentile(rates, 0);
  rate.highest_images_per_s = Percentile(rates, 1);
  rate.images_per_cpu_s = static_cast<double>(options.rounds * batches * options.batch) /
                          (ProcessSeconds() - cpu_start);
  rate.batch_ms_p50 = Percentile(batch_ms, 0.5);
  rate.batch_ms_p90 = Percentile(batch_ms, 0.9);
  rate.batch_ms_p99 = Percentile(batch_ms, 0.99);
  return rate;
}

}  // namespace

StatusOr<LoaderBenchmark> BenchmarkLoader(const LoaderBenchmarkOptions& options) {
  if (options.workers.empty() || options.images < 1 || options.rounds < 1) {
    return InvalidArgument("name at least one number of workers, one image and one round");
  }
  RT_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, Dataset::Open(options.data));
  std::vector<int64_t> indices(dataset->samples().size());
  std::iota(indices.begin(), indices.end(), 0);
  LoaderBenchmark result;
  result.data = dataset->Describe();
  result.image_size = options.data.image_size();
  result.batch = options.batch;
  for (const int workers : options.workers) {
    DataConfig config = options.data;
    config.set_workers(workers);
    LoaderOptions loader_options;
    loader_options.batch = options.batch;
    loader_options.image_size = config.image_size();
    RT_ASSIGN_OR_RETURN(const std::unique_ptr<DataLoader> loader,
                        DataLoader::Create(dataset.get(), indices, config, loader_options));
    RT_ASSIGN_OR_RETURN(const LoaderRate rate, MeasureRate(loader.get(), workers, options));
    result.rates.push_back(rate);
    result.bad_images = static_cast<int64_t>(loader->bad_images().size());
  }
  return result;
}

std::string LoaderBenchmarkTable(const LoaderBenchmark& result) {
  std::string text =
      fmt::format("{}; {} x {}, batch {}, {} unusable\n", result.data, result.image_size,
                  result.image_size, result.batch, result.bad_images);
  text += fmt::format("{:>7} {:>11} {:>9} {:>9} {:>15} {:>9} {:>9} {:>9}\n", "workers", "images/s",
                      "lowest", "highest", "images/cpu-s", "p50 ms", "p90 ms", "p99 ms");
  for (const LoaderRate& rate : result.rates) {
    text += fmt::format("{:>7} {:>11.0f} {:>9.0f} {:>9.0f} {:>15.0f} {:>9.2f} {:>9.2f} {:>9.2f}\n",
                        rate.workers, rate.images_per_s, rate.lowest_images_per_s,
                        rate.highest_images_per_s, rate.images_per_cpu_s, rate.batch_ms_p50,
                        rate.batch_ms_p90, rate.batch_ms_p99);
  }
  return text;
}

std::string LoaderBenchmarkJson(const LoaderBenchmark& result) {
  nlohmann::ordered_json json = {{"data", result.data},
                                 {"image_size", result.image_size},
                                 {"batch", result.batch},
                                 {"bad_images", result.bad_images},
                                 {"rates", nlohmann::json::array()}};
  for (const LoaderRate& rate : result.rates) {
    json["rates"].push_back({{"workers", rate.workers},
                             {"images_per_s", rate.images_per_s},
                             {"lowest_images_per_s", rate.lowest_images_per_s},
                             {"highest_images_per_s", rate.highest_images_per_s},
                             {"images_per_cpu_s", rate.images_per_cpu_s},
                             {"batch_ms_p50", rate.batch_ms_p50},
                             {"batch_ms_p90", rate.batch_ms_p90},
                             {"batch_ms_p99", rate.batch_ms_p99}});
  }
  // JSON must be UTF-8, which file names need not be.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ringtail
