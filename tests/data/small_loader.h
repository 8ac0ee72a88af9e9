// Loaders of a few small drawn images, and copies of what they give, for tests.
#ifndef RINGTAIL_TESTS_DATA_SMALL_LOADER_H_
#define RINGTAIL_TESTS_DATA_SMALL_LOADER_H_

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "data/loader.h"
#include "tests/data/memory_dataset.h"
#include "tests/data/test_images.h"

namespace ringtail {

inline constexpr int64_t kImages = 23, kBatch = 4, kSize = 32;
inline constexpr int64_t kRowFloats = 3 * kSize * kSize;

inline std::unique_ptr<MemoryDataset> MakeDataset(int64_t images = kImages) {
  auto dataset = std::make_unique<MemoryDataset>();
  for (int64_t i = 0; i < images; ++i) {
    const auto width = static_cast<int32_t>(60 + 7 * (i % 5)),
               height = static_cast<int32_t>(90 - 8 * (i % 4));
    dataset->Add(
        "cat." + std::to_string(i) + ".jpg", static_cast<int32_t>(i % 2),
        EncodeJpeg(DrawImage(width, height, i), {.orientation = static_cast<int32_t>(i % 9)}));
  }
  return dataset;
}

inline std::vector<int64_t> All(const Dataset& dataset) {
  std::vector<int64_t> indices(dataset.samples().size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

inline DataConfig Config(int workers = 2) {
  DataConfig config;
  config.set_workers(workers);
  config.set_cache_mib(0);
  config.mutable_bad_images()->set_max_fraction(1);
  config.mutable_augment()->set_brightness(0.2F);
  return config;
}

inline LoaderOptions Options(LoaderMode mode = LoaderMode::kTrain) {
  LoaderOptions options;
  options.mode = mode;
  options.batch = kBatch;
  options.image_size = kSize;
  return options;
}

inline std::unique_ptr<DataLoader> MakeLoader(const Dataset& dataset, const DataConfig& config,
                                              const LoaderOptions& options = Options()) {
  return DataLoader::Create(&dataset, All(dataset), config, options).value();
}

// A batch that outlives the next Next().
struct BatchCopy {
  std::vector<float> images;
  std::vector<int32_t> labels;
  std::vector<int64_t> samples;
  int64_t epoch, step;
  bool operator==(const BatchCopy&) const = default;
};

inline BatchCopy Copy(const LoadedBatch& batch) {
  return {{batch.images, batch.images + batch.labels.size() * kRowFloats},
          {batch.labels.begin(), batch.labels.end()},
          {batch.samples.begin(), batch.samples.end()},
          batch.epoch,
          batch.step_in_epoch};
}

inline std::vector<BatchCopy> Take(DataLoader* loader, int64_t batches) {
  std::vector<BatchCopy> result;
  for (int64_t i = 0; i < batches; ++i) result.push_back(Copy(loader->Next().value()));
  return result;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DATA_SMALL_LOADER_H_
