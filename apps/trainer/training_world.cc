#include "apps/trainer/training_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/trace.h"
#include "dist/compression/layer_costs.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

// Hangs are found by heartbeats (dist/liveness/), which know that rank 0 may measure, evaluate or
// write for long; this is for what they cannot see.
constexpr std::chrono::minutes kStallTimeout{10};
constexpr int64_t kMaxTextBytes = int64_t{64} << 20;

StatusOr<std::unique_ptr<Communicator>> MakeCommunicator(const TrainingWorld::Peers& peers,
                                                         const DistConfig& config,
                                                         Channel channel) {
  std::function<uint64_t()> moved;
  if (peers.monitor != nullptr) moved = [monitor = peers.monitor] { return monitor->moved(); };
  return Communicator::Create(peers.transport, peers.topology,
                              {.algorithm = config.algorithm(),
                               .network = peers.network,
                               .executor = {.stall_timeout = kStallTimeout, .moved = moved},
                               .channel = channel});
}

}  // namespace

TrainingWorld::TrainingWorld() = default;
TrainingWorld::~TrainingWorld() = default;

StatusOr<std::unique_ptr<TrainingWorld>> TrainingWorld::Create(const Peers& peers,
                                                               const DistConfig& config) {
  auto world = std::make_unique<TrainingWorld>();
  world->rank_ = peers.transport->rank();
  world->size_ = peers.transport->world_size();
  world->describe_ = peers.describe;
  world->monitor_ = peers.monitor;
  world->seconds_per_byte_ = SecondsPerByte(peers.network, peers.topology);
  if (world->alone()) return world;
  ChannelAllocator channels;
  RT_ASSIGN_OR_RETURN(world->trainer_, MakeCommunicator(peers, config, channels.Next()));
  RT_ASSIGN_OR_RETURN(world->gradients_, MakeCommunicator(peers, config, channels.Next()));
  world->gradient_thread_ = std::make_unique<CommunicationThread>(world->gradients_.get());
  return world;
}

std::string TrainingWorld::Describe(int rank) const {
  return describe_ ? describe_(rank) : fmt::format("rank {}", rank);
}

std::string TrainingWorld::DescribeAlgorithm(int64_t gradient_bytes) {
  return alone() ? "nothing to exchange" : trainer_->Choice(gradient_bytes).why;
}

Status TrainingWorld::Together(const std::function<Status()>& call) {
  if (alone()) return OkStatus();
  const ScopedPhase exchange(progress(), Phase::kExchange);
  Status status = call();
  if (status.ok()) return status;
  lost_ = true;
  return monitor_ != nullptr ? monitor_->Explain(status) : status;
}

void TrainingWorld::RecordStep(double own_seconds, double step_seconds) {
  if (monitor_ != nullptr) monitor_->RecordStep(own_seconds, step_seconds);
}

Status TrainingWorld::ShareState(TrainingState* state) {
  static_assert(std::is_trivially_copyable_v<TrainingProgress>);  // all ranks run the same build
  return Together([&]() -> Status {
    const std::span<TrainingProgress> progress(&state->progress, 1);
    RT_RETURN_IF_ERROR(trainer_->Broadcast(std::as_writable_bytes(progress), 0));
    for (const std::span<float> block : state->Blocks()) {
      RT_RETURN_IF_ERROR(trainer_->Broadcast(block, 0));
    }
    return OkStatus();
  });
}

StatusOr<std::string> TrainingWorld::ShareText(std::string text) {
  RT_RETURN_IF_ERROR(Together([&]() -> Status {
    RT_ASSIGN_OR_RETURN(text, trainer_->BroadcastText(std::move(text), 0, kMaxTextBytes));
    return OkStatus();
  }));
  return text;
}

StatusOr<std::vector<std::string>> TrainingWorld::GatherText(const std::string& text) {
  std::vector<std::string> all{text};
  RT_RETURN_IF_ERROR(Together([&]() -> Status {
    RT_ASSIGN_OR_RETURN(all, trainer_->AllGatherText(text, kMaxTextBytes));
    return OkStatus();
  }));
  return all;
}

Status TrainingWorld::Agree(std::string_view what, const std::string& value) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> values, GatherText(value));
  const auto other = std::find_if(values.begin(), values.end(),
                                  [&](const std::string& v) { return v != values[0]; });
  if (other == values.end()) return OkStatus();
  return InvalidArgument(fmt::format("{} of {} is {}, of {} {}; give every rank the same", what,
                                     Describe(0), values[0],
                                     Describe(static_cast<int>(other - values.begin())), *other));
}

Status TrainingWorld::Sum(std::span<double> numbers) {
  return Together([&] { return trainer_->AllReduce(numbers); });
}

StatusOr<Communicator*> TrainingWorld::Alone() {
  if (alone_ == nullptr) {
    alone_transport_ = std::move(MakeInProcessWorld(1).front());
    RT_ASSIGN_OR_RETURN(alone_, Communicator::Create(alone_transport_.get(), Topology::Blocks(1, 1),
                                                     Communicator::Options()));
  }
  return alone_.get();
}

Status TrainingWorld::Run(const std::function<Status(Communicator*)>& collectives) {
  if (alone()) {
    RT_ASSIGN_OR_RETURN(Communicator* const self, Alone());
    return collectives(self);
  }
  return Together([&] { return collectives(trainer_.get()); });
}

Status TrainingWorld::Barrier() {
  return Together([&] { return trainer_->Barrier(); });
}

Status TrainingWorld::WaitForGradients() {
  const ScopedSpan span("wait for gradients", "step");
  return Together([&] { return gradient_thread_->Wait(); });
}

void TrainingWorld::Abort(const Status& cause) {
  if (!alone()) trainer_->Abort(cause);
}

int64_t TrainingWorld::sent_bytes() const {
  return alone() ? 0 : trainer_->sent_bytes() + gradients_->sent_bytes();
}

}  // namespace ringtail
