#include "data/manifest.h"

#include <algorithm>

#include "core/random.h"
#include "core/storage/crc32c.h"
#include "data/worker_pool.h"

namespace ringtail {

uint64_t DatasetFingerprint(const Dataset& dataset, const std::vector<int64_t>& indices) {
  RngKey hash = RngKey(0).With(dataset.class_names().size());
  for (const std::string& name : dataset.class_names()) hash = hash.With(name);
  for (const int64_t i : indices) {
    const Sample& sample = dataset.samples()[i];
    hash = hash.With(sample.key).With(static_cast<uint64_t>(sample.label));
  }
  return hash.bits();
}

uint64_t ImageFingerprint(const Sample& sample, std::span<const std::byte> file) {
  return RngKey(0)
      .With(sample.key)
      .With(static_cast<uint64_t>(sample.label))
      .With(file.size())
      .With(Crc32c(file))
      .bits();
}

StatusOr<std::vector<int64_t>> FileSizes(const Dataset& dataset,
                                         const std::vector<int64_t>& indices, int workers) {
  constexpr size_t kPerItem = 256;
  RT_RETURN_IF_ERROR(WorkerPool::CheckStart(workers));
  std::vector<int64_t> sizes(indices.size());
  WorkerPool pool(workers);
  for (size_t begin = 0; begin < indices.size(); begin += kPerItem) {
    pool.Submit([&, begin](int /*worker*/) {
      const size_t end = std::min(indices.size(), begin + kPerItem);
      for (size_t i = begin; i < end; ++i) sizes[i] = dataset.FileBytes(indices[i]);
    });
  }
  pool.WaitUntilIdle();
  return sizes;
}

}  // namespace ringtail
