#include "data/image_cache.h"

#include <utility>

#include "core/check.h"

namespace ringtail {

std::optional<ImageHeader> ImageCache::FindHeader(int64_t sample) {
  MutexLock lock(&mutex_);
  const auto entry = entries_.find(sample);
  if (entry != entries_.end()) return entry->second.header;
  ++statistics_.misses;
  return std::nullopt;
}

const Image* ImageCache::Find(int64_t sample, int32_t denominator) {
  MutexLock lock(&mutex_);
  const auto entry = entries_.find(sample);
  if (entry != entries_.end()) {
    const auto image = entry->second.images.find(denominator);
    if (image != entry->second.images.end()) {
      ++statistics_.hits;
      return &image->second;
    }
  }
  ++statistics_.misses;
  return nullptr;
}

bool ImageCache::Reserve(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > budget_bytes_ - reserved_bytes_) return false;
  reserved_bytes_ += bytes;
  return true;
}

void ImageCache::Release(int64_t bytes) {
  MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
  RT_CHECK(reserved_bytes_ >= 0, "more of the image cache was released than reserved");
}

const Image* ImageCache::Insert(int64_t sample, const ImageHeader& header, int32_t denominator,
                                Image* image) {
  const auto bytes = static_cast<int64_t>(image->pixels.size());
  MutexLock lock(&mutex_);
  RT_CHECK(bytes <= reserved_bytes_, "an image was cached without a reservation");
  Entry& entry = entries_.try_emplace(sample, Entry{header, {}}).first->second;
  const bool replaced = entry.header != header;
  const auto held = entry.images.find(denominator);
  if (replaced || held != entry.images.end()) {
    reserved_bytes_ -= bytes;
    return replaced ? nullptr : &held->second;
  }
  ++statistics_.images;
  statistics_.bytes += bytes;
  return &entry.images.emplace(denominator, std::move(*image)).first->second;
}

CacheStatistics ImageCache::statistics() const {
  MutexLock lock(&mutex_);
  return statistics_;
}

}  // namespace ringtail
