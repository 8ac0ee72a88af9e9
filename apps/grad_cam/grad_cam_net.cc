#include "apps/grad_cam/grad_cam_net.h"

#include <algorithm>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "core/check.h"
#include "core/stop_signal.h"
#include "data/loader.h"

namespace ringtail {
namespace {

bool IsBad(const DataLoader& loader, int64_t sample) {
  const std::vector<BadImage> bad = loader.bad_images();
  return std::any_of(bad.begin(), bad.end(),
                     [&](const BadImage& image) { return image.sample == sample; });
}

}  // namespace

StatusOr<std::unique_ptr<Net>> CreateGradCamNet(Model* model, int64_t images,
                                                const GradCamOptions& options) {
  constexpr int64_t kFewest = 2;  // batch norm of vectors cannot be set up for a backward of one
  const BlobType before = model->blob_type();
  model->set_blob_type(BlobType::kF32);
  auto net = AdviseOnMemory(
      Net::Create(model, {.batch = std::max(kFewest, std::min(images, options.batch)),
                          .image_size = options.image_size,
                          .training = false,
                          .feature_map = options.layer,
                          .measure = false,
                          .algorithms = &ProgramAlgorithms()}),
      "a lower train.evaluation_batch, or smaller images (train.evaluation_image_size)");
  model->set_blob_type(before);
  return net;
}

std::vector<ActivationMap> GradCamOfBatch(Net* net, std::span<const int32_t> classes) {
  const int64_t batch = net->options().batch, outputs = std::ssize(net->logits()) / batch;
  RT_CHECK(std::ssize(classes) <= batch, "at most one class per row");
  std::vector<float> diff_logits(net->logits().size(), 0.0F);
  for (int64_t n = 0; n < std::ssize(classes); ++n) {
    RT_CHECK(classes[n] >= -1 && classes[n] < outputs, "a class of the network, or -1");
    if (classes[n] >= 0) diff_logits[n * outputs + classes[n]] = 1;
  }
  net->BackwardFromLogits(diff_logits);
  const FeatureMap& feature = net->feature_map();
  const BlobDesc& desc = feature.desc;
  const int64_t sample = desc.C * desc.plane();
  std::vector<ActivationMap> maps(batch);
  for (int64_t n = 0; n < std::ssize(classes); ++n) {
    if (classes[n] < 0) continue;
    maps[n] =
        GradCam(std::span(feature.values).subspan(n * sample, sample),
                std::span(feature.gradient).subspan(n * sample, sample), desc.C, desc.H, desc.W);
  }
  return maps;
}

StatusOr<std::vector<ActivationMap>> GradCamOfImages(Net* net, const Dataset& dataset,
                                                     const std::vector<int64_t>& indices,
                                                     std::span<const int32_t> classes,
                                                     const DataConfig& data) {
  RT_CHECK(classes.size() == indices.size(), "one class per image");
  LoaderOptions options;
  options.mode = LoaderMode::kEvaluate;
  options.batch = net->options().batch;
  options.image_size = net->options().image_size;
  RT_ASSIGN_OR_RETURN(const auto loader,
                      DataLoader::Create(&dataset, indices, OnceReadable(data), options));
  std::vector<ActivationMap> maps;
  while (maps.size() < indices.size()) {
    RT_RETURN_IF_ERROR(CheckNotStopped());
    RT_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
    RT_CHECK(!batch.labels.empty(), "the loader must not leave images out");
    const size_t rows = std::min<size_t>(options.batch, indices.size() - maps.size());
    std::vector<int32_t> wanted;
    for (size_t row = 0; row < rows; ++row) {
      const size_t i = maps.size() + row;
      RT_CHECK(batch.samples[row] == indices[i], "the loader must keep the order of the list");
      wanted.push_back(IsBad(*loader, indices[i]) ? -1 : classes[i]);
    }
    // A data set may have labels that the network does not know, and they have no part in this.
    const std::vector<int32_t> no_labels(options.batch, -1);
    net->Forward({batch.images, no_labels}, {.training = false});
    std::vector<ActivationMap> of_batch = GradCamOfBatch(net, wanted);
    std::move(of_batch.begin(), of_batch.begin() + rows, std::back_inserter(maps));
  }
  return maps;
}

DataConfig OnceReadable(DataConfig data) {
  data.set_cache_mib(0);
  data.mutable_bad_images()->set_policy(BadImagesConfig::SKIP);
  data.mutable_bad_images()->set_max_fraction(1);
  return data;
}

}  // namespace ringtail
