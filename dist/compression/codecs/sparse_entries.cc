#include "dist/compression/codecs/sparse_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte by byte");

// Values start at a multiple of 4 bytes, since payloads start at one of 8 (codec.h).
void WriteValues(ValueFormat format, std::span<const float> values, std::byte* to) {
  const int64_t n = std::ssize(values);
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  switch (format) {
    case ValueFormat::kFloat:
      if (n > 0) std::memcpy(to, values.data(), values.size_bytes());
      break;
    case ValueFormat::kHalf:
      RT_KERNEL(ToFp16)(values.data(), n, 1, halves);
      break;
    case ValueFormat::kBfloat16:
      RT_KERNEL(ToBf16)(values.data(), n, halves);
      break;
  }
}

int32_t PlaceOf(const SparseLayout& layout, int64_t entry, std::span<const std::byte> from) {
  RT_CHECK(entry < layout.capacity, "an entry lies within the capacity");
  int32_t place;
  std::memcpy(&place, &from[4 * entry], sizeof(place));
  return place;
}

// The values of the first `count` entries, as float32; valid until this thread's next call.
std::span<const float> ReadValues(const SparseLayout& layout, int64_t count,
                                  std::span<const std::byte> from) {
  static thread_local std::vector<float> values;
  values.assign(count, 0.0F);
  const std::span<const std::byte> tail = from.subspan(4 * layout.capacity);
  const auto* const halves = reinterpret_cast<const uint16_t*>(tail.data());
  switch (layout.format) {
    case ValueFormat::kFloat:
      if (count > 0) std::memcpy(values.data(), tail.data(), sizeof(float) * count);
      break;
    case ValueFormat::kHalf:
      RT_KERNEL(AddFp16)(halves, count, 1, values.data());
      break;
    case ValueFormat::kBfloat16:
      RT_KERNEL(AddBf16)(halves, count, 1, values.data());
      break;
  }
  return values;
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

const char* ValueFormatName(ValueFormat format) {
  switch (format) {
    case ValueFormat::kFloat:
      return "f32";
    case ValueFormat::kHalf:
      return "f16";
    case ValueFormat::kBfloat16:
      return "bf16";
  }
  RT_CHECK(false, "every format has a name");
}

void WriteEntries(const SparseLayout& layout, std::span<const float> a,
                  std::span<const int32_t> places, std::span<std::byte> to) {
  const auto count = static_cast<int64_t>(places.size());
  RT_CHECK(count <= layout.capacity, "entries fit the capacity");
  RT_CHECK(static_cast<int64_t>(to.size()) == layout.bytes(), "the bytes of all entries");
  if (layout.capacity == 0) return;
  // Codecs have no state, and the threads that encode live long: they reuse their scratch memory.
  static thread_local std::vector<float> values;
  values.clear();
  for (const int32_t place : places) values.push_back(a[place]);
  const std::span<std::byte> head = to.first(4 * layout.capacity), tail = to.subspan(head.size());
  if (count > 0) std::memcpy(head.data(), places.data(), places.size_bytes());
  std::ranges::fill(head.subspan(4 * count), std::byte{0});
  WriteValues(layout.format, values, tail.data());
  std::ranges::fill(tail.subspan(layout.value_bytes() * count), std::byte{0});
}

Status CheckEntries(const SparseLayout& layout, int64_t count, int64_t elements,
                    std::span<const std::byte> from) {
  RT_CHECK(count >= 0 && count <= layout.capacity, "entries fit the capacity");
  RT_CHECK(static_cast<int64_t>(from.size()) == layout.bytes(), "the bytes of all entries");
  int64_t before = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = PlaceOf(layout, i, from);
    if (place <= before || place >= elements) {
      return DataLoss(
          fmt::format("entry {} of a compressed gradient is for place {} of {}, after "
                      "one for place {}",
                      i, place, elements, before));
    }
    before = place;
  }
  const auto places = from.first(4 * layout.capacity), values = from.subspan(places.size());
  if (!AllZero(places.subspan(4 * count)) ||
      !AllZero(values.subspan(layout.value_bytes() * count))) {
    return DataLoss(
        fmt::format("a compressed gradient says that it has {} entries, and has more", count));
  }
  return OkStatus();
}

void ForEachEntry(const SparseLayout& layout, int64_t count, std::span<const std::byte> from,
                  const std::function<void(int64_t place, float value)>& visit) {
  const std::span<const float> values = ReadValues(layout, count, from);
  for (int64_t i = 0; i < count; ++i) visit(PlaceOf(layout, i, from), values[i]);
}

void AddEntries(const SparseLayout& layout, int64_t count, std::span<const std::byte> from,
                float scale, std::span<float> sum) {
  const std::span<const float> values = ReadValues(layout, count, from);
  for (int64_t i = 0; i < count; ++i) sum[PlaceOf(layout, i, from)] += scale * values[i];
}

}  // namespace ringtail
