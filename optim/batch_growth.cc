#include "optim/batch_growth.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "core/config/field_check.h"
#include "core/text/counted.h"
#include "optim/batch_scaling.h"
#include "optim/schedule.h"

namespace ringtail {
namespace {

constexpr int64_t kImagesPerLargestBatch = 10;  // max_batch 0: one of so many parts of all images
// A whole factor counts as reached even if 1 / gamma^n is a rounding error below it.
constexpr double kFactorSlack = 1e-9;
constexpr size_t kStagesListed = 5;

// The rate of steps of one batch each.
double ScheduledRate(const OptimConfig& config, const GrowthRun& run, int64_t batch) {
  return LearningRate(config, batch, run.total_batches, static_cast<double>(run.batches_per_epoch));
}

// k of a step that begins after `batch` batches.
int64_t BatchesOfStep(const OptimConfig& config, const GrowthRun& run, int64_t batch) {
  const double reduction =
      RateReduction(config, batch, run.total_batches, static_cast<double>(run.batches_per_epoch));
  return static_cast<int64_t>(
      std::min(reduction * (1 + kFactorSlack), static_cast<double>(run.most_batches)));
}

// The first batch, at or after `from`, at which a step takes more than `batches`; total_batches if
// there is none.
int64_t NextMark(const OptimConfig& config, const GrowthRun& run, int64_t from, int64_t batches) {
  int64_t end = run.total_batches;
  while (from < end) {
    const int64_t middle = from + (end - from) / 2;
    if (BatchesOfStep(config, run, middle) > batches) {
      end = middle;
    } else {
      from = middle + 1;
    }
  }
  return end;
}

double EpochOf(const GrowthRun& run, int64_t batch) {
  return static_cast<double>(batch) / static_cast<double>(run.batches_per_epoch);
}

bool NeverFalls(const OptimConfig& config) {
  return config.has_constant() || (config.has_step() && config.step().gamma() >= 1) ||
         (config.has_multi_step() && config.multi_step().gamma() >= 1);
}

// "128 -> 640 -> 3200"; of many stages, the first and last only.
std::string ListBatches(const GrowthRun& run, std::span<const GrowthStage> stages) {
  const auto size = [&](const GrowthStage& s) { return s.batches * run.images_per_batch; };
  if (stages.size() > kStagesListed) {
    return fmt::format("{} -> {} in {} stages", size(stages.front()), size(stages.back()),
                       stages.size() - 1);
  }
  std::string text = std::to_string(size(stages.front()));
  for (const GrowthStage& stage : stages.subspan(1)) text += fmt::format(" -> {}", size(stage));
  return text;
}

std::string WarnOfNoGrowth(const GrowthRun& run) {
  if (run.most_batches > 1) {
    return "batch_growth never grows the batch: the rate does not fall to half of its peak before "
           "the last step";
  }
  return fmt::format(
      "batch_growth never grows the batch: it may not become twice the {} images that the run "
      "begins with; set optim.batch_growth.max_batch higher (unset: a tenth of all images)",
      run.images_per_batch);
}

}  // namespace

Status ValidateBatchGrowth(const OptimConfig& config, const ConfigSource* source) {
  if (!config.has_batch_growth()) return OkStatus();
  if (NeverFalls(config)) {
    return FieldCheck(source, "optim")
        .Error(
            "batch_growth",
            "batch_growth grows the batch where the schedule lowers the rate, and this one never "
            "does; use step or multi_step with a gamma below 1, polynomial, cosine or one_cycle");
  }
  return FieldCheck(source, "optim.batch_growth")
      .NotNegative("max_batch", config.batch_growth().max_batch());
}

StatusOr<int64_t> MostBatches(const OptimConfig& config, int64_t images_per_batch, int64_t images) {
  RT_CHECK(images_per_batch > 0, "an empty batch");
  if (!config.has_batch_growth()) return 1;
  const int64_t stated = config.batch_growth().max_batch();
  if (stated > images) {
    return InvalidArgument(
        fmt::format("optim.batch_growth.max_batch is {}, but there are {} images to train on; set "
                    "it lower, or leave it out for a tenth of them",
                    stated, images));
  }
  if (stated > 0 && stated < images_per_batch) {
    return InvalidArgument(
        fmt::format("optim.batch_growth.max_batch is {}, but the run begins with {} images over "
                    "all ranks; set it higher, or train.batch lower",
                    stated, images_per_batch));
  }
  const int64_t largest = stated > 0 ? stated : images / kImagesPerLargestBatch;
  return std::max<int64_t>(1, largest / images_per_batch);
}

std::vector<GrowthStage> GrowthStages(const OptimConfig& config, const GrowthRun& run) {
  std::vector<GrowthStage> stages(1);
  while (stages.back().batches < run.most_batches) {
    const GrowthStage& last = stages.back();
    const int64_t mark = NextMark(config, run, last.first_batch, last.batches);
    // Steps are whole.
    const int64_t steps = (mark - last.first_batch + last.batches - 1) / last.batches;
    const int64_t first_batch = last.first_batch + steps * last.batches;
    if (first_batch >= run.total_batches) break;
    stages.push_back(
        {.first_step = last.first_step + steps,
         .first_batch = first_batch,
         .batches = std::max(last.batches + 1, BatchesOfStep(config, run, first_batch))});
  }
  return stages;
}

double GrownRate(const OptimConfig& config, const GrowthRun& run, int64_t first_batch,
                 int64_t batches) {
  return static_cast<double>(batches) * ScheduledRate(config, run, first_batch);
}

std::string DescribeStage(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, size_t stage) {
  const GrowthStage& now = stages[stage];
  const int64_t before = stages[stage - 1].batches;
  std::string text = fmt::format(
      "epoch {:.4g}: batch {} -> {} in place of rate {:.4g} -> {:.4g} (batch_growth)",
      EpochOf(run, now.first_batch), before * run.images_per_batch,
      now.batches * run.images_per_batch, GrownRate(config, run, now.first_batch, now.batches),
      GrownRate(config, run, now.first_batch, before));
  if (now.batches == run.most_batches) text += "; the largest: from now on the rate falls";
  return text;
}

GrowthReport ReportGrowth(const OptimConfig& config, const GrowthRun& run,
                          std::span<const GrowthStage> stages, int64_t total_steps) {
  GrowthReport report;
  if (!config.has_batch_growth()) return report;
  if (stages.size() == 1) {
    report.warnings.push_back(WarnOfNoGrowth(run));
    return report;
  }
  report.summary = fmt::format(
      "batch {} in place of lower rates, from epoch {:.4g} on: {} steps instead of {} "
      "(batch_growth)",
      ListBatches(run, stages), EpochOf(run, stages[1].first_batch), total_steps,
      run.total_batches);
  const int64_t fewest = run.batches_per_epoch / stages.back().batches;
  if (fewest < kFewStepsPerEpoch) {
    report.warnings.push_back(fmt::format(
        "a batch of {} leaves {} in an epoch; below {}, batches cease to be small beside the "
        "data, which batch_growth builds on: set optim.batch_growth.max_batch lower",
        stages.back().batches * run.images_per_batch, Counted(fewest, "step"), kFewStepsPerEpoch));
  }
  return report;
}

}  // namespace ringtail
