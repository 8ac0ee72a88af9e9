// A trained network as a file: weights by name and, in `__metadata__`, the config it was trained
// with and the names of its classes. `final.safetensors` is one, and so is every checkpoint.
//
// Reading takes the averaged weights if the file has them (a checkpoint has both).
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
#include "core/storage/safetensors_writer.h"
#include "layers/net/model.h"

namespace ringtail {

inline constexpr char kAveragePrefix[] = "average.";
// In the metadata; a checkpoint has more (resume_point.h).
inline constexpr char kConfigKey[] = "config";  // the effective config, as text

// The metadata of such a file.
std::map<std::string, std::string> ModelMetadata(const RunConfig& config,
                                                 const std::vector<std::string>& class_names);

// Views of all weights and running statistics.
std::vector<TensorView> ModelTensors(const ParameterArena& arena);
Status WriteModelFile(const std::string& path, const ParameterArena& arena,
                      const std::map<std::string, std::string>& metadata);

struct TrainedModel {
  LoadedConfig loaded;
  std::unique_ptr<Model> model;
  std::vector<std::string> class_names;
  std::string data_path;  // of its training images, regardless of `overrides`
};
// `overrides`: --set for the config in the file (data and evaluation settings; not the net). A
// precision of AUTO is the one that the network was trained in.
StatusOr<TrainedModel> ReadModelFile(const std::string& path,
                                     std::span<const std::string> overrides);

// All parameters and buffers by name, with `prefix` before it where the file has that (it has no
// averages of layers that were frozen).
Status ReadWeights(const SafetensorsFile& file, const std::string& prefix, ParameterArena* arena);
Status CheckFiniteWeights(const ParameterArena& arena);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_MODEL_FILE_H_
