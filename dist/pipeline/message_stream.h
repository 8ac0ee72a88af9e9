// Messages of one size from one rank to another, in order, through a few slots at either end: how a
// stage of a pipeline gets its activations, or their gradients, while it computes with others.
//
//   sender                                    receiver
//   Room() -> [slot] filled, Send()           Expect(6): so many will come; posts what slots there are
//   Room() -> [slot] waits until a message    Next() -> [slot] waits until it has arrived
//             has left                        Release() -> the slot takes the one after the next
//
// A receiver posts only what has been announced, so that nothing is left when the last message of a
// step has come: every message that is expected must be sent.
// No deadlock: a Send waits for its Receive, which is posted as soon as the receiver has a free slot
// (transport.h); the order of a stage's waits is that of a schedule (schedule.h).
// Errors: those of the transport, naming the message; DeadlineExceeded if nothing moves for
// stall_timeout. After an error nothing more may be called. The destructor waits until the transport
// has let go of the slots; where messages are under way that will not come, it ends the world first.
// Thread-safety: one thread. Memory: slots * bytes.
#ifndef RINGTAIL_DIST_PIPELINE_MESSAGE_STREAM_H_
#define RINGTAIL_DIST_PIPELINE_MESSAGE_STREAM_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/pipeline/schedule_cost.h"
#include "dist/transport/transport.h"

namespace ringtail {

// One end of a stream. Both ends have the same channel, bytes and `what`, and have used as many of the
// channel's numbers in this direction.
struct StreamEnd {
  Transport* transport = nullptr;
  int peer = 0;
  Channel channel;
  uint64_t* next = nullptr;  // number of the next message in this direction; outlives the stream
  size_t bytes = 0;          // of each message
  std::string what;          // "activation": for errors
  int slots = kPipelineSlots;
  std::chrono::milliseconds stall_timeout{600'000};
  std::function<uint64_t()> moved;  // as in ExecutorOptions; none: only these messages count
};

// What both ends have in common.
class MessageStream {
 public:
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

 protected:
  explicit MessageStream(StreamEnd end);
  ~MessageStream();

  // Messages of this stream are counted from 0 here; other streams may take numbers of the channel
  // between them.
  std::span<std::byte> Slot(uint64_t message);
  uint64_t started() const { return started_; }
  void StartNext(Direction direction);
  // Until that message, one of the last `slots` that were started, has ended.
  Status WaitFor(uint64_t message, Direction direction);

  const StreamEnd end_;

 private:
  MessageLabel LabelOf(uint64_t number) const;
  Status At(uint64_t number, Direction direction, const Status& cause) const;

  const size_t slot_bytes_;
  AlignedBuffer memory_;
  CompletionQueue queue_;
  uint64_t started_ = 0, under_way_ = 0;
  std::vector<uint64_t> numbers_;  // by slot: of the message that it was last used for
  std::vector<uint64_t> ended_;    // numbers that have ended and were not waited for yet
};

class SendStream : private MessageStream {
 public:
  explicit SendStream(StreamEnd end) : MessageStream(std::move(end)) {}
  // The slot of the next message: its content is anything.
  StatusOr<std::span<std::byte>> Room();
  void Send();     // what the last Room gave
  Status Flush();  // until all have left

 private:
  uint64_t waited_ = 0;  // messages that have left, and are known to
};

class ReceiveStream : private MessageStream {
 public:
  explicit ReceiveStream(StreamEnd end) : MessageStream(std::move(end)) {}
  void Expect(int64_t messages);                // in addition to those that were
  StatusOr<std::span<const std::byte>> Next();  // valid until Release
  void Release();

 private:
  void Post();

  int64_t expected_ = 0;  // and not posted yet
  uint64_t taken_ = 0;    // released, too
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_MESSAGE_STREAM_H_
