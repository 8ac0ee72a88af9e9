#include "apps/emulator/rules/local_rounds_rule.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "apps/trainer/local/round_report.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

// A worker that is alone from the first step to the last has nothing to hide (LocalUpdate).
bool HasOthers(const EmulationScript& script) { return script.workers() + script.join_size() > 1; }

}  // namespace

StatusOr<std::unique_ptr<EmulatedRule>> LocalRoundsRule::Create(EmulatedJob* job,
                                                                const Start& start) {
  std::unique_ptr<LocalRoundsRule> rule(new LocalRoundsRule(job, start));
  for (const int worker : start.workers) {
    RT_ASSIGN_OR_RETURN(Seat seat, rule->NewSeat());
    seat.step = start.step;
    seat.idle_since_ns = job->queue()->now_ns();
    seat.worker->CopyState(job->state()->optimizer());
    rule->seats_[worker] = std::move(seat);
  }
  return std::unique_ptr<EmulatedRule>(std::move(rule));
}

LocalRoundsRule::LocalRoundsRule(EmulatedJob* job, const Start& start)
    : job_(job),
      outer_(RuleOf(job->config().dist().local())),
      delay_(job->config().dist().local().overlap() && HasOthers(job->script()) ? 1 : 0),
      period_(job->config().dist().local(), job->optim(), &job->plan()),
      begins_({start.step}),
      present_(start.workers),
      joining_(start.joining) {
  if (CompressesAnything(job->config().dist().local().compression())) {
    compression_ = std::make_unique<WorkerCompression>(
        job, CodedKind{.config = job->config().dist().local().compression()});
  }
}

// With the common weights, which are in the model's arena.
StatusOr<LocalRoundsRule::Seat> LocalRoundsRule::NewSeat() {
  Seat seat;
  RT_ASSIGN_OR_RETURN(seat.worker, VirtualWorker::Create(job_->config().optim(), job_->arena()));
  RT_ASSIGN_OR_RETURN(seat.local, LocalRound::Create(seat.worker->arena(), outer_, delay_ > 0));
  return seat;
}

// Weights and statistics, and the outer optimizer's momentum.
int64_t LocalRoundsRule::StateBytes() const {
  int64_t floats = std::ssize(job_->arena()->values()) + std::ssize(job_->arena()->buffer_values());
  if (outer_.momentum > 0) floats += std::ssize(job_->arena()->values());
  return floats * static_cast<int64_t>(sizeof(float));
}

Status LocalRoundsRule::Begin() {
  for (int64_t round = 0; round <= delay_; ++round) {
    RT_RETURN_IF_ERROR(FixRound(round, {}));
  }
  for (const int worker : present_) {
    if (!job_->is_dead(worker)) RT_RETURN_IF_ERROR(BeginStep(worker));
  }
  return OkStatus();
}

Status LocalRoundsRule::FixRound(int64_t number, std::vector<int> newcomers) {
  if (begins_.back() >= job_->plan().total_steps()) return OkStatus();
  begins_.push_back(period_.RoundEnd(begins_.back()));
  Round& round = rounds_[number];
  present_.insert(present_.end(), newcomers.begin(), newcomers.end());
  round.newcomers = std::move(newcomers);
  round.members = present_;
  for (size_t i = 0; i < present_.size(); ++i) {
    RT_ASSIGN_OR_RETURN(round.rows[present_[i]], job_->RowsOf(i, present_.size()));
  }
  return BeginExchange(number);
}

ExchangeTime LocalRoundsRule::TimeOf(int64_t number) const {
  return {.step = number, .epoch = job_->plan().EpochAt(FirstStep(number))};
}

StatusOr<std::vector<ExchangeItem>> LocalRoundsRule::ItemsOf(int64_t number) const {
  const std::vector<int>& members = rounds_.at(number).members;
  CodedLayers layers;
  if (compression_ != nullptr) layers = compression_->LayersOf(members);
  return ItemsOfRound(job_->sizes(), job_->arena()->parameters(), members, *job_->network(),
                      job_->config().dist(), compression_ != nullptr ? &layers : nullptr,
                      TimeOf(number));
}

