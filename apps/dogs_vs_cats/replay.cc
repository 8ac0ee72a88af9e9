#include "apps/dogs_vs_cats/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/grad_cam/grad_cam_net.h"
#include "apps/memory_advice.h"
#include "apps/trainer/checkpoint/start_weights.h"
#include "apps/trainer/decide_precision.h"
#include "core/aligned_buffer.h"
#include "core/logging.h"
#include "core/storage/safetensors_writer.h"
#include "layers/net/net.h"
#include "layers/net/precision.h"
#include "optim/gradient_norm.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

template <typename Layers>
void TurnDropoutOff(Layers* layers) {
  for (LayerConfig& layer : *layers) {
    if (layer.has_dropout()) layer.mutable_dropout()->set_rate(0);
    if (layer.has_drop_connect()) layer.mutable_drop_connect()->set_rate(0);
    if (layer.has_repeat()) TurnDropoutOff(layer.mutable_repeat()->mutable_layer());
  }
}

struct ReplayBatch {
  AlignedBuffer images;
  std::vector<int32_t> labels;
  int64_t size = 0, channels = 0, image_size = 0;

  BatchView view() const { return {images.floats().data(), labels}; }
};

StatusOr<ReplayBatch> ReadBatch(const std::string& path) {
  RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(path));
  RT_ASSIGN_OR_RETURN(const auto images, file.F32("images", {}));
  const Shape& shape = file.entries().find("images")->second.shape;
  if (shape.size() != 4 || shape[2] != shape[3] || images.empty()) {
    return InvalidArgument(
        fmt::format("{}: 'images' is {}; it must be N x C x S x S", path, ShapeString(shape)));
  }
  ReplayBatch batch;
  batch.size = shape[0];
  batch.channels = shape[1];
  batch.image_size = shape[2];
  RT_ASSIGN_OR_RETURN(const auto labels, file.I32("labels", {batch.size}));
  batch.labels.assign(labels.begin(), labels.end());
  batch.images = AlignedBuffer(images.size_bytes());
  std::copy(images.begin(), images.end(), batch.images.floats().begin());
  return batch;
}

Status CheckBatch(const ReplayBatch& batch, const Model& model, const std::string& path) {
  if (batch.channels != model.input_channels()) {
    return InvalidArgument(fmt::format("{}: 'images' has {} channels, the network reads {}", path,
                                       batch.channels, model.input_channels()));
  }
  for (const int32_t label : batch.labels) {
    if (label < -1 || label >= model.num_classes()) {
      return InvalidArgument(
          fmt::format("{}: label {} is outside -1 .. {}", path, label, model.num_classes() - 1));
    }
  }
  return OkStatus();
}

Status LoadWeights(const std::string& path, const ParameterArena& arena) {
  RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(path));
  const auto load = [&](const Parameter& p) -> Status {
    RT_ASSIGN_OR_RETURN(const auto values, file.F32(p.spec.name, p.spec.shape));
    std::copy(values.begin(), values.end(), p.value().begin());
    return OkStatus();
  };
  for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
    for (const Parameter& p : list) {
      if (!p.is_buffer || file.Has(p.spec.name)) RT_RETURN_IF_ERROR(load(p));
    }
  }
  return OkStatus();
}

// The tensors to be written; copies, because later steps change the net.
class Recording {
 public:
  void Add(std::string name, Shape shape, std::span<const float> values, double scale = 1) {
    std::vector<float>& copy = copies_.emplace_back(values.begin(), values.end());
    for (float& value : copy) value = static_cast<float>(value * scale);
    views_.push_back(ViewF32(std::move(name), std::move(shape), copy));
  }
  void AddValues(const std::string& prefix, const ParameterArena& arena) {
    for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
      for (const Parameter& p : list) Add(prefix + p.spec.name, p.spec.shape, p.value());
    }
  }
  void AddGradients(const ParameterArena& arena, double scale) {
    for (const Parameter& p : arena.parameters()) {
      Add("grad." + p.spec.name, p.spec.shape, p.grad(), scale);
    }
  }
  Status Write(const std::string& path) const { return WriteSafetensors(path, views_, {}); }

 private:
  std::deque<std::vector<float>> copies_;  // stable addresses
  std::vector<TensorView> views_;
};

