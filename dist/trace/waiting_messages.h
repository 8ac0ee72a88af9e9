// WaitingMessages: one message at a time over a transport, each waited for. For rare exchanges in a
// fixed order: messages from a rank are received in the order in which it sends them.
//
// Its messages have kTraceChannel.FirstCollective() as collective, which no others have.
// Thread-safety: one thread. Errors: those of the transport; DeadlineExceeded, which ends the
// world, if a message takes longer than `time_limit`.
#ifndef RINGTAIL_DIST_TRACE_WAITING_MESSAGES_H_
#define RINGTAIL_DIST_TRACE_WAITING_MESSAGES_H_

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "dist/transport/transport.h"

namespace ringtail {

class WaitingMessages {
 public:
  // One per transport, which must outlive it.
  WaitingMessages(Transport* transport, std::chrono::milliseconds time_limit);

  int rank() const { return transport_->rank(); }
  int world_size() const { return transport_->world_size(); }

  Status Send(int peer, std::span<const std::byte> bytes);
  Status Receive(int peer, std::span<std::byte> bytes);
  // Whether only this peer is lost, and this rank continues (Transport::TolerateLosses).
  bool Lost(int peer) const {
    return transport_->EndCause().ok() && !transport_->LossOf(peer).ok();
  }

 private:
  Status Wait();

  Transport* const transport_;
  const std::chrono::milliseconds time_limit_;
  CompletionQueue queue_;
  std::vector<uint32_t> sent_, received_;  // by peer: messages so far
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRACE_WAITING_MESSAGES_H_
