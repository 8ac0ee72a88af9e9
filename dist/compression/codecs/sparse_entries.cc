#include "dist/compression/codecs/sparse_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/check.h"
#include "dist/compression/codecs/bit_stream.h"
#include "dist/compression/codecs/magnitude.h"
#include "dist/compression/codecs/payload.h"

namespace ringtail {
namespace {

// The bits of all upper parts, if lower parts have `low_bits`.
int64_t UpperBits(const SparseLayout& layout, int low_bits) {
  return layout.capacity + ((layout.elements - 1) >> low_bits);
}

// Upper parts are the ones of a bit field: entry i with the upper part u is bit u + i.
void WritePlaces(const SparseLayout& layout, std::span<const int32_t> places,
                 std::span<std::byte> upper, std::span<std::byte> lower) {
  const int low_bits = layout.low_bits();
  const uint32_t mask = (uint32_t{1} << low_bits) - 1;
  BitWriter low(lower);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<uint32_t>(places[i]);
    const size_t bit = (place >> low_bits) + i;
    upper[bit / 8] |= std::byte{1} << bit % 8;
    low.Append(place & mask, low_bits);
  }
}

Status ReadPlaces(const SparseLayout& layout, std::span<const std::byte> upper,
                  std::span<const std::byte> lower, std::vector<int32_t>* places) {
  const int low_bits = layout.low_bits();
  BitReader low(lower);
  places->clear();
  int64_t before = -1;
  for (int64_t byte = 0; byte < std::ssize(upper); ++byte) {
    for (uint32_t bits = std::to_integer<uint32_t>(upper[byte]); bits != 0; bits &= bits - 1) {
      const int64_t i = std::ssize(*places);
      if (i == layout.capacity) {
        return DataLoss(fmt::format("a sparse gradient has more than {} entries", i));
      }
      const int64_t high = 8 * byte + std::countr_zero(bits) - i;
      const int64_t place = (high << low_bits) + low.Take(low_bits);
      if (place <= before || place >= layout.elements) {
        return DataLoss(
            fmt::format("entry {} of a sparse gradient is for place {} of {}, after "
                        "one for place {}",
                        i, place, layout.elements, before));
      }
      places->push_back(static_cast<int32_t>(place));
      before = place;
    }
  }
  if (ClearFrom(lower, std::ssize(*places) * low_bits)) return OkStatus();
  return DataLoss(fmt::format("a sparse gradient of {} entries has more places", places->size()));
}

}  // namespace

int SparseLayout::low_bits() const {
  if (capacity == 0) return 0;
  const auto bits = [&](int b) { return capacity * b + UpperBits(*this, b); };
  int best = 0;
  while (bits(best + 1) < bits(best)) ++best;  // convex in b
  return best;
}

int64_t SparseLayout::value_bytes() const { return SparseValueBytes(format, capacity); }

int64_t SparseLayout::upper_bytes() const {
  return capacity == 0 ? 0 : BytesOfBits(UpperBits(*this, low_bits()));
}

int64_t SparseLayout::lower_bytes() const { return BytesOfBits(capacity * low_bits()); }

void WriteEntries(const SparseLayout& layout, std::span<const float> a,
                  std::span<const int32_t> places, std::span<std::byte> to) {
  RT_CHECK(std::ssize(places) <= layout.capacity, "entries fit the capacity");
  RT_CHECK(std::ssize(to) == layout.bytes(), "the bytes of all entries");
  // Codecs have no state, and the threads that encode live long: they reuse their scratch memory.
  static thread_local SparseEntries sent;
  const uint32_t least = LeastSent(layout.format, a, places);
  sent.places.clear();
  sent.values.clear();
  for (const int32_t place : places) {
    if (Magnitude(a[place]) < least) continue;
    sent.places.push_back(place);
    sent.values.push_back(a[place]);
  }
  std::ranges::fill(to, std::byte{0});
  WriteValues(layout.format, sent.values, to.first(layout.value_bytes()));
  WritePlaces(layout, sent.places, to.subspan(layout.value_bytes(), layout.upper_bytes()),
              to.last(layout.lower_bytes()));
}

Status ReadEntries(const SparseLayout& layout, std::span<const std::byte> from,
                   SparseEntries* entries) {
  if (std::ssize(from) != layout.bytes()) {
    return DataLoss(
        fmt::format("a sparse gradient has {} bytes, not {}", from.size(), layout.bytes()));
  }
  RT_RETURN_IF_ERROR(ReadPlaces(layout, from.subspan(layout.value_bytes(), layout.upper_bytes()),
                                from.last(layout.lower_bytes()), &entries->places));
  entries->values.resize(entries->places.size());
  return ReadValues(layout.format, from.first(layout.value_bytes()), entries->values);
}

Status AddEntries(const SparseLayout& layout, std::span<const std::byte> from, float scale,
                  std::span<float> sum) {
  static thread_local SparseEntries entries;
  RT_RETURN_IF_ERROR(ReadEntries(layout, from, &entries));
  for (size_t i = 0; i < entries.places.size(); ++i) {
    sum[entries.places[i]] += scale * entries.values[i];
  }
  return OkStatus();
}

}  // namespace ringtail