// Of the class that each image is taken for.
Status AddGradCam(Model* model, const ReplayBatch& batch, Recording* recording) {
  RT_ASSIGN_OR_RETURN(
      const auto net,
      CreateGradCamNet(model, batch.size, {.batch = batch.size, .image_size = batch.image_size}));
  // The net may have more rows than the batch.
  const int64_t rows = net->options().batch, classes = model->num_classes();
  const auto image_floats = static_cast<int64_t>(batch.images.floats().size()) / batch.size;
  AlignedBuffer images(rows * image_floats * static_cast<int64_t>(sizeof(float)));
  std::copy_n(batch.images.floats().begin(), batch.size * image_floats, images.floats().begin());
  const std::vector<int32_t> no_labels(rows, -1);
  net->Forward({images.floats().data(), no_labels}, {.training = false});
  std::vector<int32_t> predicted;
  for (int64_t n = 0; n < batch.size; ++n) {
    predicted.push_back(static_cast<int32_t>(ArgMax(net->logits().subspan(n * classes, classes))));
  }
  const std::vector<ActivationMap> maps = GradCamOfBatch(net.get(), predicted);
  const FeatureMap& feature = net->feature_map();
  const BlobDesc& desc = feature.desc;
  const int64_t elements = batch.size * desc.C * desc.plane();
  const Shape shape = {batch.size, desc.C, desc.H, desc.W};
  recording->Add("grad_cam.logits", {batch.size, classes},
                 net->logits().first(batch.size * classes));
  recording->Add("grad_cam.activations", shape, std::span(feature.values).first(elements));
  recording->Add("grad_cam.gradients", shape, std::span(feature.gradient).first(elements));
  std::vector<float> values;
  for (int64_t n = 0; n < batch.size; ++n) {
    values.insert(values.end(), maps[n].values.begin(), maps[n].values.end());
  }
  recording->Add("grad_cam.maps", {batch.size, desc.H, desc.W}, values);
  return OkStatus();
}

}  // namespace

Status Replay(LoadedConfig loaded, const ReplayOptions& options) {
  RT_ASSIGN_OR_RETURN(const ReplayBatch batch, ReadBatch(options.batch));
  RT_RETURN_IF_ERROR(DecidePrecisionAlone({batch.size, batch.image_size}, &loaded));
  NetConfig config = loaded.config.net();
  TurnDropoutOff(config.mutable_layer());
  const auto& freeze = loaded.config.train().freeze();
  const std::vector<std::string> frozen(freeze.begin(), freeze.end());
  RT_ASSIGN_OR_RETURN(
      const auto model,
      Model::Create(config, batch.image_size, &loaded.source, "net",
                    /*allocate=*/true, {.layers = frozen, .field = "train.freeze"}));
  model->set_blob_type(BlobTypeOf(PrecisionOf(loaded.config.train())));
  RT_RETURN_IF_ERROR(CheckBatch(batch, *model, options.batch));
  RT_ASSIGN_OR_RETURN(const auto net,
                      AdviseOnMemory(Net::Create(model.get(), {.batch = batch.size,
                                                               .image_size = batch.image_size,
                                                               .training = true,
                                                               .algorithms = &ProgramAlgorithms()}),
                                     "fewer or smaller images in " + options.batch));
  ParameterArena& arena = model->arena();
  const OptimConfig& optim = loaded.config.optim();
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(optim, &arena));

  Recording recording;
  model->Initialize(loaded.config.train().seed());
  if (const std::string& start = loaded.config.train().weights(); !start.empty()) {
    RT_ASSIGN_OR_RETURN(const std::string report, LoadStartWeights(start, {}, model.get()));
    LogInfo(report);
  }
  if (options.weights.empty()) {
    recording.AddValues("init.", arena);
  } else {
    RT_RETURN_IF_ERROR(LoadWeights(options.weights, arena));
  }
  if (options.grad_cam) RT_RETURN_IF_ERROR(AddGradCam(model.get(), batch, &recording));
  std::vector<float> losses;
  for (int step = 0; step < options.steps; ++step) {
    StepContext context;
    context.step = static_cast<uint64_t>(step);
    const LossResult loss = net->Forward(batch.view(), context);
    net->Backward();
    const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
    losses.push_back(static_cast<float>(loss.loss_sum * mean));
    if (step == 0) {
      recording.Add("logits", {batch.size, model->num_classes()}, net->logits());
      recording.AddGradients(arena, mean);
    }
    const double clip = ClipFactor(GradientNorm(arena, mean), optim.clip_norm());
    optimizer->Step(step, optim.learning_rate(), mean * clip);
  }
  recording.Add("loss", {options.steps}, losses);
  recording.AddValues("param.", arena);
  return recording.Write(options.out);
}

}  // namespace ringtail
