#include "dist/transport/transport.h"

#include <fmt/format.h>

#include "core/check.h"

namespace ringtail {

void Transport::CheckPeer(int peer) const {
  RT_CHECK(peer >= 0 && peer < world_size() && peer != rank(),
           fmt::format("rank {} of {} has no peer {}", rank(), world_size(), peer));
}

Status Transport::TolerateLosses(std::shared_ptr<PeerLossObserver> /*observer*/) {
  return {StatusCode::kUnimplemented, "this transport ends with the first rank that is lost"};
}

void Transport::LosePeer(int /*peer*/, const Status& cause) { Abort(cause); }

std::string DescribeOperation(Direction direction, int peer, const MessageTag& tag, size_t bytes) {
  const bool send = direction == Direction::kSend;
  return fmt::format("{} {} bytes {} rank {} (collective {}, step {}, segment {})",
                     send ? "sending" : "receiving", bytes, send ? "to" : "from", peer,
                     ShownCollective(tag.collective), tag.step, tag.segment);
}

Status CheckMatch(const MessageLabel& sent, size_t sent_bytes, const MessageLabel& expected,
                  size_t expected_bytes) {
  // The check comes first: where two ranks do different things, other lengths are a consequence.
  if (sent.check != expected.check) {
    return FailedPrecondition(fmt::format(
        "the two ranks do different things under this tag (check {:016x} sent, {:016x} expected)",
        sent.check, expected.check));
  }
  if (sent_bytes != expected_bytes) {
    return InvalidArgument(
        fmt::format("the message has {} bytes, but {} were expected", sent_bytes, expected_bytes));
  }
  return {};
}

Status AbortSeenByPeer(int rank, const Status& cause) {
  return cause.Annotate(fmt::format("rank {} stopped", rank));
}

Status GivenUpBy(int rank, const Status& cause) {
  return cause.Annotate(fmt::format("rank {} has given up this rank", rank));
}

}  // namespace ringtail
