// The messages of dist/membership/membership.proto as both ends send and read them: sealed, and
// what is long cut into pieces. Included by the two ends alone, because of protobuf.
// Thread-safety: none.
#ifndef RINGTAIL_DIST_MEMBERSHIP_CONVERSATION_H_
#define RINGTAIL_DIST_MEMBERSHIP_CONVERSATION_H_

#include <functional>
#include <optional>
#include <string>

#include "core/status.h"
#include "dist/membership/membership.pb.h"
#include "dist/membership/session.h"

namespace ringtail {

// Towards the rendezvous, before and after the token has been proved.
inline constexpr int kMaxRendezvousMessageBytes = 4096;
// Leaves room for the seal and for protobuf's own bytes.
inline constexpr size_t kPieceBytes = 3072;
// Length of the sentences in refusals.
inline constexpr size_t kMaxRefusalBytes = 3072;

class Conversation {
 public:
  // From the first message of each side on.
  void Begin(Session::Side side, const std::string& token, const SealedMessage& hello,
             const SealedMessage& challenge);
  bool begun() const { return session_.has_value(); }

  SealedMessage Seal(const RendezvousMessage& message);
  // DataLoss if it cannot be read; PermissionDenied if its seal is wrong.
  StatusOr<RendezvousMessage> Open(const SealedMessage& sealed);

  static SealedMessage Unsealed(const RendezvousMessage& message);

 private:
  std::optional<Session> session_;
};

// `bytes` as one or more pieces; each goes through `put` as the part of a message of its own.
void CutIntoPieces(const std::string& bytes, const std::function<void(RendezvousPart)>& put);

// Pieces put together again.
class PieceCollector {
 public:
  explicit PieceCollector(size_t max_bytes) : max_bytes_(max_bytes) {}
  // True with the last one; ResourceExhausted beyond `max_bytes`.
  StatusOr<bool> Add(const RendezvousPart& part);
  const std::string& bytes() const { return bytes_; }

 private:
  const size_t max_bytes_;
  std::string bytes_;
};

RendezvousMessage RefusalMessage(const Status& status);
Status StatusOfRefusal(const RendezvousRefusal& refusal);  // never OK

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_CONVERSATION_H_
