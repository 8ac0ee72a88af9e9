#include "data/scan.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "core/machine/thread_budget.h"
#include "data/decoding/decode.h"
#include "data/decoding/image_guard.h"
#include "data/manifest.h"
#include "data/worker_pool.h"

namespace ringtail {
namespace {

// Enough work per item that the queue costs nothing.
constexpr size_t kImagesPerItem = 16;

// `fingerprint`: that of the image, if it can be used.
Status CheckImage(const Dataset& dataset, int64_t sample, const DataConfig& config, bool decode,
                  Image* pixels, uint64_t* fingerprint) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, dataset.Read(sample));
  RT_ASSIGN_OR_RETURN(const ImageHeader header, InspectImage(bytes, config.bad_images()));
  *fingerprint = ImageFingerprint(dataset.samples()[sample], bytes);
  if (!decode) return OkStatus();
  return DecodeRegion(bytes, header, WholeRegion(header.width, header.height, 1), pixels);
}

}  // namespace

StatusOr<std::vector<BadImage>> ScanImages(const Dataset& dataset,
                                           const std::vector<int64_t>& indices,
                                           const DataConfig& config, bool decode,
                                           const std::function<bool()>& stop,
                                           uint64_t* fingerprint) {
  const int workers = config.workers() > 0 ? config.workers() : UsableCores();
  RT_RETURN_IF_ERROR(WorkerPool::CheckStart(workers));
  const size_t items = (indices.size() + kImagesPerItem - 1) / kImagesPerItem;
  std::vector<std::vector<BadImage>> found(items);  // one element per item
  std::vector<Image> pixels(workers);
  std::atomic<bool> stopped = false;
  std::atomic<uint64_t> sum = 0;
  {
    WorkerPool pool(workers);
    for (size_t item = 0; item < items; ++item) {
      pool.Submit([&, item](int worker) {
        const size_t end = std::min(indices.size(), (item + 1) * kImagesPerItem);
        for (size_t i = item * kImagesPerItem; i < end; ++i) {
          if (stopped || (stop && stop())) {
            stopped = true;
            return;
          }
          uint64_t own = 0;
          const Status status =
              CheckImage(dataset, indices[i], config, decode, &pixels[worker], &own);
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
  if (stopped) return Cancelled("stopped while looking at the images");
  if (fingerprint != nullptr) *fingerprint = sum;
  std::vector<BadImage> result;
  for (std::vector<BadImage>& part : found) {
    std::move(part.begin(), part.end(), std::back_inserter(result));
  }
  std::sort(result.begin(), result.end(),
            [](const BadImage& a, const BadImage& b) { return a.sample < b.sample; });
  return result;
}

}  // namespace ringtail
