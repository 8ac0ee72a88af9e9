// A Dataset whose files are byte strings in memory; a test may replace them while a loader runs.
#ifndef RINGTAIL_TESTS_DATA_MEMORY_DATASET_H_
#define RINGTAIL_TESTS_DATA_MEMORY_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "data/dataset.h"

namespace ringtail {

class MemoryDataset : public Dataset {
 public:
  void Add(std::string key, int32_t label, std::vector<std::byte> bytes) {
    samples_.push_back({std::move(key), label});
    MutexLock lock(&mutex_);
    files_.push_back(std::move(bytes));
  }
  // From now on, reading sample i gives these bytes, or the error.
  void Replace(int64_t i, StatusOr<std::vector<std::byte>> file) {
    MutexLock lock(&mutex_);
    files_[i] = std::move(file);
  }
  int64_t reads() const {
    MutexLock lock(&mutex_);
    return reads_;
  }

  const std::vector<Sample>& samples() const override { return samples_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string Describe() const override { return "images in memory"; }
  StatusOr<std::vector<std::byte>> Read(int64_t i) const override {
    MutexLock lock(&mutex_);
    ++reads_;
    return files_[i];
  }

 private:
  std::vector<Sample> samples_;
  std::vector<std::string> class_names_ = {"cat", "dog"};
  mutable Mutex mutex_;
  std::vector<StatusOr<std::vector<std::byte>>> files_ RT_GUARDED_BY(mutex_);
  mutable int64_t reads_ RT_GUARDED_BY(mutex_) = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DATA_MEMORY_DATASET_H_
