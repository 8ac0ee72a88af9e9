#include "apps/plan/measure_loading.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/plan/step_images.h"
#include "core/machine/processor_time.h"
#include "data/loader.h"

namespace ringtail {
namespace {

constexpr int64_t kBatch = 32, kBatches = 8;

// Processor seconds of the next `batches` batches.
StatusOr<double> Load(DataLoader* loader, int64_t batches) {
  const double before = ProcessSeconds();
  for (int64_t i = 0; i < batches; ++i) RT_RETURN_IF_ERROR(loader->Next().status());
  return ProcessSeconds() - before;
}

}  // namespace

StatusOr<LoadingCost> MeasureLoading(const RunConfig& config, const TrainingData& data,
                                     int64_t image_size, int ranks_here) {
  const std::vector<int64_t>& all = data.split.train;
  const int64_t images = std::min<int64_t>(std::ssize(all), kBatch * kBatches) / kBatch * kBatch;
  if (images == 0 || !InputSharesCores(ranks_here)) return LoadingCost{};
  RT_ASSIGN_OR_RETURN(
      const auto loader,
      DataLoader::Create(
          data.dataset.get(), {all.begin(), all.begin() + images}, config.data(),
          {.batch = kBatch, .image_size = image_size, .seed = config.train().seed()}));
  RT_ASSIGN_OR_RETURN(const double decoding, Load(loader.get(), images / kBatch));
  RT_ASSIGN_OR_RETURN(const double again, Load(loader.get(), images / kBatch));
  const CacheStatistics cache = loader->cache_statistics();
  const double needed = static_cast<double>(cache.bytes) / static_cast<double>(images) *
                        static_cast<double>(all.size());
  const double room = static_cast<double>(config.data().cache_mib()) * (1 << 20);
  return LoadingCost{.load_s = again / static_cast<double>(images),
                     .decode_s = std::max(decoding - again, 0.0) / static_cast<double>(images),
                     .cached_share = needed > 0 ? std::min(1.0, room / needed) : 0};
}

}  // namespace ringtail
