#include "dist/compression/sparse_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "dist/compression/narrow_float.h"

namespace ringtail {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
void Store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
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
  RT_CHECK(count <= layout.capacity, "no more entries than there is room for");
  RT_CHECK(static_cast<int64_t>(to.size()) == layout.bytes(), "room for all entries");
  if (layout.capacity == 0) return;
  std::byte* place = to.data();
  std::byte* value = to.data() + 4 * layout.capacity;
  std::memcpy(place, places.data(), 4 * count);
  std::memset(place + 4 * count, 0, 4 * (layout.capacity - count));
  for (int64_t i = 0; i < count; ++i, value += layout.value_bytes()) {
    switch (layout.format) {
      case ValueFormat::kFloat:
        Store(value, a[places[i]]);
        break;
      case ValueFormat::kHalf:
        Store(value, HalfFromFloat(a[places[i]]));
        break;
      case ValueFormat::kBfloat16:
        Store(value, Bfloat16FromFloat(a[places[i]]));
        break;
    }
  }
  std::memset(value, 0, layout.value_bytes() * (layout.capacity - count));
}

Status CheckEntries(const SparseLayout& layout, int64_t count, int64_t elements,
                    std::span<const std::byte> from) {
  RT_CHECK(count >= 0 && count <= layout.capacity, "no more entries than there is room for");
  RT_CHECK(static_cast<int64_t>(from.size()) == layout.bytes(), "room for all entries");
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

int32_t PlaceOf(const SparseLayout& layout, int64_t entry, std::span<const std::byte> from) {
  RT_CHECK(entry < layout.capacity, "no more entries than there is room for");
  return Load<int32_t>(&from[4 * entry]);
}

float ValueOf(const SparseLayout& layout, int64_t entry, std::span<const std::byte> from) {
  const std::byte* value = &from[4 * layout.capacity + layout.value_bytes() * entry];
  switch (layout.format) {
    case ValueFormat::kFloat:
      return Load<float>(value);
    case ValueFormat::kHalf:
      return FloatFromHalf(Load<uint16_t>(value));
    case ValueFormat::kBfloat16:
      return FloatFromBfloat16(Load<uint16_t>(value));
  }
  RT_CHECK(false, "every format has values");
}

void AddEntries(const SparseLayout& layout, int64_t count, std::span<const std::byte> from,
                float scale, std::span<float> sum) {
  for (int64_t i = 0; i < count; ++i) {
    sum[PlaceOf(layout, i, from)] += scale * ValueOf(layout, i, from);
  }
}

}  // namespace ringtail
