#include "apps/trainer/training_data.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "apps/csv.h"
#include "apps/trainer/same_files.h"
#include "core/random.h"
#include "core/stop_signal.h"
#include "core/storage/file.h"
#include "data/manifest.h"
#include "data/scan.h"
#include "dist/collectives/plan.h"

namespace ringtail {
namespace {

void Remove(const std::unordered_set<int64_t>& bad, std::vector<int64_t>* indices) {
  std::erase_if(*indices, [&](int64_t i) { return bad.contains(i); });
}

// A line for each: "<sample> <reason>".
std::string BadImagesText(const std::vector<BadImage>& bad) {
  std::string text;
  for (const BadImage& image : bad) {
    std::string reason = image.reason;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    text += fmt::format("{} {}\n", image.sample, reason);
  }
  return text;
}

StatusOr<std::vector<BadImage>> ParseBadImages(const std::string& text, const Dataset& dataset) {
  std::vector<BadImage> bad;
  std::istringstream lines(text);
  BadImage image;
  while (lines >> image.sample && std::getline(lines.ignore(), image.reason)) {
    if (image.sample < 0 || image.sample >= static_cast<int64_t>(dataset.samples().size())) {
      return DataLoss(fmt::format("another rank has reported a bad image {} of {}", image.sample,
                                  dataset.samples().size()));
    }
    image.key = dataset.samples()[image.sample].key;
    bad.push_back(image);
  }
  return bad;
}

// What a scan of images has found.
struct Scan {
  std::vector<BadImage> bad;  // ascending
  uint64_t contents_sum = 0;  // ImageFingerprint of the others
};

// Each rank scans a share of the images; the sizes of all files are compared between ranks.
StatusOr<Scan> ScanTogether(const Dataset& dataset, const std::vector<int64_t>& used,
                            const DataConfig& config, TrainingWorld* world,
                            const std::function<StatusOr<Scan>(std::vector<int64_t>)>& scan) {
  RT_RETURN_IF_ERROR(world->Agree("the list of images",
                                  fmt::format("{:016x}", DatasetFingerprint(dataset, used))));
  RT_RETURN_IF_ERROR(AgreeOnFiles(dataset, used, config.workers(), world));
  const ElementRange own =
      EvenPart(static_cast<int64_t>(used.size()), world->size(), world->rank());
  RT_ASSIGN_OR_RETURN(const Scan found,
                      scan({used.begin() + own.offset, used.begin() + own.end()}));
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                      world->GatherText(BadImagesText(found.bad)));
  RT_ASSIGN_OR_RETURN(const std::vector<uint64_t> sums, world->Gather(found.contents_sum));
  Scan all;
  for (const std::string& text : texts) {
    RT_ASSIGN_OR_RETURN(const std::vector<BadImage> bad, ParseBadImages(text, dataset));
    all.bad.insert(all.bad.end(), bad.begin(), bad.end());
  }
  all.contents_sum = std::accumulate(sums.begin(), sums.end(), uint64_t{0});
  return all;
}

StatusOr<Scan> ScanAll(const Dataset& dataset, const std::vector<int64_t>& used,
                       const DataConfig& config, TrainingWorld* world) {
  const auto scan = [&](const std::vector<int64_t>& images) -> StatusOr<Scan> {
    Scan result;
    RT_ASSIGN_OR_RETURN(result.bad, ScanImages(
                                        dataset, images, config, /*decode=*/true,
                                        [] { return StopSignal() != 0; }, &result.contents_sum));
    return result;
  };
  if (world->alone()) return scan(used);  // spares the sizes of files
  return ScanTogether(dataset, used, config, world, scan);
}

// If there are too many bad images, the user needs the names of all of them.
Status CheckBad(const std::vector<BadImage>& bad, int64_t used, const BadImagesConfig& config,
                const std::string& list) {
  Status status = CheckBadImages(bad, used, config);
  if (status.ok() || list.empty()) return status;
  const Status written = WriteFileAtomic(list, BadImagesCsv(bad));
  return Status(status.code(), written.ok()
                                   ? fmt::format("{}; all of them: {}", status.message(), list)
                                   : status.message());
}

}  // namespace

StatusOr<TrainingData> TrainingData::Open(const DataConfig& config, TrainingWorld* world,
                                          const std::string& bad_list) {
  RT_ASSIGN_OR_RETURN(auto dataset, Dataset::Open(config));
  return Prepare(std::move(dataset), config, world, bad_list);
}

StatusOr<TrainingData> TrainingData::Prepare(std::unique_ptr<Dataset> dataset,
                                             const DataConfig& config, TrainingWorld* world,
                                             const std::string& bad_list) {
  TrainingData data;
  data.dataset = std::move(dataset);
  RT_ASSIGN_OR_RETURN(data.split, SplitDataset(config.split(), data.dataset->samples()));
  std::vector<int64_t> used = data.split.train;
  used.insert(used.end(), data.split.validation.begin(), data.split.validation.end());
  std::sort(used.begin(), used.end());
  RT_ASSIGN_OR_RETURN(Scan scan, ScanAll(*data.dataset, used, config, world));
  data.bad = std::move(scan.bad);
  data.contents = scan.contents_sum;
  RT_RETURN_IF_ERROR(CheckBad(data.bad, std::ssize(used), config.bad_images(), bad_list));
  std::unordered_set<int64_t> bad;
  for (const BadImage& image : data.bad) bad.insert(image.sample);
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

Status TrainingData::CheckClasses(int64_t outputs) const {
  const std::vector<std::string>& names = dataset->class_names();
  if (std::ssize(names) <= outputs) return OkStatus();
  return InvalidArgument(fmt::format(
      "the images have {} classes ({}), the network tells {} apart; change the last layer",
      names.size(), fmt::join(names, ", "), outputs));
}

DataIdentity TrainingData::Identity() const {
  return {.fingerprint = fmt::format("{:016x}", fingerprint),
          .contents = fmt::format("{:016x}", contents),
          .counts = Counts()};
}

std::string BadImagesCsv(const std::vector<BadImage>& bad) {
  std::string csv = "key,reason\n";
  for (const BadImage& image : bad) {
    csv += fmt::format("{},{}\n", CsvField(image.key), CsvField(image.reason));
  }
  return csv;
}

}  // namespace ringtail
