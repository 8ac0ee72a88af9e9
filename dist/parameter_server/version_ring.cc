#include "dist/parameter_server/version_ring.h"

#include <algorithm>

#include "core/check.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {

VersionRing::VersionRing(int64_t elements, int slots, Format format)
    : elements_(elements), format_(format), slots_(slots) {
  RT_CHECK(elements >= 0 && slots >= 1, "a ring has a slot");
}

void VersionRing::Keep(int64_t version, std::span<const float> values) {
  RT_CHECK(static_cast<int64_t>(values.size()) == elements_, "the weights of the whole shard");
  if (const Slot* there = Find(version)) {
    ++slots_[there - slots_.data()].holders;
    return;
  }
  Slot* slot = FreeSlot();
  slot->version = version;
  slot->holders = 1;
  const bool floats = format_ == Format::kFloat;
  const size_t bytes = elements_ * (floats ? sizeof(float) : sizeof(uint16_t));
  if (slot->values.size_bytes() != bytes) slot->values = AlignedBuffer(bytes);
  if (floats) {
    std::ranges::copy(values, slot->values.floats().begin());
  } else {
    RT_KERNEL(ToBf16, values.data(), elements_, reinterpret_cast<uint16_t*>(slot->values.data()));
  }
}

void VersionRing::Release(int64_t version) {
  if (const Slot* there = Find(version)) --slots_[there - slots_.data()].holders;
}

void VersionRing::Read(int64_t version, int64_t begin, std::span<float> out) const {
  const Slot* slot = Find(version);
  const auto count = static_cast<int64_t>(out.size());
  RT_CHECK(slot != nullptr && begin >= 0 && begin + count <= elements_,
           "elements of a version that is there");
  if (format_ == Format::kFloat) {
    std::ranges::copy(slot->values.floats().subspan(begin, out.size()), out.begin());
    return;
  }
  std::ranges::fill(out, 0.0F);
  const auto* values = reinterpret_cast<const uint16_t*>(slot->values.data()) + begin;
  RT_KERNEL(AddBf16, values, count, 1.0F, out.data());
}

int64_t VersionRing::bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += static_cast<int64_t>(slot.values.size_bytes());
  return bytes;
}

const VersionRing::Slot* VersionRing::Find(int64_t version) const {
  const auto at = std::ranges::find_if(
      slots_, [&](const Slot& slot) { return slot.holders > 0 && slot.version == version; });
  return at == slots_.end() ? nullptr : &*at;
}

// A free one, or else that of the oldest version.
VersionRing::Slot* VersionRing::FreeSlot() {
  Slot* oldest = slots_.data();
  for (Slot& slot : slots_) {
    if (slot.holders == 0) return &slot;
    if (slot.version < oldest->version) oldest = &slot;
  }
  ++given_way_;
  return oldest;
}

}  // namespace ringtail
