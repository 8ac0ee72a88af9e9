#include "apps/grad_cam/overlay_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_set>

#include "apps/csv.h"
#include "apps/grad_cam/overlay.h"
#include "core/check.h"
#include "core/stop_signal.h"
#include "core/storage/file.h"
#include "data/loader.h"
#include "data/render.h"

namespace ringtail {
namespace {

constexpr int kJpegQuality = 90;
constexpr int64_t kMostImagesInMemory = 16;

// "a/cat.7.png" -> "cat.7.grad_cam.jpg", or "cat.7-2.grad_cam.jpg" if that is taken: never the name
// of an image, which may be in the same folder.
std::string OverlayName(const std::string& image, std::unordered_set<std::string>* taken) {
  const std::string stem = std::filesystem::path(image).stem().string();
  std::string name = stem + ".grad_cam.jpg";
  for (int i = 2; !taken->insert(name).second; ++i)
    name = fmt::format("{}-{}.grad_cam.jpg", stem, i);
  return name;
}

struct Table {
  std::string layer;
  const std::vector<std::string>& class_names;
  std::string text = "image,overlay,label,layer,height,width,map\n";

  void Add(const std::string& image, const std::string& overlay, int32_t predicted,
           const ActivationMap& map) {
    const std::string label = predicted < std::ssize(class_names)
                                  ? class_names[predicted]
                                  : fmt::format("class {}", predicted);
    text +=
        fmt::format("{},{},{},{},{},{},{}\n", CsvField(image), CsvField(overlay), CsvField(label),
                    CsvField(layer), map.height, map.width, fmt::join(map.values, " "));
  }
};

}  // namespace

Status WriteGradCamFiles(Model* model, const Dataset& dataset, std::span<const int32_t> classes,
                         const std::vector<std::string>& class_names, const DataConfig& data,
                         const GradCamOptions& options, const std::string& folder) {
  std::vector<int64_t> indices;
  std::vector<int32_t> wanted;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < 0) continue;
    indices.push_back(static_cast<int64_t>(i));
    wanted.push_back(classes[i]);
  }
  RT_ASSIGN_OR_RETURN(auto net, CreateGradCamNet(model, std::ssize(indices), options));
  Table table{.layer = net->feature_map().layer, .class_names = class_names};
  RT_ASSIGN_OR_RETURN(const std::vector<ActivationMap> maps,
                      GradCamOfImages(net.get(), dataset, indices, wanted, data));
  net.reset();
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  LoaderOptions loading;
  loading.mode = LoaderMode::kEvaluate;
  loading.batch = kMostImagesInMemory;
  loading.image_size = kOverlaySize;
  RT_ASSIGN_OR_RETURN(const auto loader,
                      DataLoader::Create(&dataset, indices, OnceReadable(data), loading));
  const Normalization normalization = NormalizationFromConfig(data);
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < indices.size();) {
    RT_RETURN_IF_ERROR(CheckNotStopped());
    RT_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
    RT_CHECK(!batch.labels.empty(), "the loader must not leave images out");
    for (int64_t row = 0; row < loading.batch && i < indices.size(); ++row, ++i) {
      if (maps[i].empty()) continue;
      const std::string& image = dataset.samples()[indices[i]].key;
      const std::string name = OverlayName(image, &names);
      const float* planes = batch.images + row * kChannels * kOverlaySize * kOverlaySize;
      const Image overlay = Overlay(ImageFromPlanes(planes, kOverlaySize, normalization), maps[i]);
      RT_RETURN_IF_ERROR(
          WriteFileAtomic(fmt::format("{}/{}", folder, name), EncodeJpeg(overlay, kJpegQuality)));
      table.Add(image, name, wanted[i], maps[i]);
    }
  }
  return WriteFileAtomic(folder + "/" + kGradCamTableName, table.text);
}

}  // namespace ringtail
