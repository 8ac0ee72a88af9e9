#include "dist/membership/session.h"

#include "dist/transport/frames/keyed_hash.h"

namespace ringtail {
namespace {

constexpr std::string_view kRankName = "rank", kRendezvousName = "rendezvous";

}  // namespace

Session::Session(Side side, std::string_view token, std::string_view hello,
                 std::string_view challenge)
    : key_(KeyedHash(token, {"ringtail session", hello, challenge})),
      own_name_(side == Side::kRank ? kRankName : kRendezvousName),
      other_name_(side == Side::kRank ? kRendezvousName : kRankName) {}

std::string Session::Seal(std::string_view body) {
  return KeyedHash(key_, {own_name_, std::to_string(sealed_++), body});
}

bool Session::Check(std::string_view body, std::string_view seal) {
  return EqualInConstantTime(seal,
                             KeyedHash(key_, {other_name_, std::to_string(checked_++), body}));
}

std::string GenerationSecret(std::string_view token, uint32_t generation, std::string_view salt) {
  return KeyedHash(token, {"ringtail generation", std::to_string(generation), salt});
}

}  // namespace ringtail
