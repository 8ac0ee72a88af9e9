#include "dist/transport/frames/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/random.h"
#include "core/storage/crc32c.h"

namespace ringtail {
namespace {

using Bytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader DataFrame() {
  return {.kind = FrameKind::kData,
          .granted = true,
          .number = 0x0506,
          .generation = 0x01020304,
          .payload_bytes = 0x11121314,
          .label = {.tag = {.collective = 0x2122232425262728,
                            .step = 0x31323334,
                            .segment = 0x41424344},
                    .check = 0x5152535455565758},
          .message_bytes = 0x6162636465666768,
          .offset = 0x0172737475767778,
          .payload_crc = 0x81828384};
}

// With the checksum that its content has.
void Seal(Bytes* bytes) {
  const uint32_t crc = Crc32c(std::span(*bytes).first(60));
  std::memcpy(bytes->data() + 60, &crc, sizeof(crc));
}

TEST(Frame, LiesInMemoryAsItIsDrawn) {
  const Bytes bytes = EncodeHeader(DataFrame());
  const uint8_t expected[60] = {
      'R',  'T',  'F',  '1',  2,    1,    6,    5,    4,    3,    2,    1,    0x14, 0x13, 0x12,
      0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31, 0x44, 0x43,
      0x42, 0x41, 0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51, 0x68, 0x67, 0x66, 0x65, 0x64,
      0x63, 0x62, 0x61, 0x78, 0x77, 0x76, 0x75, 0x74, 0x73, 0x72, 0x01, 0x84, 0x83, 0x82, 0x81};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + 60, sizeof(crc));
  EXPECT_EQ(crc, Crc32c(std::as_bytes(std::span(expected))));
}

TEST(Frame, IsReadAsItWasWritten) {
  const Bytes bytes = EncodeHeader(DataFrame());
  const StatusOr<FrameHeader> header = DecodeHeader(bytes);
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(EncodeHeader(*header), bytes);
  EXPECT_EQ(header->label.tag, DataFrame().label.tag);
  EXPECT_TRUE(header->granted);
}

TEST(Frame, EveryFlippedBitIsSeen) {
  const Bytes bytes = EncodeHeader(DataFrame());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(DecodeHeader(flipped).status().code(), StatusCode::kDataLoss) << bit;
  }
}

TEST(Frame, WhatNoFrameSaysIsRefusedEvenWithTheRightChecksum) {
  const auto refused = [](const FrameHeader& header, const auto& change) {
    Bytes bytes = EncodeHeader(header);
    change(bytes);
    Seal(&bytes);
    return !DecodeHeader(bytes).ok();
  };
  const auto nothing = [](Bytes&) {};
  EXPECT_FALSE(refused(DataFrame(), nothing));
  for (const int kind : {0, 8, 255}) {
    EXPECT_TRUE(refused(DataFrame(), [&](Bytes& bytes) { bytes[4] = std::byte(kind); }));
  }
  EXPECT_TRUE(refused(DataFrame(), [](Bytes& bytes) { bytes[3] = std::byte{'2'}; }));
  EXPECT_TRUE(refused(DataFrame(), [](Bytes& bytes) { bytes[5] = std::byte{2}; }));
  EXPECT_TRUE(refused({.kind = FrameKind::kGrant, .granted = true}, nothing));
  EXPECT_TRUE(refused({.kind = FrameKind::kCredit, .payload_bytes = 1}, nothing));
  EXPECT_TRUE(refused({.kind = FrameKind::kHello, .payload_bytes = 4097}, nothing));
  // Beyond the end of the message, also where a sum would overflow.
  FrameHeader header = DataFrame();
  header.offset = header.message_bytes - header.payload_bytes + 1;
  EXPECT_TRUE(refused(header, nothing));
  header.offset = UINT64_MAX;
  EXPECT_TRUE(refused(header, nothing));
}

// Garbage, and frames with some bytes of garbage and a right checksum: an error, or a header that
// is written just as it was read.
TEST(Frame, RandomHeadersAreRefusedOrExact) {
  Rng random(RngKey(11));
  int accepted = 0, refused = 0;
  for (int trial = 0; trial < 100'000; ++trial) {
    Bytes bytes = EncodeHeader(DataFrame());
    const uint64_t changes = trial % 2 == 0 ? kFrameHeaderBytes : random.Below(4);
    for (uint64_t i = 0; i < changes; ++i) {
      const uint64_t at = changes == kFrameHeaderBytes ? i : random.Below(kFrameHeaderBytes);
      bytes[at] = static_cast<std::byte>(random.Below(256));
    }
    if (trial % 4 != 2) Seal(&bytes);
    const StatusOr<FrameHeader> header = DecodeHeader(bytes);
    if (header.ok()) {
      ++accepted;
      ASSERT_EQ(EncodeHeader(*header), bytes);
      ASSERT_LE(header->offset + header->payload_bytes, header->message_bytes);
    } else {
      ++refused;
      ASSERT_EQ(header.status().code(), StatusCode::kDataLoss);
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 50'000);
}

}  // namespace
}  // namespace ringtail
