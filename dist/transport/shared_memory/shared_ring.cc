#include "dist/transport/shared_memory/shared_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringtail {

StatusOr<size_t> RingWriter::Room() const {
  const uint64_t used = head_ - header_->tail.load();
  if (used > data_.size()) {
    return DataLoss(fmt::format("{} bytes to be read in a ring of {}", used, data_.size()));
  }
  return data_.size() - used;
}

void RingWriter::Put(std::span<const std::byte> bytes) {
  const size_t at = head_ & (data_.size() - 1);
  const size_t first = std::min(bytes.size(), data_.size() - at);
  if (first > 0) std::memcpy(data_.data() + at, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(data_.data(), bytes.data() + first, bytes.size() - first);
  head_ += bytes.size();
}

StatusOr<size_t> RingReader::Available() const {
  const uint64_t available = header_->head.load(std::memory_order_acquire) - tail_;
  if (available > data_.size()) {
    return DataLoss(fmt::format("{} bytes written in a ring of {}", available, data_.size()));
  }
  return available;
}

RingReader::Pieces RingReader::Next(size_t bytes) const {
  const size_t at = tail_ & (data_.size() - 1);
  const size_t first = std::min(bytes, data_.size() - at);
  return {data_.subspan(at, first), data_.subspan(0, bytes - first)};
}

bool RingReader::Consume(size_t bytes) {
  tail_ += bytes;
  header_->tail.store(tail_);
  if (header_->writer_waits.load() == 0) return false;
  const uint64_t unread = header_->head.load() - tail_;
  if (unread > data_.size() / 2) return false;
  header_->writer_waits.store(0);
  return true;
}

}  // namespace ringtail
