// The config of a run: read, changed by --set, and checked as a whole, in one place.
//
//   RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig("configs/lenet.textproto", sets));
//   RT_ASSIGN_OR_RETURN(auto model, CreateModel(loaded));
//
// After LoadRunConfig every number is in its range; after CreateModel the network fits every
// image size of the run, too. Thread-safety: functions without state. Errors: InvalidArgument
// "file:line:column: what is wrong" with the nearest valid name, or what the file system says.
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

// `path` empty: the config that is built in. `overrides`: the values of --set, in order.
StatusOr<LoadedConfig> LoadRunConfig(const std::string& path,
                                     std::span<const std::string> overrides);
// The same for text that is at hand (a checkpoint's); `name` is for messages.
StatusOr<LoadedConfig> ParseRunConfig(std::string_view text, std::string_view name,
                                      std::span<const std::string> overrides);

// `allocate` false: shapes alone, of a network of any size (layers/net/model.h).
StatusOr<std::unique_ptr<Model>> CreateModel(const LoadedConfig& loaded, bool allocate = true);

// The sizes of training images in the order of use (one unless there are phases); not empty.
std::vector<int64_t> TrainingImageSizes(const RunConfig& config);
// The size for evaluation while training images are of `training_size`.
int64_t EvaluationImageSize(const RunConfig& config, int64_t training_size);
// Images per evaluation batch, and per forward pass in training.
int64_t EvaluationBatch(const RunConfig& config);
int64_t PartBatch(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_RUN_CONFIG_H_
