// Reads the config of a run, applies --set, and checks the result as a whole.
//
//   RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig("configs/lenet.textproto", sets));
//   RT_ASSIGN_OR_RETURN(auto model, CreateModel(loaded));
//
// After LoadRunConfig every number is in its range; after CreateModel the network fits every
// image size of the run, too. Thread-safety: functions without state. Errors: InvalidArgument
// "file:line:column: what is wrong" with the nearest valid name, or the error of the file system.
#ifndef RINGTAIL_APPS_CONFIG_RUN_CONFIG_H_
#define RINGTAIL_APPS_CONFIG_RUN_CONFIG_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/run.pb.h"
#include "core/config/text_config.h"
#include "core/status.h"
#include "layers/net/model.h"

namespace ringtail {

struct LoadedConfig {
  RunConfig config;
  ConfigSource source;  // for later errors
};

// `config`: a path or the name of a shipped config (apps/config/shipped_configs.h); empty: the
// default one. `overrides`: the values of --set, in order.
StatusOr<LoadedConfig> LoadRunConfig(const std::string& config,
                                     std::span<const std::string> overrides);
// The same for a config in memory (from a checkpoint); `name` stands for the file in messages.
StatusOr<LoadedConfig> ParseRunConfig(std::string_view text, std::string_view name,
                                      std::span<const std::string> overrides);

// `allocate` false: only shapes, also for networks larger than memory (layers/net/model.h).
// `freeze` false: everything trains, whatever train.freeze says. Its nets have the precision of the
// run, f32 while that is open (apps/config/run_precision.h).
// `shards`: linear layers of which this rank holds a slice (apps/trainer/sharding/). `stage`: the layers
// that it holds (apps/trainer/pipeline/).
StatusOr<std::unique_ptr<Model>> CreateModel(const LoadedConfig& loaded, bool allocate = true,
                                             bool freeze = true, const ShardRequest& shards = {},
                                             const StageRequest& stage = {});

// The same for images of one size, whichever the config has.
StatusOr<std::unique_ptr<Model>> CreateModelAt(int64_t image_size, const LoadedConfig& loaded,
                                               bool allocate = true, bool freeze = true,
                                               const ShardRequest& shards = {},
                                               const StageRequest& stage = {});

// The sizes of training images in the order of use (one unless there are phases); not empty.
std::vector<int64_t> TrainingImageSizes(const RunConfig& config);
// The image size for evaluation in a phase that trains on `training_size`.
int64_t EvaluationImageSize(const RunConfig& config, int64_t training_size);
// Images per evaluation batch, and per forward pass in training.
int64_t EvaluationBatch(const RunConfig& config);
int64_t PartBatch(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_RUN_CONFIG_H_
