// Decoded images kept in memory, so that later epochs skip reading and decoding.
//
// It keeps whole images as u8 RGB, one per requested (sample, denominator), and their header (which
// determines the crop without reading the file). The reasons:
//
// - The bits of a batch must not depend on the cache. A rectangle of the whole image equals the
//   region that would have been decoded (data/decoding/decode.h), so either source gives the same
//   row.
// - Images are kept at the scale of their crops: a 500 x 375 photograph at 1/2 takes 140 KB.
// - Encoded bytes are left to the operating system's page cache, which keeps them once per machine
//   and drops them under memory pressure; reading them from there costs a tenth of decoding them.
// - Once full, it evicts nothing: epochs visit every sample once, and under that pattern evicting
//   the oldest would drop each image just before its use. With room for half of the images, it
//   serves half of them.
//
// Thread-safety: any thread. A found Image stays valid and unchanged as long as the cache lives.
#ifndef RINGTAIL_DATA_IMAGE_CACHE_H_
#define RINGTAIL_DATA_IMAGE_CACHE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/mutex.h"
#include "data/decoding/image.h"
#include "data/decoding/image_guard.h"

namespace ringtail {

struct CacheStatistics {
  int64_t hits = 0, misses = 0;   // images asked for
  int64_t images = 0, bytes = 0;  // held
};

class ImageCache {
 public:
  explicit ImageCache(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // nullopt if no image of this sample is held.
  std::optional<ImageHeader> FindHeader(int64_t sample);
  const Image* Find(int64_t sample, int32_t denominator);  // null if not held

  // Reserves `bytes` of the budget for an image that is about to be decoded; false if the budget is
  // exhausted. Must be followed by Insert, or by Release if decoding failed.
  bool Reserve(int64_t bytes);
  void Release(int64_t bytes);
  // Takes a whole image whose size has been reserved and returns the cached one: another thread's
  // (with the same pixels) if it was faster. Null, and `image` unchanged, if the cached images of
  // this sample have another header: the file has been replaced since, and the new one is not
  // cached.
  const Image* Insert(int64_t sample, const ImageHeader& header, int32_t denominator, Image* image);

  CacheStatistics statistics() const;

 private:
  struct Entry {
    ImageHeader header;
    std::map<int32_t, Image> images;  // by denominator; a map's values stay where they are
  };

  const int64_t budget_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<int64_t, Entry> entries_ RT_GUARDED_BY(mutex_);  // by sample
  int64_t reserved_bytes_ RT_GUARDED_BY(mutex_) = 0;  // of images held and of those being decoded
  CacheStatistics statistics_ RT_GUARDED_BY(mutex_);
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_IMAGE_CACHE_H_
