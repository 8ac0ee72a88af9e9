#include "dist/membership/conversation.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/check.h"

namespace ringtail {

void Conversation::Begin(Session::Side side, const std::string& token, const SealedMessage& hello,
                         const SealedMessage& challenge) {
  session_.emplace(side, token, hello.body(), challenge.body());
}

SealedMessage Conversation::Seal(const RendezvousMessage& message) {
  RT_CHECK(begun(), "both sides have said their nonces");
  SealedMessage sealed = Unsealed(message);
  sealed.set_seal(session_->Seal(sealed.body()));
  return sealed;
}

StatusOr<RendezvousMessage> Conversation::Open(const SealedMessage& sealed) {
  RendezvousMessage message;
  if (begun() && !session_->Check(sealed.body(), sealed.seal())) {
    return Status(StatusCode::kPermissionDenied, "it does not have the job's token");
  }
  if (!message.ParseFromString(sealed.body())) return DataLoss("a message that cannot be read");
  return message;
}

SealedMessage Conversation::Unsealed(const RendezvousMessage& message) {
  SealedMessage sealed;
  sealed.set_body(message.SerializeAsString());
  return sealed;
}

void CutIntoPieces(const std::string& bytes, const std::function<void(RendezvousPart)>& put) {
  size_t done = 0;
  do {
    RendezvousPart part;
    part.set_piece(bytes.substr(done, kPieceBytes));
    done += part.piece().size();
    part.set_last(done == bytes.size());
    put(std::move(part));
  } while (done < bytes.size());
}

StatusOr<bool> PieceCollector::Add(const RendezvousPart& part) {
  if (part.piece().size() > max_bytes_ - bytes_.size()) {
    return ResourceExhausted(fmt::format("more than {} bytes", max_bytes_));
  }
  bytes_ += part.piece();
  return part.last();
}

RendezvousMessage RefusalMessage(const Status& status) {
  RendezvousMessage message;
  message.mutable_refusal()->set_code(static_cast<uint32_t>(status.code()));
  message.mutable_refusal()->set_message(status.message().substr(0, kMaxRefusalBytes));
  return message;
}

Status StatusOfRefusal(const RendezvousRefusal& refusal) {
  const auto code = static_cast<StatusCode>(refusal.code());
  const bool known =
      refusal.code() != 0 && refusal.code() <= 16 && StatusCodeName(code) != "Unknown";
  return {known ? code : StatusCode::kInternal, refusal.message()};
}

}  // namespace ringtail
