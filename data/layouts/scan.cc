// ScanPictures and CheckBadPictures of data/loader.h.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/machine/thread_budget.h"
#include "data/decoding/decode.h"
#include "data/decoding/picture_guard.h"
#include "data/loader.h"
#include "data/manifest.h"
#include "data/worker_pool.h"

namespace ringtail {
namespace {

// Enough work per hand-over that the queue costs nothing.
constexpr size_t kPicturesPerItem = 16;
constexpr size_t kNamedInSummary = 5;

// `fingerprint`: of the picture, if it can be used.
Status CheckPicture(const Dataset& dataset, int64_t sample, const DataConfig& config, bool decode,
                    Image* pixels, uint64_t* fingerprint) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, dataset.Read(sample));
  RT_ASSIGN_OR_RETURN(const PictureHeader header, InspectPicture(bytes, config.bad_pictures()));
  *fingerprint = PictureFingerprint(dataset.samples()[sample], bytes);
  if (!decode) return OkStatus();
  return DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), pixels);
}

// The least of two decimals (or as many as it takes to tell) that is at least `fraction`.
double EnoughFraction(double fraction) {
  double steps = 100;
  while (std::ceil(fraction * steps) > 2 * fraction * steps) steps *= 10;
  return std::ceil(fraction * steps) / steps;
}

}  // namespace

StatusOr<std::vector<BadPicture>> ScanPictures(const Dataset& dataset,
                                               const std::vector<int64_t>& indices,
                                               const DataConfig& config, bool decode,
                                               const std::function<bool()>& stop,
                                               uint64_t* fingerprint) {
  const int workers = config.workers() > 0 ? config.workers() : UsableCores();
  RT_RETURN_IF_ERROR(WorkerPool::CheckStart(workers));
  const size_t items = (indices.size() + kPicturesPerItem - 1) / kPicturesPerItem;
  std::vector<std::vector<BadPicture>> found(items);  // each item its own
  std::vector<Image> pixels(workers);
  std::atomic<bool> stopped = false;
  std::atomic<uint64_t> sum = 0;
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
          uint64_t own = 0;
          const Status status =
              CheckPicture(dataset, indices[i], config, decode, &pixels[worker], &own);
          if (status.ok()) {
            sum += own;
            continue;
          }
          found[item].push_back({indices[i], dataset.samples()[indices[i]].key, status.message()});
        }
      });
    }
    pool.WaitUntilIdle();
  }
  if (stopped) return Cancelled("stopped while looking at the pictures");
  if (fingerprint != nullptr) *fingerprint = sum;
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
    return DataLoss(
        fmt::format("{} {}; remove it, or go on without it: --set data.bad_pictures.policy=SKIP",
                    bad.front().key, bad.front().reason));
  }
  const auto count = static_cast<int64_t>(bad.size());
  if (count < total &&
      static_cast<double>(count) <= config.max_fraction() * static_cast<double>(total)) {
    return OkStatus();
  }
  std::string named;
  for (size_t i = 0; i < std::min(bad.size(), kNamedInSummary); ++i) {
    named += fmt::format("{}{} {}", i == 0 ? "" : ", ", bad[i].key, bad[i].reason);
  }
  if (bad.size() > kNamedInSummary) named += ", ...";
  if (count >= total) {
    return DataLoss(fmt::format("none of the {} pictures can be used ({})", total, named));
  }
  return DataLoss(fmt::format(
      "{} of {} pictures cannot be used, more than data.bad_pictures.max_fraction = {} allows "
      "({}); remove or replace them, or go on without them: --set "
      "data.bad_pictures.max_fraction={}",
      count, total, config.max_fraction(), named,
      EnoughFraction(static_cast<double>(count) / static_cast<double>(total))));
}

}  // namespace ringtail
