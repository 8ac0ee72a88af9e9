#include "apps/trainer/training_world.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <type_traits>
#include <utility>

#include "apps/trainer/checkpoint/metadata_text.h"
#include "core/check.h"
#include "core/logging.h"
#include "core/storage/crc32c.h"
#include "core/trace.h"
#include "dist/compression/layer_costs.h"
#include "dist/transport/in_process.h"

namespace ringtail {
namespace {

// Heartbeats (dist/liveness/) find hangs and know that rank 0 may measure, evaluate or write for a
// long time; this limit is for what they cannot see.
constexpr std::chrono::minutes kStallTimeout{10};
constexpr int64_t kMaxTextBytes = int64_t{64} << 20;
constexpr int64_t kMaxNumbers = 1 << 20;

std::function<uint64_t()> MovedOf(ProgressMonitor* monitor) {
  if (monitor == nullptr) return {};
  return [monitor] { return monitor->moved(); };
}

Communicator::Options OptionsOf(const TrainingWorld::Peers& peers, const DistConfig& config) {
  return {.algorithm = config.algorithm(),
          .network = peers.network,
          .executor = {.stall_timeout = kStallTimeout, .moved = MovedOf(peers.monitor)}};
}

// Names of members, by the names of ranks.
std::function<std::string(int)> NamesWithin(const RankGroup& group,
                                            const std::function<std::string(int)>& describe) {
  if (!describe) return {};
  return [ranks = group.ranks(), describe](int member) { return describe(ranks[member]); };
}

}  // namespace

TrainingWorld::TrainingWorld() : own_transport_(std::move(MakeInProcessWorld(1).front())) {
  auto self =
      Communicator::Create(own_transport_.get(), Topology::Blocks(1, 1), Communicator::Options());
  RT_CHECK(self.ok(), self.status().message());
  trainer_ = *std::move(self);
  peers_.transport = own_transport_.get();
}

TrainingWorld::TrainingWorld(const Peers& peers)
    : network_(peers.network),
      seconds_per_byte_(SecondsPerByte(peers.network, peers.topology)),
      describe_(peers.describe),
      monitor_(peers.monitor),
      peers_(peers) {}

TrainingWorld::~TrainingWorld() = default;

StatusOr<std::unique_ptr<TrainingWorld>> TrainingWorld::Create(const Peers& peers,
                                                               const DistConfig& config) {
  ChannelAllocator channels;
  const RankGroup all = RankGroup::World(peers.transport->world_size());
  RT_ASSIGN_OR_RETURN(auto world, CreateOver(all, peers, config, &channels));
  world->channels_ = channels;
  return world;
}

StatusOr<std::unique_ptr<TrainingWorld>> TrainingWorld::OfGroup(const RankGroup& group,
                                                                const DistConfig& config) {
  RT_CHECK(peers_.transport != nullptr && peers_.transport->world_size() == size(),
           "groups are made of the whole world");
  RT_ASSIGN_OR_RETURN(auto world, CreateOver(group, peers_, config, &channels_));
  if (world != nullptr) world->parent_ = this;
  return world;
}

StatusOr<std::unique_ptr<TrainingWorld>> TrainingWorld::CreateOver(const RankGroup& group,
                                                                   const Peers& peers,
                                                                   const DistConfig& config,
                                                                   ChannelAllocator* channels) {
  // One for the trainer thread, one for each thread beside it.
  const bool divides = config.model_parallel().linear() != ModelParallelConfig::WHOLE;
  const std::vector<RankGroup> groups(group.size() == 1 ? 1 : divides ? 3 : 2, group);
  RT_ASSIGN_OR_RETURN(auto communicators,
                      Communicator::CreateForGroups(peers.transport, peers.topology, groups,
                                                    OptionsOf(peers, config), channels));
  if (communicators.front() == nullptr) return std::unique_ptr<TrainingWorld>();
  Peers members = peers;
  members.topology = group.Within(peers.topology);
  members.describe = NamesWithin(group, peers.describe);
  std::unique_ptr<TrainingWorld> world(new TrainingWorld(members));
  world->trainer_ = std::move(communicators.front());
  if (world->alone()) return world;
  world->gradients_ = std::move(communicators[1]);
  world->gradient_thread_ = std::make_unique<CommunicationThread>(world->gradients_.get());
  if (!divides) return world;
  world->shards_ = std::move(communicators[2]);
  world->shard_thread_ = std::make_unique<CommunicationThread>(world->shards_.get());
  return world;
}

std::string TrainingWorld::Describe(int rank) const {
  return describe_ ? describe_(rank) : fmt::format("rank {}", rank);
}

std::string TrainingWorld::DescribeAlgorithm(int64_t gradient_bytes) {
  return trainer_->Choice(gradient_bytes).why;
}

std::map<int64_t, std::string> TrainingWorld::SelectedAllreduces() const {
  std::map<int64_t, std::string> selected = trainer_->SelectedAlgorithms();
  if (gradients_ != nullptr) selected.merge(gradients_->SelectedAlgorithms());
  return selected;
}

Status TrainingWorld::KeepAllreduces(const std::map<int64_t, std::string>& selected,
                                     int source_rank) {
  if (alone()) return OkStatus();
  RT_ASSIGN_OR_RETURN(const std::string text, ShareText(AllreducesText(selected), source_rank));
  RT_ASSIGN_OR_RETURN(const auto shared, ParseAllreduces(text));
  RT_ASSIGN_OR_RETURN(const std::set<std::string> unsuited, trainer_->KeepAlgorithms(shared));
  if (leads() && !unsuited.empty()) {
    LogWarning(fmt::format(
        "the run has added up gradients by {}, which does not suit the hosts that its ranks have "
        "now: another algorithm takes its place, and sums may differ in their last bits",
        fmt::join(unsuited, ", ")));
  }
  return gradients_->KeepAlgorithms(shared).status();
}

Status TrainingWorld::Together(const std::function<Status()>& call) {
  const ScopedPhase exchange(progress(), Phase::kExchange);
  Status status = call();
  if (status.ok()) return status;
  Lose();
  return monitor_ != nullptr ? monitor_->Explain(status) : status;
}

// Its transport is that of the parent.
void TrainingWorld::Lose() {
  lost_ = true;
  if (parent_ != nullptr) parent_->Lose();
}

Status TrainingWorld::RecordStep(double own_seconds, double step_seconds) {
  if (monitor_ == nullptr) return OkStatus();
  monitor_->RecordStep(own_seconds, step_seconds);
  if (!alone()) return OkStatus();
  Status living = monitor_->Check();
  lost_ = !living.ok();
  return living;
}

Status TrainingWorld::ShareProgress(TrainingProgress* progress, int source_rank) {
  static_assert(std::is_trivially_copyable_v<TrainingProgress>);  // all ranks run the same build
  return Together([&] {
    return trainer_->Broadcast(std::as_writable_bytes(std::span(progress, 1)), source_rank);
  });
}

Status TrainingWorld::ShareState(TrainingState* state, int source_rank) {
  RT_RETURN_IF_ERROR(ShareProgress(&state->progress, source_rank));
  return Together([&]() -> Status {
    const std::vector<std::span<float>> blocks = state->Blocks();
    RT_ASSIGN_OR_RETURN(const std::vector<bool> same, SameEverywhere(blocks));
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (!same[i]) RT_RETURN_IF_ERROR(trainer_->Broadcast(blocks[i], source_rank));
    }
    return OkStatus();
  });
}