// Of those that have not taken their change yet, and again of those that have.
Status LocalRoundsRule::BeginExchange(int64_t number) {
  Round& round = rounds_[number];
  RT_ASSIGN_OR_RETURN(const std::vector<ExchangeItem> items, ItemsOf(number));
  const auto last = static_cast<int>(items.size()) - 1;
  round.exchange = std::make_unique<VirtualExchange>(
      job_->network(), items, round.members,
      [this, number, last, members = round.members](int member, int item) {
        return item < last ? OkStatus() : OnArrived(number, members[static_cast<size_t>(member)]);
      },
      [this, step = FirstStep(number)](int worker, double seconds) {
        return job_->EndOfWork(worker, step, seconds);
      });
  for (size_t member = 0; member < round.members.size(); ++member) {
    const auto seat = seats_.find(round.members[member]);
    if (seat == seats_.end() || seat->second.taken < number) continue;
    round.exchange->Ready(static_cast<int>(member), last);
  }
  return OkStatus();
}

Status LocalRoundsRule::BeginStep(int worker) {
  Seat& seat = seats_[worker];
  const EventQueue& queue = *job_->queue();
  seat.begin_ns = queue.now_ns();
  const ElementRange rows = rounds_[seat.round].rows.at(worker);
  LossResult loss;
  bool finite = true;
  {
    const WorkerInPlace place(seat.worker.get());
    RT_ASSIGN_OR_RETURN(loss, job_->net()->Compute(seat.step, rows, nullptr));
    const Stopwatch watch;
    finite =
        seat.worker->Update(loss, seat.step, job_->RateOf(seat.step), job_->optim().clip_norm());
    job_->real()->update += watch.Seconds();
  }
  if (!finite) {
    job_->log()->summary().not_finite =
        fmt::format("the loss or gradient of step {} of worker {}", seat.step + 1, worker);
    finished_ = true;
    return OkStatus();
  }
  const int64_t end_ns =
      job_->EndOfUpdate(worker, seat.step, job_->BeginPass(worker, seat.step, rows));
  job_->network()->cores()->Computes(worker, end_ns);
  job_->queue()->Schedule(end_ns, worker, [this, worker, loss] {
    return job_->is_dead(worker) ? OkStatus() : FinishStep(worker, loss);
  });
  return OkStatus();
}

Status LocalRoundsRule::FinishStep(int worker, const LossResult& loss) {
  Seat& seat = seats_[worker];
  const int64_t now_ns = job_->queue()->now_ns();
  ++seat.step;
  job_->log()->AddStep(now_ns, {.worker = worker,
                                .step = seat.step,
                                .epoch = job_->plan().EpochAt(seat.step),
                                .learning_rate = job_->RateOf(seat.step - 1),
                                .loss = loss,
                                .compute_ns = now_ns - seat.begin_ns,
                                .blocked_ns = seat.begin_ns - seat.idle_since_ns});
  int64_t& longest_ns = rounds_[seat.round].longest_step_ns;
  longest_ns = std::max(longest_ns, now_ns - seat.begin_ns);
  seat.idle_since_ns = now_ns;
  seat.images += static_cast<double>(loss.count);
  seat.expected += static_cast<double>(job_->plan().growth_run().images_per_batch *
                                       job_->plan().BatchesOf(seat.step - 1)) /
                   static_cast<double>(rounds_[seat.round].rows.size());
  return seat.step < EndStep(seat.round) ? BeginStep(worker) : Advance(worker);
}

// At a boundary, whenever something has changed that the worker may have waited for.
Status LocalRoundsRule::Advance(int worker) {
  Seat& seat = seats_[worker];
  const int64_t round = seat.round;
  const bool last = seat.step >= job_->plan().total_steps();
  RT_ASSIGN_OR_RETURN(bool merged, HasMerged(worker, round - 1));
  if (merged && seat.taken < round) RT_RETURN_IF_ERROR(Take(worker));
  if (merged && (delay_ == 0 || last)) {
    RT_ASSIGN_OR_RETURN(merged, HasMerged(worker, round));
  }
  seat.waits = !merged;
  if (!merged || last || finished_) return OkStatus();
  ++seat.round;
  return BeginRound(worker);
}

