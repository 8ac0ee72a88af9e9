// Fixed records: byte order, and the check of their length.
#include "dist/wire_record.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace ringtail {
namespace {

TEST(WireRecord, IsLittleEndianWithoutGaps) {
  std::array<std::byte, 16> record{};
  WireWriter(record)
      .Put(uint8_t{0x11})
      .Put(uint16_t{0x3322})
      .Put(int32_t{-2})
      .PutBytes(std::array{std::byte{0xAA}})
      .Put(uint64_t{0x0807060504030201});
  const std::array<uint8_t, 16> expected = {0x11, 0x22, 0x33, 0xFE, 0xFF, 0xFF, 0xFF, 0xAA,
                                            1,    2,    3,    4,    5,    6,    7,    8};
  for (size_t i = 0; i < record.size(); ++i) {
    EXPECT_EQ(record[i], std::byte{expected[i]}) << i;
  }
  WireReader reader(record);
  EXPECT_EQ(reader.Get<uint8_t>(), 0x11);
  EXPECT_EQ(reader.Get<uint16_t>(), 0x3322);
  EXPECT_EQ(reader.Get<int32_t>(), -2);
  EXPECT_EQ(reader.GetBytes(1)[0], std::byte{0xAA});
  EXPECT_EQ(reader.Get<uint64_t>(), 0x0807060504030201);
}

TEST(WireRecordDeathTest, HasRoomForItsFields) {
  std::array<std::byte, 3> record{};
  EXPECT_DEATH(WireWriter(record).Put(uint32_t{1}), "room for its fields");
  EXPECT_DEATH(WireReader(record).Get<uint32_t>(), "all of its fields");
}

}  // namespace
}  // namespace ringtail
