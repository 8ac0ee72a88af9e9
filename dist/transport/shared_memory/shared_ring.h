// A ring of bytes in memory that two processes share: one writes, the other reads.
//
//   RingHeader   head: bytes ever written   tail: bytes ever read   writer_waits
//
//   data      tail % size        head % size          head - tail: bytes that wait to be read
//   +---------+==================+---------+          size - (head - tail): room
//   |  free   | written, unread  |  free   |          a range that reaches the end continues at the
//   +---------+==================+---------+          beginning: two pieces
//
// What is written counts from Publish on, all of it at once: a writer that dies before leaves no
// trace. Each end keeps its own count to itself and only tells the other; what the other tells is
// checked (is there no more than fits?) and otherwise not believed. So whatever a peer writes into
// the header, no byte outside of the data is read or written; and what it writes into the data is
// for the reader of the bytes to check, which copies first and looks then.
//
// A writer without room says so (writer_waits), looks once more, and leaves; the reader rings it
// when half of the ring is free again: not for every byte, because each time may cost a change of
// threads.
//
// Thread-safety: one thread at a time writes, one reads. Cost: a copy into the ring, and no lock.
// Source: L. Lamport, "Specifying Concurrent Program Modules", 1983.
#ifndef RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_RING_H_
#define RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"

namespace ringtail {

// Lies in shared memory, zero at first. A line of the cache for each that writes.
struct RingHeader {
  alignas(64) std::atomic<uint64_t> head;          // the writer's
  alignas(64) std::atomic<uint64_t> tail;          // the reader's
  alignas(64) std::atomic<uint32_t> writer_waits;  // 1: ring me when there is room
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class RingWriter {
 public:
  RingWriter() = default;
  RingWriter(RingHeader* header, std::span<std::byte> data) : header_(header), data_(data) {}

  // Bytes that may be put in now. DataLoss: the reader has written nonsense.
  StatusOr<size_t> Room() const;
  // Has itself rung when half of the ring is free. Look at Room again afterwards.
  void AskForRoom() { header_->writer_waits.store(1); }
  // At most Room() of them until Publish.
  void Put(std::span<const std::byte> bytes);
  void Publish() { header_->head.store(head_, std::memory_order_release); }

 private:
  RingHeader* header_ = nullptr;
  std::span<std::byte> data_;  // size: a power of two
  uint64_t head_ = 0;          // with what is not yet published
};

class RingReader {
 public:
  using Pieces = std::array<std::span<const std::byte>, 2>;

  RingReader() = default;
  RingReader(RingHeader* header, std::span<const std::byte> data) : header_(header), data_(data) {}

  // Bytes that may be read now. DataLoss: the writer has written nonsense.
  StatusOr<size_t> Available() const;
  // The next `bytes` of them, in place; their writer can still change them.
  Pieces Next(size_t bytes) const;
  // Gives the next `bytes` back. True: the writer is to be rung.
  bool Consume(size_t bytes);

 private:
  RingHeader* header_ = nullptr;
  std::span<const std::byte> data_;
  uint64_t tail_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_SHARED_RING_H_
