#include "apps/trainer/training_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "apps/csv.h"
#include "apps/stop_signal.h"
#include "core/random.h"
#include "data/manifest.h"

namespace ringtail {
namespace {

constexpr size_t kBadInMessage = 5;  // named in an error; all of them are in the log

Status CheckPolicy(const BadPicturesConfig& config, const std::vector<BadPicture>& bad,
                   int64_t pictures) {
  if (bad.empty()) return OkStatus();
  const double fraction = static_cast<double>(bad.size()) / static_cast<double>(pictures);
  const bool fail = config.policy() == BadPicturesConfig::FAIL;
  if (!fail && fraction <= config.max_fraction()) return OkStatus();
  std::string names;
  for (size_t i = 0; i < std::min(bad.size(), kBadInMessage); ++i) {
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", bad[i].key, bad[i].reason);
  }
  if (bad.size() > kBadInMessage) names += ", ...";
  return DataLoss(fmt::format(
      "{} of {} pictures cannot be used: {}; {}", bad.size(), pictures, names,
      fail ? "data.bad_pictures.policy is FAIL: remove them or set it to SKIP"
           : fmt::format("that is more than data.bad_pictures.max_fraction = {} allows: look at "
                         "the data or raise it",
                         config.max_fraction())));
}

void Remove(const std::unordered_set<int64_t>& bad, std::vector<int64_t>* indices) {
  std::erase_if(*indices, [&](int64_t i) { return bad.contains(i); });
}

}  // namespace

StatusOr<TrainingData> TrainingData::Open(const DataConfig& config) {
  RT_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(config));
  return Prepare(std::move(dataset), config);
}

StatusOr<TrainingData> TrainingData::Prepare(std::unique_ptr<Dataset> dataset,
                                             const DataConfig& config) {
  TrainingData data;
  data.dataset = std::move(dataset);
  RT_ASSIGN_OR_RETURN(data.split, SplitDataset(config.split(), data.dataset->samples()));
  std::vector<int64_t> used = data.split.train;
  used.insert(used.end(), data.split.validation.begin(), data.split.validation.end());
  std::sort(used.begin(), used.end());
  RT_ASSIGN_OR_RETURN(data.bad, ScanPictures(*data.dataset, used, config, /*decode=*/true,
                                             [] { return StopSignal() != 0; }));
  RT_RETURN_IF_ERROR(
      CheckPolicy(config.bad_pictures(), data.bad, static_cast<int64_t>(used.size())));
  std::unordered_set<int64_t> bad;
  for (const BadPicture& picture : data.bad) bad.insert(picture.sample);
  Remove(bad, &data.split.train);
  Remove(bad, &data.split.validation);
  data.fingerprint = RngKey(DatasetFingerprint(*data.dataset, data.split.train))
                         .With(DatasetFingerprint(*data.dataset, data.split.validation))
                         .bits();
  return data;
}

std::string BadPicturesCsv(const std::vector<BadPicture>& bad) {
  std::string csv = "key,reason\n";
  for (const BadPicture& picture : bad) {
    csv += fmt::format("{},{}\n", CsvField(picture.key), CsvField(picture.reason));
  }
  return csv;
}

}  // namespace ringtail