StatusOr<std::vector<bool>> TrainingWorld::SameEverywhere(
    std::span<const std::span<float>> blocks) {
  const size_t count = blocks.size();
  std::vector<uint32_t> checksums(count * size());  // by rank
  const std::span<uint32_t> own(&checksums[count * rank()], count);
  for (size_t i = 0; i < count; ++i) own[i] = Crc32c(std::as_bytes(blocks[i]));
  RT_RETURN_IF_ERROR(trainer_->AllGather(std::as_writable_bytes(std::span(checksums))));
  std::vector<bool> same(count, true);
  for (size_t i = 0; i < checksums.size(); ++i) {
    if (checksums[i] != own[i % count]) same[i % count] = false;
  }
  return same;
}

StatusOr<std::string> TrainingWorld::ShareText(std::string text, int source_rank) {
  RT_RETURN_IF_ERROR(Together([&]() -> Status {
    RT_ASSIGN_OR_RETURN(text, trainer_->BroadcastText(std::move(text), source_rank, kMaxTextBytes));
    return OkStatus();
  }));
  return text;
}

StatusOr<std::vector<int64_t>> TrainingWorld::ShareNumbers(std::vector<int64_t> numbers,
                                                           int source_rank) {
  RT_RETURN_IF_ERROR(Together([&]() -> Status {
    int64_t count = std::ssize(numbers);
    RT_RETURN_IF_ERROR(trainer_->Broadcast(std::span(&count, 1), source_rank));
    if (count < 0 || count > kMaxNumbers) return DataLoss("another rank sends too many numbers");
    numbers.resize(count);
    return trainer_->Broadcast(std::span(numbers), source_rank);
  }));
  return numbers;
}