// After the work that the end of the round before was.
Status LocalRoundsRule::BeginRound(int worker) {
  const double work_ms = present_.size() > 1 || !outer_.averages() ? job_->compute().round_ms() : 0;
  if (work_ms == 0) return BeginStep(worker);
  Seat& seat = seats_[worker];
  const int64_t end_ns = job_->EndOfWork(worker, seat.step, work_ms / kMsPerSecond);
  seat.idle_since_ns += end_ns - job_->queue()->now_ns();  // it has not waited meanwhile
  job_->queue()->Schedule(end_ns, worker, [this, worker] {
    return job_->is_dead(worker) ? OkStatus() : BeginStep(worker);
  });
  return OkStatus();
}

Status LocalRoundsRule::Take(int worker) {
  const Stopwatch watch;
  Seat& seat = seats_[worker];
  Round& round = rounds_[seat.round];
  seat.taken = seat.round;
  // A listener needs the sum of this one change: its common weights are those before it.
  round.alone = round.members.size() == 1 && round.listeners.empty() && outer_.averages();
  if (round.alone) {
    std::ranges::copy(seat.worker->arena()->values(), seat.local->common_weights().begin());
    std::ranges::copy(seat.worker->arena()->buffer_values(),
                      seat.local->common_statistics().begin());
  } else {
    const double weight = seat.expected > 0 ? seat.images / seat.expected : 0;
    const double squares = seat.local->Take(weight);
    round.weights += weight;
    round.squares += squares;
    round.norms.Add(weight, squares);
  }
  job_->real()->exchange += watch.Seconds();
  round.images += seat.images;
  seat.images = seat.expected = 0;
  round.last_taken_ns = job_->queue()->now_ns();
  const auto member = std::ranges::find(round.members, worker) - round.members.begin();
  round.exchange->Ready(static_cast<int>(member), round.exchange->items() - 1);
  return ++round.taken == round.members.size() ? Sum(seat.round) : OkStatus();
}

// All have taken their changes, and none has merged them: the order of additions is fixed.
Status LocalRoundsRule::Sum(int64_t number) {
  Round& round = rounds_[number];
  round.summed = true;
  if (!round.alone) RT_RETURN_IF_ERROR(AddUp(number));
  // The common weights are still those before this round, as the workers have them now; those of a
  // worker that is alone are its own.
  if (delay_ > 0 && EndStep(number) < job_->plan().total_steps()) {
    if (round.alone) KeepCommon(round.members[0]);
    RT_RETURN_IF_ERROR(Judge(number));
  }
  return FixRound(number + delay_ + 1, std::exchange(joining_, {}));
}

Status LocalRoundsRule::AddUp(int64_t number) {
  const Stopwatch watch;
  const Round& round = rounds_[number];
  std::vector<WorkerCompression::Member> members;
  for (const int worker : round.members) {
    members.push_back({worker, seats_[worker].local->differences()});
  }
  const bool compresses = compression_ != nullptr && members.size() > 1;
  if (compresses) RT_RETURN_IF_ERROR(compression_->Reduce(TimeOf(number), members));
  sum_.Clear();
  for (const int worker : round.members) {
    LocalRound* const local = seats_[worker].local.get();
    sum_.AddStatistics(local);
    // Compressed, every member has the sum already.
    if (!compresses || worker == round.members[0]) sum_.AddDifferences(local);
  }
  job_->real()->exchange += watch.Seconds();
  return OkStatus();
}

