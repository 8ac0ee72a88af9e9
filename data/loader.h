// DataLoader: turns a list of samples into a stream of batches, decoded ahead of time on an oneTBB
// arena.
//
//   indices -> read -> guard -> decode (only what the crop needs) -> augment --full--> Next()
//                                                                       ^                |
//                                                                       +-----free-------+
//
// Images are written as f32 directly into their row of one of `prefetch_batches` reusable batches;
// Next() frees the previous batch.
//
// The stream is a pure function of the config: augmentation is keyed by (seed, epoch, sample key),
// so the number of workers, their timing and Seek change nothing. With mixup or cutmix, images at
// positions 2 k and 2 k + 1 of the epoch's order are partners (data/row_work.h); a rank whose rows
// end between two loads one of them for nothing. An image that cannot be used
// keeps its row, with label -1 and zero pixels, and is reported once (training nets ignore such
// rows in the loss). Before a run, ScanImages (data/scan.h) finds all bad images, so that every
// rank leaves out the same ones. Decoding starts with the first Next(), so that an earlier Seek
// costs nothing. Who does not know before which rows come next, asks for each batch (Request). Bad images count only once Next() has returned their batch, so that the same batch
// stops the run whatever was read ahead.
// Thread-safety: one consumer thread. The loader's own threads are named "rt-loader"
// (data/worker_pool.h).
#ifndef RINGTAIL_DATA_LOADER_H_
#define RINGTAIL_DATA_LOADER_H_

#include <array>
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
  std::span<const int32_t> labels;  // batch; -1: no sample in this row
  // Empty, unless images are mixed or classes balanced. Of a mixture, `labels` has the class of the
  // larger share, and this the other one; -1: not mixed.
  std::span<const int32_t> other_labels;
  std::span<const std::array<float, 2>> label_weights;  // of label and other label; empty as these
  std::span<const int64_t> samples;  // batch; index into the dataset; -1: padding
  int64_t epoch = 0, step_in_epoch = 0;
  double wait_seconds = 0;  // time that Next() waited for it
};

class DataLoader {
 public:
  // Loads the samples `indices` of `dataset`, which must outlive the loader. InvalidArgument if
  // they are fewer than one global batch in mode kTrain.
  static StatusOr<std::unique_ptr<DataLoader>> Create(const Dataset* dataset,
                                                      std::vector<int64_t> indices,
                                                      const DataConfig& config,
                                                      const LoaderOptions& options);
  virtual ~DataLoader() = default;

  virtual int64_t steps_per_epoch() const = 0;
  // kTrain: from the first call on, the batches that were asked for come in this order, and no
  // others: `rows` images (at most a batch), from position `first` of the epoch's order on. All must
  // be there. One is read ahead while it waits.
  virtual void Request(int64_t epoch, int64_t first, int64_t rows) = 0;
  // The next batch. kEvaluate: empty `labels` after the last one. An error if too many images are
  // bad or, under the policy FAIL, if one is.
  virtual StatusOr<LoadedBatch> Next() = 0;
  // Makes the next Next() return this batch. Drops batches in flight, and requests.
  virtual void Seek(int64_t epoch, int64_t step_in_epoch) = 0;
  virtual std::vector<BadImage> bad_images() const = 0;  // so far, by sample
  virtual CacheStatistics cache_statistics() const = 0;  // data/image_cache.h
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LOADER_H_