StatusOr<std::vector<std::vector<double>>> TrainingWorld::GatherNumbers(
    const std::vector<double>& own) {
  const auto count = std::ssize(own);
  std::vector<double> all(size() * own.size());
  std::ranges::copy(own, all.begin() + rank() * count);
  RT_RETURN_IF_ERROR(Run([&](Communicator* ranks) {
    return ranks->AllGather(std::as_writable_bytes(std::span(all)));
  }));
  std::vector<std::vector<double>> by_rank;
  by_rank.reserve(size());
  for (int r = 0; r < size(); ++r) {
    by_rank.emplace_back(all.begin() + r * count, all.begin() + (r + 1) * count);
  }
  return by_rank;
}

StatusOr<std::vector<std::string>> TrainingWorld::GatherText(const std::string& text) {
  std::vector<std::string> all;
  RT_RETURN_IF_ERROR(Together([&]() -> Status {
    RT_ASSIGN_OR_RETURN(all, trainer_->AllGatherText(text, kMaxTextBytes));
    return OkStatus();
  }));
  return all;
}

StatusOr<std::optional<TrainingWorld::RankError>> TrainingWorld::FirstError(const Status& own) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all, GatherText(std::string(own.message())));
  const auto found =
      std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
  if (found == all.end()) return std::optional<RankError>();
  return std::optional(RankError{.rank = static_cast<int>(found - all.begin()), .message = *found});
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

Status TrainingWorld::Run(const std::function<Status(Communicator*)>& collectives) {
  return Together([&] { return collectives(trainer_.get()); });
}

std::function<uint64_t()> TrainingWorld::Moved() const { return MovedOf(monitor_); }

Status TrainingWorld::Barrier() {
  return Together([&] { return trainer_->Barrier(); });
}

Status TrainingWorld::WaitForGradients() {
  const ScopedSpan span("wait for gradients", "step");
  return Together([&] { return gradient_thread_->Wait(); });
}

Status TrainingWorld::WaitForGradients(int64_t job) {
  const ScopedSpan span("wait for gradients", "step");
  return Together([&] { return gradient_thread_->WaitFor(job); });
}

Status TrainingWorld::WaitForShards(int64_t job) {
  const ScopedSpan span("wait for activations", "step");
  return Together([&] { return shard_thread_->WaitFor(job); });
}

Status TrainingWorld::TolerateLosses(std::shared_ptr<PeerLossObserver> observer) {
  if (alone()) return OkStatus();
  const Status tolerant = monitor_ != nullptr
                              ? monitor_->TolerateLosses(std::move(observer))
                              : peers_.transport->TolerateLosses(std::move(observer));
  if (!tolerant.ok() && tolerant.code() != StatusCode::kUnimplemented) return Status(tolerant);
  tolerant_ = tolerant.ok();
  if (!tolerant_ && leads()) LogWarning("a rank that is lost ends the job: " + tolerant.message());
  return Barrier();
}

Status TrainingWorld::OnFailure(int peer, const Status& error) {
  if (tolerant_ && peer != 0 && peers_.transport->EndCause().ok()) return OkStatus();
  Lose();
  return monitor_ != nullptr ? monitor_->Explain(error) : error;
}

void TrainingWorld::Abort(const Status& cause) { trainer_->Abort(cause); }

int64_t TrainingWorld::sent_bytes() const {
  int64_t bytes = trainer_->sent_bytes();
  for (const Communicator* beside : {gradients_.get(), shards_.get()}) {
    if (beside != nullptr) bytes += beside->sent_bytes();
  }
  return bytes;
}

}  // namespace ringtail