Status LocalRoundsRule::OnArrived(int64_t number, int worker) {
  Round& round = rounds_[number];
  std::vector<int> reached = {worker};
  seats_[worker].arrived = number;
  round.last_arrived_ns = job_->queue()->now_ns();
  if (++round.arrived == round.members.size()) {
    for (const int listener : round.listeners) {
      seats_[listener].arrived = number;
      reached.push_back(listener);
    }
  }
  for (const int each : reached) {
    // Not from within the exchange, which ends with its round.
    job_->queue()->Schedule(job_->queue()->now_ns(), each, [this, each] {
      return Counts(each) && seats_[each].waits ? Advance(each) : OkStatus();
    });
  }
  return OkStatus();
}

StatusOr<bool> LocalRoundsRule::HasMerged(int worker, int64_t number) {
  Seat& seat = seats_[worker];
  if (seat.merged >= number) return true;
  if (seat.arrived < number) return false;
  Round& round = rounds_[number];
  if (!round.alone) {
    const Stopwatch watch;
    sum_.CopyTo(seat.local.get());
    const int64_t last_step = EndStep(number) - 1;
    round.change_squares = seat.local->Merge(number, round.weights, job_->RateOf(last_step));
    job_->real()->exchange += watch.Seconds();
  }
  seat.merged = number;
  RT_RETURN_IF_ERROR(EndRoundIfMerged(number));
  return true;
}

Status LocalRoundsRule::EndRoundIfMerged(int64_t number) {
  const Round& round = rounds_[number];
  if (!round.summed) return OkStatus();
  for (const std::vector<int>* workers : {&round.members, &round.listeners}) {
    for (const int worker : *workers) {
      if (Counts(worker) && seats_[worker].merged < number) return OkStatus();
    }
  }
  return EndRound(number);
}

Status LocalRoundsRule::EndRound(int64_t number) {
  const Round& round = rounds_[number];
  const int64_t now_ns = job_->queue()->now_ns(), step = EndStep(number);
  const auto source = std::ranges::find_if(round.members, [&](int w) { return Counts(w); });
  if (source == round.members.end()) return OkStatus();  // all are dead
  const RoundEnd end{.round = number,
                     .step = step,
                     .workers = std::ssize(round.members),
                     .images = round.images,
                     .squares = round.squares,
                     .change_squares = round.change_squares,
                     .cosine = CosineOf(round),
                     .exchange_ns = round.last_arrived_ns - round.last_taken_ns};
  job_->log()->AddRound(now_ns, end);
  period_.AfterRound(FirstStep(number), {.step_seconds = Seconds(round.longest_step_ns),
                                         .exchange_seconds = Seconds(end.exchange_ns),
                                         .cosine = end.cosine});
  job_->log()->summary().steps = step;
  KeepCommon(*source);
  if (delay_ == 0 || step >= job_->plan().total_steps()) RT_RETURN_IF_ERROR(Judge(number));
  if (finished_) return OkStatus();
  job_->net()->Forget(step);
  RT_RETURN_IF_ERROR(SeatNewcomers(number + delay_ + 1, *source));
  rounds_.erase(number);
  return OkStatus();
}

// As real ranks know it.
std::optional<double> LocalRoundsRule::CosineOf(const Round& round) const {
  if (compression_ != nullptr) return std::nullopt;
  return MeanCosine(round.norms, round.change_squares * round.weights * round.weights);
}

// The common weights to the model's arena.
void LocalRoundsRule::KeepCommon(int source) {
  LocalRound* const local = seats_[source].local.get();
  std::ranges::copy(local->common_weights(), job_->arena()->values().begin());
  std::ranges::copy(local->common_statistics(), job_->arena()->buffer_values().begin());
}

// What is done with the common weights when the steps of a round have ended.
Status LocalRoundsRule::Judge(int64_t number) {
  const int64_t begin = FirstStep(number), end = EndStep(number);
  WeightAverage* const average = job_->state()->average();
  if (average != nullptr) average->Update(end - 1, end - begin);
  RT_RETURN_IF_ERROR(job_->EvaluateIfDue(begin, end));
  finished_ = job_->IsEnd(end);
  return OkStatus();
}

}  // namespace ringtail
