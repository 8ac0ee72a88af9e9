#include "apps/trainer/training_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "apps/csv.h"
#include "apps/stop_signal.h"
#include "core/random.h"
#include "data/manifest.h"
#include "dist/collectives/plan.h"

namespace ringtail {
namespace {

void Remove(const std::unordered_set<int64_t>& bad, std::vector<int64_t>* indices) {
  std::erase_if(*indices, [&](int64_t i) { return bad.contains(i); });
}

// A line for each: "<sample> <reason>".
std::string BadPicturesText(const std::vector<BadPicture>& bad) {
  std::string text;
  for (const BadPicture& picture : bad) {
    std::string reason = picture.reason;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    text += fmt::format("{} {}\n", picture.sample, reason);
  }
  return text;
}

StatusOr<std::vector<BadPicture>> ParseBadPictures(const std::string& text,
                                                   const Dataset& dataset) {
  std::vector<BadPicture> bad;
  std::istringstream lines(text);
  BadPicture picture;
  while (lines >> picture.sample && std::getline(lines.ignore(), picture.reason)) {
    if (picture.sample < 0 || picture.sample >= static_cast<int64_t>(dataset.samples().size())) {
      return DataLoss(fmt::format("another rank has found picture {}, of {}, to be bad",
                                  picture.sample, dataset.samples().size()));
    }
    picture.key = dataset.samples()[picture.sample].key;
    bad.push_back(picture);
  }
  return bad;
}

// What cannot be used of `used`, ascending, whoever has found it.
StatusOr<std::vector<BadPicture>> Scan(const Dataset& dataset, const std::vector<int64_t>& used,
                                       const DataConfig& config, TrainingWorld* world) {
  const auto scan = [&](const std::vector<int64_t>& pictures) {
    return ScanPictures(dataset, pictures, config, /*decode=*/true,
                        [] { return StopSignal() != 0; });
  };
  if (world == nullptr || world->alone()) return scan(used);
  RT_RETURN_IF_ERROR(world->Agree("the list of pictures",
                                  fmt::format("{:016x}", DatasetFingerprint(dataset, used))));
  const ElementRange own =
      EvenPart(static_cast<int64_t>(used.size()), world->size(), world->rank());
  RT_ASSIGN_OR_RETURN(const std::vector<BadPicture> found,
                      scan({used.begin() + own.offset, used.begin() + own.end()}));
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      world->GatherText(BadPicturesText(found)));
  std::vector<BadPicture> all;
  for (const std::string& text : texts) {
    RT_ASSIGN_OR_RETURN(const std::vector<BadPicture> bad, ParseBadPictures(text, dataset));
    all.insert(all.end(), bad.begin(), bad.end());
  }
  return all;
}

}  // namespace

StatusOr<TrainingData> TrainingData::Open(const DataConfig& config, TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(config));
  return Prepare(std::move(dataset), config, world);
}

StatusOr<TrainingData> TrainingData::Prepare(std::unique_ptr<Dataset> dataset,
                                             const DataConfig& config, TrainingWorld* world) {
  TrainingData data;
  data.dataset = std::move(dataset);
  RT_ASSIGN_OR_RETURN(data.split, SplitDataset(config.split(), data.dataset->samples()));
  std::vector<int64_t> used = data.split.train;
  used.insert(used.end(), data.split.validation.begin(), data.split.validation.end());
  std::sort(used.begin(), used.end());
  RT_ASSIGN_OR_RETURN(data.bad, Scan(*data.dataset, used, config, world));
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

std::string TrainingData::Counts() const {
  return fmt::format("{} to train on, {} to validate, {} left out", split.train.size(),
                     split.validation.size(), bad.size());
}

std::string BadPicturesCsv(const std::vector<BadPicture>& bad) {
  std::string csv = "key,reason\n";
  for (const BadPicture& picture : bad) {
    csv += fmt::format("{},{}\n", CsvField(picture.key), CsvField(picture.reason));
  }
  return csv;
}

}  // namespace ringtail
