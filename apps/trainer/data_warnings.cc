#include "apps/trainer/data_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/text/counted.h"
#include "data/class_balance.h"
#include "data/describe.h"
#include "optim/batch_scaling.h"

namespace ringtail {
namespace {

// "'a', 'b', 'c', 'd', 'e', ..."
std::string Names(const std::vector<std::string>& names) {
  constexpr size_t kMost = 5;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) shown.push_back("'" + names[i] + "'");
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kMost ? ", ..." : "");
}

std::string WarnOfEmptyFolders(const std::vector<std::string>& folders) {
  if (folders.empty()) return "";
  const bool one = folders.size() == 1;
  return fmt::format(
      "{} {} {} no images, so the network will not know {}; put images there, or remove {}",
      one ? "the class folder" : "the class folders", Names(folders), one ? "has" : "have",
      one ? "this class" : "these classes", one ? "it" : "them");
}

// Classes of the data set without images that train.
std::string WarnOfMissing(const std::vector<std::string>& classes) {
  if (classes.empty()) return "";
  return fmt::format(
      "there is no image of {} {} to train on, so the network will never answer {}; add images, or "
      "split them in another way (data.split)",
      classes.size() == 1 ? "class" : "classes", Names(classes),
      classes.size() == 1 ? "it" : "them");
}

// A batch of each rank with which an epoch has kFewStepsPerEpoch steps or more: a power of two.
int64_t SmallerBatch(int64_t images, int64_t ranks) {
  int64_t batch = 1;
  while (2 * batch * kFewStepsPerEpoch * ranks <= images) batch *= 2;
  return batch;
}

std::string WarnOfVeryFewSteps(int64_t images, const TrainConfig& train, int64_t global_batch) {
  const int64_t steps = images / global_batch;
  if (steps > kVeryFewSteps) return "";
  const int64_t ranks = std::max<int64_t>(global_batch / train.batch(), 1);
  const int64_t parts = train.accumulation();  // divides the batch
  const int64_t batch = (SmallerBatch(images, ranks) + parts - 1) / parts * parts;
  if (batch >= train.batch()) return "";
  return fmt::format(
      "{} in batches of {} are {} an epoch, and weights change only once a step: --set "
      "train.batch={} makes {} steps, or take more epochs (train.epochs)",
      Counted(images, "training image"), global_batch, Counted(steps, "step"), batch,
      images / (batch * ranks));
}

std::string WarnOfImbalance(const std::vector<std::string>& names,
                            const std::vector<int64_t>& counts, const DataConfig& config) {
  if (config.class_balance() > 0) return "";
  const auto most = std::max_element(counts.begin(), counts.end());
  auto least = most;
  for (auto count = counts.begin(); count != counts.end(); ++count) {
    if (*count > 0 && *count < *least) least = count;
  }
  if (*most <= kUnbalanced * *least) return "";
  const std::string &rare = names[least - counts.begin()], &often = names[most - counts.begin()];
  return fmt::format(
      "class '{}' has {} to train on and '{}' only {}: the network may seldom answer '{}'; --set "
      "data.class_balance=0.5 lets rare classes count more in the loss (1: all classes the same)",
      often, GroupDigits(*most) + " images", rare, GroupDigits(*least), rare);
}

}  // namespace

std::vector<std::string> DataWarnings(const TrainingData& data, const RunConfig& config,
                                      int64_t global_batch) {
  const std::vector<std::string>& names = data.dataset->class_names();
  const std::vector<int64_t> counts = ClassCounts(*data.dataset, data.split.train);
  std::vector<std::string> present, missing;
  for (size_t i = 0; i < counts.size(); ++i)
    (counts[i] > 0 ? present : missing).push_back(names[i]);
  std::vector<std::string> warnings;
  const auto warn = [&](std::string text) {
    if (!text.empty()) warnings.push_back(std::move(text));
  };
  if (present.size() == 1) {
    warn(fmt::format(
        "all training images are of one class, '{0}', so there is nothing to tell apart and every "
        "answer will be '{0}'; add images of another class",
        present[0]));
  } else {
    warn(WarnOfMissing(missing));
  }
  warn(WarnOfEmptyFolders(data.dataset->empty_classes()));
  warn(WarnOfVeryFewSteps(std::ssize(data.split.train), config.train(), global_batch));
  if (present.size() > 1) warn(WarnOfImbalance(names, counts, config.data()));
  return warnings;
}

}  // namespace ringtail
