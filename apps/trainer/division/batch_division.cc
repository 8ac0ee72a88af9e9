#include "apps/trainer/division/batch_division.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/division/proportional_batches.h"
#include "core/parallel_for.h"
#include "dist/collectives/plan.h"

namespace ringtail {
namespace {

constexpr size_t kRanksShown = 8;

int64_t Sum(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

bool IsOfWorld(const RankBatches& saved, const TrainingWorld& world) {
  return saved.batches.size() == static_cast<size_t>(world.size());
}

std::string SpeedText(double speed) {
  constexpr double kManyDigits = 10;
  return fmt::format(fmt::runtime(speed < kManyDigits ? "{:.2g}" : "{:.0f}"), speed);
}

std::string BatchesText(const std::vector<int64_t>& batches) {
  const auto [least, most] = std::ranges::minmax(batches);
  const std::string all = batches.size() <= kRanksShown
                              ? fmt::format("{}", fmt::join(batches, ", "))
                              : fmt::format("{} .. {}", least, most);
  return fmt::format("batches {} of {}", all, Sum(batches));
}

std::string SpeedsText(const std::vector<double>& speeds) {
  const auto [least, most] = std::ranges::minmax(speeds);
  if (speeds.size() > kRanksShown) {
    return fmt::format("{} .. {}", SpeedText(least), SpeedText(most));
  }
  std::string text;
  for (size_t i = 0; i < speeds.size(); ++i) {
    if (i > 0) text += i + 1 < speeds.size() ? ", " : " and ";
    text += SpeedText(speeds[i]);
  }
  return text;
}

std::string DescribeSpeeds(const std::vector<int64_t>& batches, const std::vector<double>& speeds) {
  const std::vector<double> evened = EvenedSpeeds(speeds);
  const bool equal = std::ranges::count(evened, evened[0]) == std::ssize(evened);
  return equal ? fmt::format("{}: speeds of {} images/s count as equal (--local-batch auto)",
                             BatchesText(batches), SpeedsText(speeds))
               : fmt::format("{}: in proportion to speeds {} images/s (--local-batch auto)",
                             BatchesText(batches), SpeedsText(speeds));
}

// A rank computes its batch in train.accumulation equal parts.
Status CheckDivisible(int64_t total, const TrainConfig& train, const TrainingWorld& world) {
  const int64_t unit = train.accumulation();
  if (total % unit == 0 && total / unit >= world.size()) return OkStatus();
  const std::string what = fmt::format(
      "{} images over all ranks cannot be divided among {} ranks, each with a multiple "
      "of {} (train.accumulation)",
      total, world.size(), unit);
  if (total % unit != 0) {
    return InvalidArgument(what + "; did the run begin with another value of it?");
  }
  return InvalidArgument(fmt::format("{}; start at most {} (ringtail_launch -n {})", what,
                                     total / unit, total / unit));
}

StatusOr<BatchDivision> DivideBySpeed(const BatchRequest& request, const RankBatches& saved,
                                      const TrainConfig& train, const MeasureSpeed& measure,
                                      TrainingWorld* world) {
  BatchDivision division;
  RT_ASSIGN_OR_RETURN(division.all.machines, world->GatherText(ThisMachine()));
  if (IsOfWorld(saved, *world) && saved.machines == division.all.machines) {
    division.all.batches = saved.batches;
    division.summary =
        fmt::format("{}: as the run began, on machines of the same kinds (--local-batch auto)",
                    BatchesText(division.all.batches));
    return division;
  }
  const int64_t total =
      saved.global_batch > 0 ? saved.global_batch : world->size() * int64_t{train.batch()};
  RT_RETURN_IF_ERROR(CheckDivisible(total, train, *world));
  const int64_t unit = train.accumulation();
  const int64_t even = total / unit / world->size() * unit;
  StatusOr<double> own = request.speed ? StatusOr<double>(request.speed()) : measure(even);
  RT_RETURN_IF_ERROR(Status(own.status()));
  RT_ASSIGN_OR_RETURN(const std::vector<double> speeds, world->Gather(*own));
  division.all.batches = ProportionalBatches(speeds, total, unit);
  division.summary = DescribeSpeeds(division.all.batches, speeds);
  return division;
}

StatusOr<BatchDivision> DivideAsAsked(const BatchRequest& request, const RankBatches& saved,
                                      const TrainConfig& train, TrainingWorld* world) {
  int64_t own = train.batch();
  if (saved.global_batch > 0) {
    const int64_t unit = train.accumulation();
    own = EvenPart(saved.global_batch / unit, world->size(), world->rank()).count * unit;
  }
  if (IsOfWorld(saved, *world)) own = saved.batches[world->rank()];
  if (request.local > 0) own = request.local;
  BatchDivision division;
  RT_ASSIGN_OR_RETURN(division.all.batches, world->Gather(own));
  return division;
}

// A run that continues keeps the batch of all ranks that it `began` with; 0: not known.
Status CheckGlobalBatch(int64_t began, int64_t now) {
  if (began == 0 || began == now) return OkStatus();
  return InvalidArgument(
      fmt::format("the run began with batches of {} images over all ranks, which now take {}; omit "
                  "--local-batch, make them add up to {}, or give every rank --local-batch auto",
                  began, now, began));
}

// Every rank checks all, so that all end with the same error, and none with the loss of another
// rank.
Status Check(const BatchShare& own, const std::vector<int64_t>& all, int64_t wanted,
             const TrainConfig& train, const TrainingWorld& world) {
  if (wanted > 0) RT_RETURN_IF_ERROR(CheckDivisible(wanted, train, world));
  RT_RETURN_IF_ERROR(CheckGlobalBatch(wanted, own.global_batch));
  for (int rank = 0; rank < world.size(); ++rank) {
    const int64_t batch = all[static_cast<size_t>(rank)];
    if (batch >= 1 && batch % train.accumulation() == 0) continue;
    return InvalidArgument(fmt::format(
        "{} would compute {} of {} images in {} equal parts (train.accumulation); give "
        "it --local-batch N, a multiple of {}, or all ranks --local-batch auto",
        world.Describe(rank), batch, own.global_batch, train.accumulation(), train.accumulation()));
  }
  return OkStatus();
}

}  // namespace

StatusOr<BatchDivision> DivideBatch(const BatchRequest& request, const TrainConfig& train,
                                    const SavedBatches& before, const MeasureSpeed& measure,
                                    TrainingWorld* world) {
  RT_RETURN_IF_ERROR(world->Agree("--local-batch", request.by_speed ? "auto" : "not auto"));
  RT_ASSIGN_OR_RETURN(const RankBatches saved,
                      ShareBatches(before.batches, before.source_rank, world));
  const bool by_speed = request.by_speed && !world->alone();
  RT_ASSIGN_OR_RETURN(BatchDivision division,
                      by_speed ? DivideBySpeed(request, saved, train, measure, world)
                               : DivideAsAsked(request, saved, train, world));
  RT_ASSIGN_OR_RETURN(division.all.threads, world->Gather(int64_t{NumComputeThreads()}));
  const auto first = division.all.batches.begin();
  division.own = {.first_row = std::accumulate(first, first + world->rank(), int64_t{0}),
                  .batch = division.all.batches[world->rank()],
                  .global_batch = Sum(division.all.batches)};
  division.all.global_batch = division.own.global_batch;
  RT_RETURN_IF_ERROR(Check(division.own, division.all.batches, saved.global_batch, train, *world));
  return division;
}

}  // namespace ringtail
