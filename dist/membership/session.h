// Session: one end of a conversation between a rank and the rendezvous, in which each proves to the
// other with every message that it knows the job's token, without saying it.
//
//   rank                              rendezvous
//     hello: fresh nonce, rank, world  ──>
//     <──  challenge: fresh nonce, generation
//   key = HMAC(token, hello, challenge)          on both sides; it is never sent
//     message, HMAC(key, "rank", 0, message)  ──>            the first one proves the token
//     <──  message, HMAC(key, "rendezvous", 0, message)      and so does the answer
//
// A recorded conversation is useless: the other end has a new nonce the next time, and so another
// key. Nor can messages of one conversation be repeated, left out, reordered or sent
// back: direction and number are in the seal. An eavesdropper can read the messages, unless TLS
// carries them; the secret of the generation is therefore not said, but computed.
// Thread-safety: none.
#ifndef RINGTAIL_DIST_MEMBERSHIP_SESSION_H_
#define RINGTAIL_DIST_MEMBERSHIP_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringtail {

inline constexpr size_t kNonceBytes = 16;

class Session {
 public:
  enum class Side { kRank, kRendezvous };

  // `hello` and `challenge`: the first message of each side, as it was sent.
  Session(Side side, std::string_view token, std::string_view hello, std::string_view challenge);

  // The seal of the next message from this side.
  std::string Seal(std::string_view body);
  // Whether `seal` is that of the next message from the other side. Once it is not, nothing that
  // this conversation brings is to be believed.
  bool Check(std::string_view body, std::string_view seal);

 private:
  const std::string key_;
  const std::string_view own_name_, other_name_;
  uint64_t sealed_ = 0, checked_ = 0;
};

// A secret that only the ranks of a generation share: from the token, and a `salt` that
// is drawn anew for each generation and may be known.
std::string GenerationSecret(std::string_view token, uint32_t generation, std::string_view salt);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_SESSION_H_
