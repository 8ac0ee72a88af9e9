#include "dist/collectives/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trace.h"
#include "dist/transport/completion_queue.h"

namespace ringtail {
namespace {

constexpr size_t kSlotAlignment = 64;

// One collective while it runs.
class Execution {
 public:
  Execution(Transport* transport, const ExecutorOptions& options, std::span<std::byte> staging,
            const Schedule& schedule, uint64_t sequence, std::byte* array);

  Status Execute();

 private:
  struct State {
    int waits_for = 0;  // operations that have not ended
    bool started = false;
    bool under_way = false;     // between its call and its completion
    bool received = false;      // its message lies in the slot
    std::byte* slot = nullptr;  // if it was not ready when it was started
  };

  // The cause first, which is what people look for, then where it was met.
  Status At(int index, const Status& cause) const;
  size_t BytesOf(const ScheduledOperation& operation) const {
    return operation.range.count * element_bytes_;
  }
  std::byte* ArrayAt(const ScheduledOperation& operation) const {
    return array_ + operation.range.offset * element_bytes_;
  }
  void Start(int index, const ReceiveBuffer& buffer);
  void StartReady(int index);
  void StartStaged();
  void OnCompletion(int index);
  void End(int index);
  bool Next(Completion* completion);
  Status Fail(const Status& cause);
  Status Stalled() const;

  Transport* const transport_;
  const ExecutorOptions& options_;
  const Schedule& schedule_;
  const std::span<const ScheduledOperation> operations_;
  const uint64_t sequence_;
  std::byte* const array_;
  const size_t element_bytes_;

