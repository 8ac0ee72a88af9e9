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
      CheckBadPictures(data.bad, static_cast<int64_t>(used.size()), config.bad_pictures()));
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
