#include "dist/transport/door/opening_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/dist/membership/join_ranks.h"

namespace ringtail {
namespace {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A ClientHello of 200 bytes, as far as it is looked at.
std::string TlsHello() { return std::string("\x16\x03\x01\x00\xC8\x01", 6); }

TEST(OpeningBytes, APrefaceIsAwaitedByteByByte) {
  for (size_t bytes = 0; bytes < kPreface.size(); ++bytes) {
    EXPECT_EQ(OpeningBytes(kPreface.substr(0, bytes), false), bytes + 1);
  }
  EXPECT_EQ(OpeningBytes(kPreface, false), kPreface.size());
}

TEST(OpeningBytes, AWrongByteAnywhereIsAStrangers) {
  for (size_t i = 0; i < kPreface.size(); ++i) {
    std::string wrong = kPreface;
    wrong[i] ^= 1;
    EXPECT_EQ(OpeningBytes(wrong, false), 0U);
    EXPECT_EQ(OpeningBytes(wrong.substr(0, i + 1), false), 0U);
  }
}

TEST(OpeningBytes, ATlsHelloIsAwaitedToTheEndOfItsRecord) {
  const std::string hello = TlsHello();
  for (size_t bytes = 0; bytes < hello.size(); ++bytes) {
    EXPECT_EQ(OpeningBytes(hello.substr(0, bytes), true), bytes + 1);
  }
  EXPECT_EQ(OpeningBytes(hello, true), 205U);
  EXPECT_EQ(OpeningBytes(hello + std::string(18, 'x'), true), 205U);
}

TEST(OpeningBytes, OtherRecordsAreStrangers) {
  const std::string hello = TlsHello();
  const auto with = [&](size_t i, char byte) {
    std::string wrong = hello;
    wrong[i] = byte;
    return OpeningBytes(wrong, true);
  };
  EXPECT_EQ(with(0, 23), 0U);      // application data
  EXPECT_EQ(with(1, 2), 0U);       // SSL 2
  EXPECT_EQ(with(2, 5), 0U);       // no version that there is
  EXPECT_EQ(with(3, '\x41'), 0U);  // more than a record holds
  EXPECT_EQ(with(4, '\x03'), 0U);  // less than a handshake message has
  EXPECT_EQ(with(5, 2), 0U);       // a ServerHello
  EXPECT_EQ(with(2, 4), 205U);     // but any version of today
}

TEST(OpeningBytes, NeitherIsTheOther) {
  EXPECT_EQ(OpeningBytes(kPreface, true), 0U);
  EXPECT_EQ(OpeningBytes(TlsHello(), false), 0U);
  EXPECT_TRUE(LooksLikeTls(TlsHello()));
  EXPECT_FALSE(LooksLikeTls(kPreface));
  EXPECT_FALSE(LooksLikeTls("\x16"));
  for (int kind = 0; kind < 4; ++kind) {
    EXPECT_EQ(OpeningBytes(Garbage(kind).substr(0, kOpeningBytes), false), 0U) << kind;
  }
}

}  // namespace
}  // namespace ringtail
