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
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "data/image_cache.h"

namespace ringtail {

struct BadImage {
  int64_t sample = 0;
  std::string key, reason;  // "truncated after 48 of 96 rows"
};

enum class LoaderMode {
  kTrain,            // shuffled by (seed, epoch), random crops, endless, whole batches only
  kEvaluate,         // in list order, centre crop, one pass, last batch padded with label -1
  kEvaluateFlipped,  // the same, mirrored
};

struct LoaderOptions {
  LoaderMode mode = LoaderMode::kTrain;
  int64_t batch = 64;
  int64_t image_size = 128;
  uint64_t seed = 1;
  // The share of this rank: rows [first_row, first_row + batch) of each global batch of
  // `global_batch` rows. 0: the batch is the whole.
  int64_t first_row = 0, global_batch = 0;
  // Samples that the user knows to be bad already: they are left out without a word.
  std::vector<int64_t> known_bad = {};
};

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

// OK, or DataLoss with a summary if `bad` is more than the policy allows among `total` images, or
// all of them: no policy makes a run out of nothing.
Status CheckBadImages(const std::vector<BadImage>& bad, int64_t total,
                      const BadImagesConfig& config);

// Looks at every sample: reads the file and its header and, with `decode`, all of its pixels. In
// parallel, result by sample index. Says which images cannot be used and why. `stop` is asked
// before each image, by any thread; once it says true the result is Cancelled. `fingerprint` (may
// be null) becomes the sum of ImageFingerprint (data/manifest.h) over those that can be used.
StatusOr<std::vector<BadImage>> ScanImages(const Dataset& dataset,
                                           const std::vector<int64_t>& indices,
                                           const DataConfig& config, bool decode,
                                           const std::function<bool()>& stop = {},
                                           uint64_t* fingerprint = nullptr);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LOADER_H_
