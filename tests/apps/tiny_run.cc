#include "tests/apps/tiny_run.h"

#include <optional>
#include <utility>

#include "apps/synthesize/synthesize.h"
#include "apps/trainer/checkpoint/config_difference.h"
#include "core/check.h"
#include "core/stop_signal.h"
#include "core/storage/safetensors.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

const std::string& TinyImages() {
  static const TempDir folder;
  static const std::string images = [] {
    const Status drawn = Synthesize({.output = folder.path(), .images = 48, .seed = 3});
    RT_CHECK(drawn.ok(), drawn.ToString());
    return folder.path();
  }();
  return images;
}

std::string TinyConfigText() {
  // A fixed convolution algorithm: the fastest may vary between runs whose bits are compared.
  return R"(
net {
  name: "tiny"
  convolution: ONEDNN
  layer { name: "conv1" convolution { out_channels: 8 kernel: 3 stride: 2 padding: 1 } }
  layer { name: "bn1" batch_norm {} }
  layer { name: "relu1" relu {} }
  layer { name: "conv2" convolution { out_channels: 16 kernel: 3 stride: 2 padding: 1 } }
  layer { name: "relu2" relu {} }
  layer { name: "pool" global_average_pool {} }
  layer { name: "dropout" dropout { rate: 0.2 } }
  layer { name: "fc" linear { out_features: 2 } }
  layer { name: "loss" softmax_cross_entropy { label_smoothing: 0.1 } }
}
data { image_size: 16 workers: 2 split { validation_fraction: 0.16667 } }
optim { learning_rate: 0.05 ema_decay: 0.9 clip_norm: 5 sgd { momentum: 0.9 nesterov: true } }
train { epochs: 4 batch: 8 phase { from_epoch: 2 image_size: 24 } }
)";
}

LoadedConfig TinyConfig(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = {"data.path=\"" + TinyImages() + "\""};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return ParseRunConfig(TinyConfigText(), "tiny.textproto", all).value();
}

StatusOr<TrainingOutcome> TrainTiny(const LoadedConfig& loaded, const std::string& output,
                                    bool resume, StepHook* hook) {
  SetStopSignalForTest(0);
  TrainingWorld alone;
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), &alone));
  RT_ASSIGN_OR_RETURN(const auto directory, RunDirectory::Open(output));
  ResumePoint point;
  std::optional<LoadedConfig> continued;
  if (resume) {
    RT_ASSIGN_OR_RETURN(Checkpoint checkpoint, LoadNewestCheckpoint(output));
    RT_ASSIGN_OR_RETURN(point, ReadResumePoint(std::move(checkpoint)));
    RunConfig config = loaded.config;
    KeepBeginning(point.config, &config);
    RT_ASSIGN_OR_RETURN(continued, ParseRunConfig(PrintTextConfig(config), "tiny.textproto", {}));
  }
  RT_ASSIGN_OR_RETURN(
      TrainingRun run,
      TrainingRun::Create(
          {.loaded = continued ? &*continued : &loaded,
           .data = &data,
           .directory = directory.get(),
           .observer = hook,
           .start_weights = resume ? std::string_view() : loaded.config.train().weights()}));
  RT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(&run, std::move(point), &alone));
  return TrainToEnd(&trainer);
}

std::map<std::string, std::vector<float>> ReadTensors(const std::string& path) {
  const SafetensorsFile file = SafetensorsFile::Read(path).value();
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& [name, entry] : file.entries()) {
    const std::span<const float> values = file.F32(name, {}).value();
    tensors[name].assign(values.begin(), values.end());
  }
  return tensors;
}

}  // namespace ringtail
