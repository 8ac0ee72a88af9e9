// Fixed binary records: fields at fixed places, little-endian, for what is sent often or measured
// to the byte. (Control messages are protobuf.)
//
//   WireWriter(bytes).Put(uint32_t{7}).Put(uint64_t{9});
//   WireReader reader(bytes);   reader.Get<uint32_t>();  reader.Get<uint64_t>();
//
// The caller sees to it that the record has room for all fields: what a peer sends is checked for
// its size first. Thread-safety: none. Cost: as memcpy on a little-endian machine.
#ifndef RINGTAIL_DIST_WIRE_RECORD_H_
#define RINGTAIL_DIST_WIRE_RECORD_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/check.h"

namespace ringtail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "records are copied as they are in memory");

class WireWriter {
 public:
  explicit WireWriter(std::span<std::byte> record) : left_(record) {}

  template <std::integral T>
  WireWriter& Put(T value) {
    return PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  WireWriter& PutBytes(std::span<const std::byte> bytes) {
    RT_CHECK(bytes.size() <= left_.size(), "a record has room for its fields");
    std::ranges::copy(bytes, left_.begin());
    left_ = left_.subspan(bytes.size());
    return *this;
  }

 private:
  std::span<std::byte> left_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> record) : left_(record) {}

  template <std::integral T>
  T Get() {
    T value;
    const std::span<const std::byte> bytes = GetBytes(sizeof(T));
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> GetBytes(size_t bytes) {
    RT_CHECK(bytes <= left_.size(), "a record has all of its fields");
    const std::span<const std::byte> field = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return field;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_WIRE_RECORD_H_
