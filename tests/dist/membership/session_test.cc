#include "dist/membership/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/membership/conversation.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/frames/keyed_hash.h"

namespace ringtail {
namespace {

using Side = Session::Side;

std::string Hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Against Python: hmac.new(b"key", struct.pack("<Q", 2) + b"ab" + struct.pack("<Q", 1) + b"c",
// "sha256")
TEST(KeyedHash, IsHmacSha256OverPartsWithTheirLengths) {
  EXPECT_EQ(Hex(KeyedHash("key", {"ab", "c"})),
            "8c568fcbf2953946832018520a5eb5a6a63fe007671cf14e924b528f355076d0");
  EXPECT_NE(KeyedHash("key", {"ab", "c"}), KeyedHash("key", {"a", "bc"}));
  EXPECT_NE(KeyedHash("key", {"ab", "c"}), KeyedHash("kez", {"ab", "c"}));
  EXPECT_EQ(KeyedHash("", {}).size(), kKeyedHashBytes);
}

TEST(EqualInConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
}

TEST(RandomBytes, AreNewEachTime) {
  EXPECT_EQ(RandomBytes(16).size(), 16U);
  EXPECT_NE(RandomBytes(16), RandomBytes(16));
}

TEST(Session, BothSidesProveTheTokenWithEveryMessage) {
  Session rank(Side::kRank, "token", "hello", "challenge");
  Session rendezvous(Side::kRendezvous, "token", "hello", "challenge");
  for (const std::string body : {"one", "", "three"}) {
    EXPECT_TRUE(rendezvous.Check(body, rank.Seal(body)));
    EXPECT_TRUE(rank.Check(body, rendezvous.Seal(body)));
  }
}

TEST(Session, RefusesWhatIsNotTheNextMessageOfTheOtherSide) {
  const auto refuses = [](const std::string& token, const std::string& hello,
                          const std::string& challenge, Side side) {
    Session rendezvous(Side::kRendezvous, "token", "hello", "challenge");
    Session other(side, token, hello, challenge);
    return !rendezvous.Check("body", other.Seal("body"));
  };
  EXPECT_FALSE(refuses("token", "hello", "challenge", Side::kRank));
  EXPECT_TRUE(refuses("Token", "hello", "challenge", Side::kRank));
  EXPECT_TRUE(refuses("token", "another hello", "challenge", Side::kRank));
  EXPECT_TRUE(refuses("token", "hello", "another challenge", Side::kRank)) << "a replay";
  EXPECT_TRUE(refuses("token", "hello", "challenge", Side::kRendezvous)) << "sent back";

  Session rank(Side::kRank, "token", "hello", "challenge");
  Session rendezvous(Side::kRendezvous, "token", "hello", "challenge");
  const std::string first = rank.Seal("a"), second = rank.Seal("a");
  EXPECT_FALSE(rendezvous.Check("a", second)) << "out of order";
  EXPECT_FALSE(rendezvous.Check("a", first)) << "too late";
}

TEST(GenerationSecret, BelongsToOneGenerationOfOneJob) {
  const std::string secret = GenerationSecret("token", 1, "salt");
  EXPECT_EQ(secret, GenerationSecret("token", 1, "salt"));
  EXPECT_NE(secret, GenerationSecret("token", 2, "salt"));
  EXPECT_NE(secret, GenerationSecret("token", 1, "sult"));
  EXPECT_NE(secret, GenerationSecret("Token", 1, "salt"));
}

TEST(Pieces, ComeTogetherAgain) {
  for (const size_t bytes : {size_t{0}, size_t{1}, kPieceBytes, kPieceBytes + 1, 3 * kPieceBytes}) {
    const std::string text(bytes, 'x');
    PieceCollector collector(bytes);
    bool complete = false;
    CutIntoPieces(text, [&](const RendezvousPart& part) {
      EXPECT_FALSE(complete);
      EXPECT_LE(part.piece().size(), kPieceBytes);
      complete = *collector.Add(part);
    });
    EXPECT_TRUE(complete);
    EXPECT_EQ(collector.bytes(), text);
  }
  PieceCollector small(2);
  RendezvousPart part;
  part.set_piece("ab");
  EXPECT_TRUE(small.Add(part).ok());
  EXPECT_EQ(small.Add(part).status().code(), StatusCode::kResourceExhausted);
}

TEST(Conversation, TheLongestPieceFitsInAMessage) {
  Conversation conversation;
  conversation.Begin(Side::kRank, "token", {}, {});
  RendezvousMessage message;
  message.mutable_facts()->set_piece(std::string(kPieceBytes, 'x'));
  EXPECT_LE(conversation.Seal(message).ByteSizeLong(), kMaxRendezvousMessageBytes);
  const Status longest(StatusCode::kUnavailable, std::string(10'000, 'y'));
  EXPECT_LE(conversation.Seal(RefusalMessage(longest)).ByteSizeLong(), kMaxRendezvousMessageBytes);
}

TEST(Conversation, RefusalsAreNeverOk) {
  RendezvousRefusal refusal;
  refusal.set_message("no");
  for (const uint32_t code : {0U, 2U, 9U, 99U, 0xFFFFFFFFU}) {
    refusal.set_code(code);
    EXPECT_FALSE(StatusOfRefusal(refusal).ok());
    EXPECT_EQ(StatusOfRefusal(refusal).code(),
              code == 9 ? StatusCode::kFailedPrecondition : StatusCode::kInternal);
  }
}

TEST(LogLimiter, LetsTheFirstThroughAndThenOneInEachInterval) {
  const LogLimiter::Clock::time_point start;
  LogLimiter limiter(2, std::chrono::seconds(10));
  EXPECT_EQ(limiter.Allow(start), "");
  EXPECT_EQ(limiter.Allow(start), "");
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(limiter.Allow(start + std::chrono::seconds(i)), std::nullopt);
  EXPECT_EQ(limiter.Allow(start + std::chrono::seconds(10)), " (and 7 more before it)");
  EXPECT_EQ(limiter.Allow(start + std::chrono::seconds(11)), std::nullopt);
}

}  // namespace
}  // namespace ringtail
