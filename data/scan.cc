// ScanPictures and CheckBadPictures of data/loader.h.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/thread_budget.h"
#include "data/decode.h"
#include "data/loader.h"
#include "data/picture_guard.h"
#include "data/worker_pool.h"

namespace ringtail {
namespace {

// Enough work per hand-over that the queue costs nothing.
constexpr size_t kPicturesPerItem = 16;
constexpr size_t kNamedInSummary = 5;

Status CheckPicture(const Dataset& dataset, int64_t sample, const DataConfig& config, bool decode,
                    Image* pixels) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, dataset.Read(sample));
  RT_ASSIGN_OR_RETURN(const PictureHeader header, InspectPicture(bytes, config.bad_pictures()));
  if (!decode) return OkStatus();
  return DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), pixels);
}

}  // namespace

StatusOr<std::vector<BadPicture>> ScanPictures(const Dataset& dataset,
                                               const std::vector<int64_t>& indices,
                                               const DataConfig& config, bool decode,
                                               const std::function<bool()>& stop) {
  const int workers = config.workers() > 0 ? config.workers() : UsableCores();
  const size_t items = (indices.size() + kPicturesPerItem - 1) / kPicturesPerItem;
  std::vector<std::vector<BadPicture>> found(items);  // each item its own
  std::vector<Image> pixels(workers);
  std::atomic<bool> stopped = false;
  {
    WorkerPool pool(workers);
    for (size_t item = 0; item < items; ++item) {
      pool.Submit([&, item](int worker) {
        const size_t end = std::min(indices.size(), (item + 1) * kPicturesPerItem);
        for (size_t i = item * kPicturesPerItem; i < end; ++i) {
          if (stopped || (stop && stop())) {
            stopped = true;
            return;
          }
          const Status status = CheckPicture(dataset, indices[i], config, decode, &pixels[worker]);
          if (status.ok()) continue;
          found[item].push_back({indices[i], dataset.samples()[indices[i]].key, status.message()});
        }
      });
    }
    pool.WaitUntilIdle();
  }
  if (stopped) return Cancelled("stopped while looking at the pictures");
  std::vector<BadPicture> result;
  for (std::vector<BadPicture>& part : found) {
    std::move(part.begin(), part.end(), std::back_inserter(result));
  }
  std::sort(result.begin(), result.end(),
            [](const BadPicture& a, const BadPicture& b) { return a.sample < b.sample; });
  return result;
}

Status CheckBadPictures(const std::vector<BadPicture>& bad, int64_t total,
                        const BadPicturesConfig& config) {
  if (bad.empty()) return OkStatus();
  if (config.policy() == BadPicturesConfig::FAIL) {
    return DataLoss(fmt::format("{} {}; remove it, or let bad_pictures.policy be SKIP",
                                bad.front().key, bad.front().reason));
  }
  const auto count = static_cast<int64_t>(bad.size());
  if (static_cast<double>(count) <= config.max_fraction() * static_cast<double>(total)) {
    return OkStatus();
  }
  std::string named;
  for (size_t i = 0; i < std::min(bad.size(), kNamedInSummary); ++i) {
    named += fmt::format("{}{} {}", i == 0 ? "" : ", ", bad[i].key, bad[i].reason);
  }
  if (bad.size() > kNamedInSummary) named += ", ...";
  return DataLoss(
      fmt::format("{} of {} pictures cannot be used, more than bad_pictures.max_fraction = {} "
                  "allows ({}); remove or "
                  "replace them, or raise the limit",
                  count, total, config.max_fraction(), named));
}

}  // namespace ringtail
