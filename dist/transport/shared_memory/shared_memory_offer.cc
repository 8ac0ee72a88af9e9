#include "dist/transport/shared_memory/shared_memory_offer.h"

#include <string>

#include "core/check.h"
#include "dist/wire_record.h"

namespace ringtail {

std::array<std::byte, kOfferBytes> EncodeOffer(const std::optional<SharedMemoryOffer>& offer) {
  std::array<std::byte, kOfferBytes> record{};
  if (!offer) return record;
  RT_CHECK(offer->segment.key.size() == kSegmentKeyBytes, "a segment that is offered has a key");
  WireWriter(record)
      .Put(uint32_t{1})
      .Put(static_cast<int32_t>(offer->segment.file))
      .Put(offer->segment.pid)
      .PutBytes(std::as_bytes(std::span(offer->segment.key)))
      .Put(offer->offset)
      .Put(offer->ring_bytes);
  return record;
}

std::optional<SharedMemoryOffer> DecodeOffer(std::span<const std::byte, kOfferBytes> record) {
  WireReader reader(record);
  if (reader.Get<uint32_t>() == 0) return std::nullopt;
  SharedMemoryOffer offer;
  offer.segment.file = reader.Get<int32_t>();
  offer.segment.pid = reader.Get<int64_t>();
  const std::span<const std::byte> key = reader.GetBytes(kSegmentKeyBytes);
  offer.segment.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  offer.offset = reader.Get<uint64_t>();
  offer.ring_bytes = reader.Get<uint64_t>();
  return offer;
}

}  // namespace ringtail
