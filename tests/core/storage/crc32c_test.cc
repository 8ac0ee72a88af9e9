#include "core/storage/crc32c.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/random.h"

namespace ringtail {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
TEST(Crc32cTest, MatchesPublishedVectors) {
  std::vector<std::byte> ascending(32), descending(32);
  for (size_t i = 0; i < 32; ++i) {
    ascending[i] = static_cast<std::byte>(i);
    descending[i] = static_cast<std::byte>(31 - i);
  }
  for (auto* crc : {&internal::Crc32cTable, &internal::Crc32cSse42}) {
    if (crc == &internal::Crc32cSse42 && !internal::HasSse42()) continue;
    EXPECT_EQ(crc(Bytes("123456789"), 0), 0xe3069283u);
    EXPECT_EQ(crc(std::vector<std::byte>(32, std::byte{0}), 0), 0x8a9136aau);
    EXPECT_EQ(crc(std::vector<std::byte>(32, std::byte{0xFF}), 0), 0x62a8ab43u);
    EXPECT_EQ(crc(ascending, 0), 0x46dd794eu);
    EXPECT_EQ(crc(descending, 0), 0x113fdb5cu);
    EXPECT_EQ(crc({}, 0), 0u);
  }
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xe3069283u);
}

TEST(Crc32cTest, TableAndProcessorAgreeAtEveryLengthAndAlignment) {
  if (!internal::HasSse42()) return;  // the vectors above have tested the only implementation
  Rng rng(RngKey(1).With(kTestStream));
  std::vector<std::byte> data(300);
  for (std::byte& byte : data) byte = static_cast<std::byte>(rng.Bits());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; begin + length <= data.size(); ++length) {
      const auto part = std::span<const std::byte>(data).subspan(begin, length);
      const uint32_t previous = rng.Bits();
      ASSERT_EQ(internal::Crc32cTable(part, previous), internal::Crc32cSse42(part, previous))
          << begin << " " << length;
    }
  }
}

TEST(Crc32cTest, TableAndProcessorAgreeOnLongData) {
  if (!internal::HasSse42()) return;
  Rng rng(RngKey(2).With(kTestStream));
  std::vector<std::byte> data(20'000);
  for (std::byte& byte : data) byte = static_cast<std::byte>(rng.Bits());
  for (const size_t block : {1024, 3072, 6144, 9216, 18432}) {
    for (size_t length = block - 9; length <= block + 9; ++length) {
      const auto part = std::span<const std::byte>(data).subspan(length % 8, length);
      const uint32_t previous = rng.Bits();
      ASSERT_EQ(internal::Crc32cTable(part, previous), internal::Crc32cSse42(part, previous))
          << length;
    }
  }
}

TEST(Crc32cTest, ContinuesFromPart) {
  const std::string_view text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32c(Bytes(text.substr(cut)), Crc32c(Bytes(text.substr(0, cut)))),
              Crc32c(Bytes(text)));
  }
}

TEST(Crc32cTest, HexIsStrict) {
  EXPECT_EQ(Crc32cToHex(0x0000beefu), "0000beef");
  EXPECT_EQ(Crc32cFromHex("e3069283"), 0xe3069283u);
  for (const char* bad :
       {"", "e306928", "e30692833", "E3069283", "0xe30692", "e306928 ", "g3069283"}) {
    EXPECT_FALSE(Crc32cFromHex(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace ringtail
