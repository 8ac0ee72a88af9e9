#include "apps/trainer/early_statistics.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text/counted.h"

namespace ringtail {
namespace {

// With the usual momentum of 0.1 the start has no more part in the statistics (0.9^100), and the
// first, largest changes of the weights lie behind.
constexpr int64_t kYoungUpdates = 100;
// Of the loss of training, or of guessing, ln(classes).
constexpr double kFarAbove = 5;

}  // namespace

std::string ExplainEarlyLoss(const EarlyEvaluation& evaluation) {
  if (evaluation.classes < 2) return "";
  const double guessing = std::log(static_cast<double>(evaluation.classes));
  const bool young = evaluation.steps * evaluation.updates_of_step < kYoungUpdates;
  const bool differs = evaluation.validation_loss > kFarAbove * guessing &&
                       evaluation.validation_loss > kFarAbove * evaluation.training_loss;
  if (!young || !differs) return "";
  return fmt::format(
      "the validation loss is so far above that of training ({:.2f}) because batch norm validates "
      "with running statistics, which lag behind the weights after {}: it falls with more steps (a "
      "smaller train.batch has more in an epoch)",
      evaluation.training_loss, Counted(evaluation.steps, "step"));
}

}  // namespace ringtail
