#include "dist/parameter_server/wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

const ServerMessage kPush{.kind = MessageKind::kPush,
                          .finite = false,
                          .applied = true,
                          .statistics = true,
                          .reason = 3,
                          .clock = 7,
                          .version = 1 << 20,
                          .first = int64_t{1} << 40,
                          .rows = 32,
                          .correct = 31,
                          .loss_sum = 12.5,
                          .norm = 0.1,
                          .bytes = 1 << 30,
                          .worker = 5};

TEST(MessagesTest, AreReadAsTheyWereWritten) {
  EXPECT_EQ(DecodeMessage(EncodeMessage(kPush)).value(), kPush);
  for (const MessageKind kind :
       {MessageKind::kPull, MessageKind::kAsk, MessageKind::kReturn, MessageKind::kLeave,
        MessageKind::kWeights, MessageKind::kJudged, MessageKind::kTicket, MessageKind::kRoundOver,
        MessageKind::kEnd, MessageKind::kState, MessageKind::kSnapshot, MessageKind::kAway,
        MessageKind::kLost, MessageKind::kHave}) {
    EXPECT_EQ(DecodeMessage(EncodeMessage({.kind = kind}))->kind, kind);
  }
}

TEST(MessagesTest, LieAsDrawn) {
  const EncodedMessage bytes = EncodeMessage(kPush);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 4), "RTPS");
  const auto at = [&](size_t i) { return static_cast<int>(bytes[i]); };
  EXPECT_EQ(at(4), 2);
  EXPECT_EQ(at(5), 2);
  EXPECT_EQ(at(6), 2 | 4);  // applied, with statistics, not finite
  EXPECT_EQ(at(7), 3);
  EXPECT_EQ(at(8), 7);
  EXPECT_EQ(at(18), 1 << 4);  // 2^20
  EXPECT_EQ(at(29), 1);       // 2^40
  EXPECT_EQ(at(32), 32);
  EXPECT_EQ(at(36), 31);
  EXPECT_EQ(at(59), 1 << 6);  // 2^30
  EXPECT_EQ(at(64), 5);
}

TEST(MessagesTest, WhatIsWrongIsSaid) {
  const auto error = [](ServerMessage message) {
    return DecodeMessage(EncodeMessage(message)).status().message();
  };
  EXPECT_THAT(error({.clock = -1}), HasSubstr("clock -1"));
  EXPECT_THAT(error({.version = -2}), HasSubstr("version -2"));
  EXPECT_THAT(error({.first = -3}), HasSubstr("row -3"));
  EXPECT_THAT(error({.rows = -1}), HasSubstr("-1 rows"));
  EXPECT_THAT(error({.rows = 3, .correct = 4}), HasSubstr("3 rows, 4 of them correct"));
  EXPECT_THAT(error({.bytes = uint64_t{1} << 41}), HasSubstr("bytes"));
  EncodedMessage bytes = EncodeMessage(kPush);
  bytes[5] = std::byte{9};
  EXPECT_THAT(DecodeMessage(bytes).status().message(), HasSubstr("kind 9"));
  bytes = EncodeMessage(kPush);
  bytes[6] = std::byte{8};
  EXPECT_THAT(DecodeMessage(bytes).status().message(), HasSubstr("flags 8"));
  bytes[4] = std::byte{1};
  EXPECT_THAT(DecodeMessage(bytes).status().message(), HasSubstr("version 1 "));
  bytes[0] = std::byte{0};
  EXPECT_THAT(DecodeMessage(bytes).status().message(), HasSubstr("begins with"));
}

// Nothing that passes has numbers that could overflow or point before the beginning.
TEST(MessagesTest, NoBytesAreBelieved) {
  Rng random(RngKey(1));
  for (int i = 0; i < 100'000; ++i) {
    EncodedMessage bytes = EncodeMessage(kPush);
    for (int changes = 0; changes < 3; ++changes) {
      bytes[random.Below(kServerMessageBytes)] = static_cast<std::byte>(random.Below(256));
    }
    const auto message = DecodeMessage(bytes);
    if (!message.ok()) continue;
    EXPECT_GE(std::min({message->clock, message->version, message->first}), 0);
    EXPECT_LE(message->correct, message->rows);
    EXPECT_GE(message->correct, 0);
  }
}

}  // namespace
}  // namespace ringtail
