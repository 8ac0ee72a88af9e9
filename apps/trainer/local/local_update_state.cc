// What checkpoints hold of rounds of local steps, and how a run continues from one.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "apps/trainer/local/local_update.h"
#include "apps/trainer/local/outer_state.h"
#include "apps/trainer/local/round_report.h"
#include "apps/trainer/update/allreduce_update.h"
#include "core/logging.h"
#include "core/storage/crc32c.h"

namespace ringtail {

StatusOr<std::unique_ptr<UpdatePath>> LocalUpdate::Create(const Generation* generation,
                                                          const ResumePoint& point) {
  std::unique_ptr<LocalUpdate> update(new LocalUpdate(generation));
  const bool for_ever = !update->RoundsFollow();
  if (!for_ever && update->step() >= update->period_.first_step()) {
    RT_RETURN_IF_ERROR(update->CreateRounds(point));
    return std::unique_ptr<UpdatePath>(std::move(update));
  }
  if (for_ever && update->step() > update->period_.first_step()) {
    RT_RETURN_IF_ERROR(update->CreateRounds(point));  // what several ranks have had of their own
    RT_RETURN_IF_ERROR(update->AddUnsent());
    update->EndRounds();
    // What was compressed were not gradients.
    RT_ASSIGN_OR_RETURN(update->dense_, AllreduceUpdate::Create(generation, {}));
  } else {
    RT_ASSIGN_OR_RETURN(update->dense_, AllreduceUpdate::Create(generation, point));
  }
  const bool keeps = update->rounds_ > 0;  // for several ranks that may follow
  if (for_ever && !keeps) return std::move(update->dense_);
  return std::unique_ptr<UpdatePath>(std::move(update));
}

bool LocalUpdate::RoundsFollow() const {
  return MakesRounds(generation_->config().dist().local(), world_->alone());
}

// The model holds the common weights now.
Status LocalUpdate::CreateRounds(const ResumePoint& point) {
  const RunConfig& config = generation_->config();
  const LocalConfig& local = config.dist().local();
  RT_ASSIGN_OR_RETURN(round_, LocalRound::Create(&generation_->arena(), RuleOf(local),
                                                 local.overlap() && !world_->alone()));
  exchange_ = std::make_unique<RoundExchange>(world_, round_.get(), config.dist());
  RT_ASSIGN_OR_RETURN(GradientCompression::Saved saved, GradientCompression::Read(point));
  // Written when a rank was lost as the last step before the rounds ended: routes of gradients.
  if (point.local.rounds == 0 && point.local.offers == 0 && point.parts.empty()) saved.routes = {};
  RT_ASSIGN_OR_RETURN(
      compression_, GradientCompression::Create(world_, round_->differences(), local.compression(),
                                                {.global_batch = 1,
                                                 .seed = config.train().seed(),
                                                 .buckets = exchange_->buckets(),
                                                 .per_rank = true},
                                                saved));
  exchange_->Compress(compression_.get());
  if (compression_ != nullptr) round_->set_coded_ranks(world_->size());
  round_->Swap();  // the model holds what is common until the first step
  round_begin_ = offered_begin_ = step();
  for (const Optimizer::StateBlock& block : generation_->state().optimizer()->state()) {
    own_.Add("optimizer." + block.name, block.values);
  }
  own_.Add("weights", round_->own_weights());
  own_.Add("statistics", round_->own_statistics());
  own_.Add("round", saved_sums_);
  RT_RETURN_IF_ERROR(Restore(point));
  if (offered_.steps > 0 &&
      !round_->overlapped()) {  // alone, after several: it has nothing to hide
    StartExchange();
    RT_RETURN_IF_ERROR(FinishExchange(&continued_));
  }
  RT_RETURN_IF_ERROR(FindWriters());
  if (world_->leads()) {
    const int64_t begin = std::max(step(), period_.first_step());
    if (RoundsFollow()) {
      LogInfo(DescribeRounds(local, period_.RoundEnd(begin) - begin, round_->overlapped()));
    }
    if (compression_ != nullptr) LogInfo("differences: " + compression_->description());
  }
  return OkStatus();
}

Status LocalUpdate::Restore(const ResumePoint& point) {
  static_assert(std::is_trivially_copyable_v<LocalProgress>);  // all ranks run the same build
  LocalProgress saved = point.local;
  RT_RETURN_IF_ERROR(world_->Run([&](Communicator* ranks) {
    return ranks->Broadcast(std::as_writable_bytes(std::span(&saved, 1)), point.source_rank);
  }));
  RT_ASSIGN_OR_RETURN(
      const std::vector<int64_t> saved_ranks,
      world_->ShareNumbers({std::ssize(point.division.batches)}, point.source_rank));
  RT_RETURN_IF_ERROR(RestoreOuterState(world_, point, round_.get()));
  RT_ASSIGN_OR_RETURN(const bool parts, own_.Restore(world_, point.parts, point.source_rank));
  rounds_ = saved.rounds;
  if (saved_ranks[0] != world_->size()) saved.period.measured_size = 0;  // others take other times
  if (rounds_ > 0) period_.Restore(saved.period);
  if (saved.offers > 0 && parts) {
    offered_ = RoundSums::Restored(saved_sums_, saved.offers);
    offered_begin_ = step() - saved.offers;
  } else if (rounds_ > 0 && !parts && saved_ranks[0] > 1 && world_->leads()) {
    WarnOfLostParts();
  }
  return OkStatus();
}

// What several ranks had not sent of their differences, to the weights of the one that is left.
Status LocalUpdate::AddUnsent() {
  if (compression_ == nullptr) return OkStatus();
  round_->TakeNothing();
  compression_->BeginStep(rounds_, generation_->plan.EpochAt(step()), 1);
  exchange_->Start({});
  RT_RETURN_IF_ERROR(exchange_->Finish().status());
  round_->Merge(rounds_, /*weights=*/0, RateOf(step() - 1));
  return OkStatus();
}

// All that is left of them is what the next step says of the last, and how long they were.
void LocalUpdate::EndRounds() {
  own_ = {};
  parts_.reset();
  exchange_.reset();
  compression_.reset();
  round_.reset();
}

Status LocalUpdate::FindWriters() {
  if (world_->alone()) return OkStatus();
  const CheckpointDirectory* const directory = generation_->run->checkpoints();
  RT_ASSIGN_OR_RETURN(parts_, PartExchange::Create(world_, directory));
  if (parts_ == nullptr) return OkStatus();
  RT_ASSIGN_OR_RETURN(part_bytes_, world_->Gather(BytesOf(OwnTensors())));
  WarnOfBlindRanks(*parts_, *world_, directory, part_bytes_.back());
  return OkStatus();
}

std::vector<TensorView> LocalUpdate::OwnTensors() const {
  std::vector<TensorView> tensors = own_.Tensors(world_->rank());
  if (compression_ == nullptr) return tensors;
  const std::vector<TensorView> residuals = compression_->OwnTensors();
  tensors.insert(tensors.end(), residuals.begin(), residuals.end());
  return tensors;
}

void LocalUpdate::Describe(ResumePoint* point) const {
  point->local = {.rounds = rounds_, .offers = offered_.steps, .period = period_.progress()};
  if (dense_ != nullptr) return dense_->Describe(point);
  if (compression_ != nullptr) point->compression = compression_->routes();
}

std::vector<TensorView> LocalUpdate::Tensors() const {
  if (dense_ != nullptr) return dense_->Tensors();
  if (round_ == nullptr) return {};  // they could not be created
  std::vector<TensorView> tensors = OuterTensors(round_.get());
  if (compression_ == nullptr) return tensors;
  const std::vector<TensorView> compression = compression_->Tensors();
  tensors.insert(tensors.end(), compression.begin(), compression.end());
  return tensors;
}

// The outer momentum belongs to the common weights. (Without rounds: they could not be created.)
std::vector<TensorView> LocalUpdate::TensorsAfterLoss() const {
  if (dense_ != nullptr) return dense_->TensorsAfterLoss();
  return round_ != nullptr ? OuterTensors(round_.get()) : std::vector<TensorView>();
}

StatusOr<WrittenParts> LocalUpdate::WriteParts(const CheckpointDirectory* directory) {
  if (dense_ != nullptr) return dense_->WriteParts(directory);
  if (parts_ == nullptr) return WrittenParts{};
  saved_sums_ = offered_.Save();
  return parts_->Write(step(), OwnTensors(), directory);
}

std::vector<int64_t> LocalUpdate::PartBytes() const {
  return dense_ != nullptr ? dense_->PartBytes() : part_bytes_;
}

// Each rank has an optimizer state of its own.
uint32_t LocalUpdate::Checksum(uint32_t optimizer) const {
  if (dense_ != nullptr) return dense_->Checksum(optimizer);
  uint32_t checksum = 0;
  for (const Optimizer::StateBlock& block : round_->state()) {
    checksum = Crc32c(std::as_bytes(block.values), checksum);
  }
  return compression_ != nullptr ? compression_->Checksum(checksum) : checksum;
}

}  // namespace ringtail
