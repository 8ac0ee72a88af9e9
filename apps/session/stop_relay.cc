#include "apps/session/stop_relay.h"

#include <fmt/format.h>

#include <chrono>
#include <span>
#include <utility>

#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "core/status.h"
#include "core/stop_signal.h"

namespace ringtail {
namespace {

constexpr uint64_t kCheck = 0x504f'5453;  // "STOP"
constexpr char kThreadName[] = "rt-stop-relay";

std::span<std::byte> BytesOf(int64_t* signal) {
  return std::as_writable_bytes(std::span(signal, 1));
}

// However long a run takes.
Completion NextOf(CompletionQueue* queue) {
  constexpr std::chrono::hours kPatience{1};
  Completion completion;
  while (!queue->Next(&completion, std::chrono::steady_clock::now() + kPatience)) {
  }
  return completion;
}

void StopByIt(int signal, const std::string& rank) {
  if (!AsksToStop(signal) || StopSignal() != 0) return;
  LogWarning(fmt::format("{}, which does not train, was told to stop by {}: all ranks do", rank,
                         SignalName(signal)));
  StopAsBySignal(signal);
}

}  // namespace

StopRelay::StopRelay(Transport* transport, Channel channel, const RankGroup& training,
                     std::function<std::string(int rank)> describe)
    : transport_(transport),
      label_{.tag = {.collective = channel.FirstCollective()}, .check = kCheck},
      describe_(std::move(describe)) {
  std::vector<int> idle;
  for (int rank = 0; rank < transport_->world_size(); ++rank) {
    if (!training.MemberOf(rank)) idle.push_back(rank);
  }
  if (idle.empty()) return;
  if (transport_->rank() == 0) {
    thread_ = std::thread([this, idle = std::move(idle)] { Listen(idle); });
  } else if (!training.MemberOf(transport_->rank())) {
    thread_ = std::thread([this] { Tell(); });
  }
}

StopRelay::~StopRelay() {
  if (!thread_.joinable()) return;
  transport_->Abort({StatusCode::kUnavailable, "this rank leaves"});
  Finish();
}

void StopRelay::Finish() {
  ended_ = true;
  if (thread_.joinable()) thread_.join();
}

void StopRelay::Listen(const std::vector<int>& idle) {
  SetThreadName(kThreadName);
  CompletionQueue queue(CompletionQueue::Owner::kOnlyWaits);
  std::vector<int64_t> signals(idle.size());
  for (size_t i = 0; i < idle.size(); ++i) {
    transport_->Receive(idle[i], label_, BytesOf(&signals[i]), {.queue = &queue, .id = i});
  }
  for (size_t told = 0; told < idle.size(); ++told) {
    const Completion completion = NextOf(&queue);
    if (!completion.status.ok()) continue;  // the world has ended
    StopByIt(static_cast<int>(signals[completion.id]), describe_(idle[completion.id]));
  }
}

void StopRelay::Tell() {
  SetThreadName(kThreadName);
  while (!ended_ && StopSignal() == 0) std::this_thread::sleep_for(kLookForStop);
  int64_t signal = StopSignal();
  CompletionQueue queue(CompletionQueue::Owner::kOnlyWaits);
  transport_->Send(0, label_, BytesOf(&signal), {.queue = &queue});
  NextOf(&queue);
}

}  // namespace ringtail