  CompletionQueue queue_;
  std::vector<State> states_;
  std::vector<std::byte*> free_slots_;
  size_t next_staged_ = 0;  // no staged operation before this one still needs a slot
  size_t under_way_ = 0;
};

Execution::Execution(Transport* transport, const ExecutorOptions& options,
                     std::span<std::byte> staging, const Schedule& schedule, uint64_t sequence,
                     std::byte* array)
    : transport_(transport),
      options_(options),
      schedule_(schedule),
      operations_(schedule.operations()),
      sequence_(sequence),
      array_(array),
      element_bytes_(ElementBytes(schedule.collective().type)),
      states_(operations_.size()) {
  for (size_t i = 0; i < states_.size(); ++i) states_[i].waits_for = operations_[i].waits_for;
  const size_t largest = schedule.largest_staged_elements() * element_bytes_;
  RT_CHECK(largest <= staging.size(), "a segment fits into the staging area");
  if (largest == 0) return;
  const size_t slot_bytes = (largest + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  const size_t slots = std::max<size_t>(1, staging.size() / slot_bytes);
  for (size_t i = std::min(slots, operations_.size()); i-- > 0;) {
    free_slots_.push_back(staging.data() + i * slot_bytes);
  }
}

Status Execution::Execute() {
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (states_[i].waits_for == 0) StartReady(static_cast<int>(i));
  }
  StartStaged();
  while (under_way_ > 0) {
    Completion completion;
    if (!Next(&completion)) return Fail(Stalled());
    const int index = static_cast<int>(completion.id);
    states_[index].under_way = false;
    --under_way_;
    if (!completion.status.ok()) return Fail(At(index, completion.status));
    OnCompletion(index);
  }
  return {};
}

// False if the world stands still.
bool Execution::Next(Completion* completion) {
  const auto moved = [this] { return options_.moved ? options_.moved() : 0; };
  for (uint64_t before = moved();;) {
    if (queue_.Next(completion, std::chrono::steady_clock::now() + options_.stall_timeout)) {
      return true;
    }
    const uint64_t now = moved();
    if (now == before) return false;
    before = now;
  }
}

// Everything before it has ended: the array itself is its memory.
void Execution::StartReady(int index) {
  const ScheduledOperation& operation = operations_[index];
  const std::span<std::byte> bytes(ArrayAt(operation), BytesOf(operation));
  const bool reduces = operation.kind == StepKind::kReceiveReduce;
  Start(index, {bytes, reduces ? AddFunctionOf(schedule_.collective().type) : nullptr});
}

void Execution::Start(int index, const ReceiveBuffer& buffer) {
  const ScheduledOperation& operation = operations_[index];
  MessageLabel label = operation.label;
  label.tag.collective = sequence_;
  const CompletionTarget done{.queue = &queue_, .id = static_cast<uint64_t>(index)};
  states_[index].started = states_[index].under_way = true;
  ++under_way_;
  if (operation.kind == StepKind::kSend) {
    transport_->Send(operation.peer, label, buffer.bytes, done);
  } else {
    transport_->Receive(operation.peer, label, buffer, done);
  }
}

// Gives free slots to the next staged receives that are not ready yet.
void Execution::StartStaged() {
  for (; next_staged_ < operations_.size() && !free_slots_.empty(); ++next_staged_) {
    const ScheduledOperation& operation = operations_[next_staged_];
    State& state = states_[next_staged_];
    if (!operation.staged || state.started) continue;
    state.slot = free_slots_.back();
    free_slots_.pop_back();
    Start(static_cast<int>(next_staged_), std::span(state.slot, BytesOf(operation)));
  }
}

void Execution::OnCompletion(int index) {
  if (states_[index].slot == nullptr) return End(index);
  states_[index].received = true;
  if (states_[index].waits_for == 0) End(index);
}

// `first` is through, but for what lies in its slot, and may end others that have waited for it.
void Execution::End(int first) {
  std::vector<int> ending{first};
  while (!ending.empty()) {
    const int index = ending.back();
    ending.pop_back();
    const ScheduledOperation& operation = operations_[index];
    if (std::byte* slot = std::exchange(states_[index].slot, nullptr)) {
      if (operation.kind == StepKind::kReceiveReduce) {
        AddFunctionOf(schedule_.collective().type)(ArrayAt(operation), slot, BytesOf(operation));
      } else {
        std::memcpy(ArrayAt(operation), slot, BytesOf(operation));
      }
      free_slots_.push_back(slot);
      StartStaged();
    }
    for (const int follower : operation.followers) {
      if (--states_[follower].waits_for > 0) continue;
      if (!states_[follower].started) {
        StartReady(follower);
      } else if (states_[follower].received) {
        ending.push_back(follower);
      }
    }
  }
}

Status Execution::At(int index, const Status& cause) const {
  const ScheduledOperation& operation = operations_[index];
  const bool send = operation.kind == StepKind::kSend;
  MessageTag tag = operation.label.tag;
  tag.collective = sequence_;
  // What the transport says of the operation is said below in shorter words.
  const std::string by_transport = DescribeOperation(send ? Direction::kSend : Direction::kReceive,
                                                     operation.peer, tag, BytesOf(operation)) +
                                   ": ";
  std::string_view what = cause.message();
  if (what.starts_with(by_transport)) what.remove_prefix(by_transport.size());
  return {cause.code(),
          fmt::format("{} ({} {} on rank {}, round {} of {}, {} {} bytes {} rank {})", what,
                      schedule_.collective().name, ShownCollective(sequence_), transport_->rank(),
                      operation.round + 1, schedule_.rounds(), send ? "sending" : "receiving",
                      BytesOf(operation), send ? "to" : "from", operation.peer)};
}

// Names the first operation that is under way: the others may only be waiting for it.
Status Execution::Stalled() const {
  size_t first = 0;
  while (!states_[first].under_way) ++first;
  return At(static_cast<int>(first),
            {StatusCode::kDeadlineExceeded,
             fmt::format("no operation ended for {} ms", options_.stall_timeout.count())});
}

// Ends the world, and waits until the transport has let go of our memory.
Status Execution::Fail(const Status& cause) {
  transport_->Abort(cause);
  queue_.Drain(std::exchange(under_way_, 0));
  return cause;
}

}  // namespace

Executor::Executor(Transport* transport, const ExecutorOptions& options)
    : transport_(transport), options_(options), staging_(options.staging_bytes) {}

Status Executor::RunOnBytes(const Schedule& schedule, uint64_t sequence, std::byte* array) {
  const ScopedSpan span(schedule.collective().name, "collective");
  return Execution(transport_, options_, {staging_.data(), staging_.size_bytes()}, schedule,
                   sequence, array)
      .Execute();
}

}  // namespace ringtail
