// A trained network as a file: weights by name and, in `__metadata__`, the config it was trained
// with and the names of its classes. `final.safetensors` is one; every checkpoint is one, too.
//
// Reading takes the averaged weights where the file has them (a checkpoint has both).
// Thread-safety: functions without state. Errors: DataLoss, NotFound with file and tensor.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_MODEL_FILE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_MODEL_FILE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/parameter.h"
#include "core/status.h"
#include "core/storage/safetensors.h"
#include "layers/net/model.h"

namespace ringtail {

inline constexpr char kAveragePrefix[] = "average.";
// In the metadata:
inline constexpr char kConfigKey[] = "config";                 // the effective config, as text
inline constexpr char kFingerprintKey[] = "data_fingerprint";  // checkpoints: of the images
inline constexpr char kContentsKey[] = "data_contents";  // checkpoints: of what is in their files
inline constexpr char kImagesKey[] = "images";           // checkpoints: how many, in words
inline constexpr char kOldImagesKey[] = "pictures";      // the same, of a checkpoint from before 2027
inline constexpr char kWrittenAfterKey[] = "written_after";  // checkpoints: the failure before it
inline constexpr char kGlobalBatchKey[] = "global_batch";    // checkpoints: of all ranks

// What a file says about itself.
std::map<std::string, std::string> ModelMetadata(const RunConfig& config,
                                                 const std::vector<std::string>& class_names);

Status WriteModelFile(const std::string& path, const ParameterArena& arena,
                      const std::map<std::string, std::string>& metadata);

struct TrainedModel {
  LoadedConfig loaded;
  std::unique_ptr<Model> model;
  std::vector<std::string> class_names;
  std::string data_path;  // where its images were, whatever `overrides` say
};
// `overrides`: --set for the config in the file (data and evaluation settings; not the net).
StatusOr<TrainedModel> ReadModelFile(const std::string& path,
                                     std::span<const std::string> overrides);

// All parameters and buffers by name, each after `prefix`.
Status ReadWeights(const SafetensorsFile& file, const std::string& prefix, ParameterArena* arena);
Status CheckFiniteWeights(const ParameterArena& arena);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_MODEL_FILE_H_
