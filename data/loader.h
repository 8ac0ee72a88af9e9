// DataLoader: turns a list of samples into a stream of batches, decoded ahead of time on a TBB
// arena.
//
//   indices -> read -> guard -> decode (only what the crop needs) -> augment --full--> Next()
//                                                                       ^                |
//                                                                       +-----free-------+
//
// Images are written as f32 straight into row n of one of `prefetch_batches` reusable batches;
// the next Next() frees the one before.
//
// The stream is a pure function of the config: augmentation is keyed by (seed, epoch, sample key),
// so the number of workers, their timing and Seek change nothing. An image that cannot be used
// keeps its row, with label -1 and zero pixels, and is reported once (training nets ignore such
// rows in the loss). Before a run, ScanImages finds them all, so that they can be left out of the
// list and every rank has the same list. Decoding begins with the first Next(), so that a Seek
// before it costs nothing. Only images of batches that have been handed over count as bad, so
// that the same batch stops the run whatever has been read ahead.
// Thread-safety: one consumer thread. The loader's own threads are named "rt-loader"
// (data/worker_pool.h).
#ifndef RINGTAIL_DATA_LOADER_H_
#define RINGTAIL_DATA_LOADER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "data/bad_images.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "data/image_cache.h"
#include "data/loader_options.h"

namespace ringtail {

struct LoadedBatch {
  const float* images = nullptr;  // (batch, 3, S, S), normalised, RGB; valid until the next Next()
  std::span<const int32_t> labels;   // batch; -1: no sample in this row
  std::span<const int64_t> samples;  // batch; index into the dataset; -1: padding
  int64_t epoch = 0, step_in_epoch = 0;
  double wait_seconds = 0;  // how long Next() waited for it
};

class DataLoader {
 public:
  // `indices` are what is loaded, from `dataset`, which must outlive the loader. InvalidArgument if
  // there are fewer of them than one global batch in mode kTrain.
  static StatusOr<std::unique_ptr<DataLoader>> Create(const Dataset* dataset,
                                                      std::vector<int64_t> indices,
                                                      const DataConfig& config,
                                                      const LoaderOptions& options);
  virtual ~DataLoader() = default;

  virtual int64_t steps_per_epoch() const = 0;
  // The next batch. kEvaluate: an empty `labels` after the last. An error when too many images
  // are bad or the policy is FAIL.
  virtual StatusOr<LoadedBatch> Next() = 0;
  // The next Next() returns this batch. Drops what is in flight.
  virtual void Seek(int64_t epoch, int64_t step_in_epoch) = 0;
  virtual std::vector<BadImage> bad_images() const = 0;  // so far, by sample
  virtual CacheStatistics cache_statistics() const = 0;  // data/image_cache.h
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LOADER_H_
