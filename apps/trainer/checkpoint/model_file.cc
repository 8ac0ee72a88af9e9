#include "apps/trainer/checkpoint/model_file.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/config/run_precision.h"
#include "apps/version.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {
namespace {

constexpr char kClassNamesKey[] = "class_names";  // one per line
constexpr char kVersionKey[] = "ringtail_version";

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

StatusOr<std::string> Required(const SafetensorsFile& file, const std::string& path,
                               const char* key) {
  const auto found = file.metadata().find(key);
  if (found != file.metadata().end()) return found->second;
  return DataLoss(fmt::format(
      "{}: '{}' is missing from its metadata; give a file that `train` wrote", path, key));
}

template <typename Visit>
Status ForEachTensor(const ParameterArena& arena, const Visit& visit) {
  for (const Parameter& p : arena.parameters()) RT_RETURN_IF_ERROR(visit(p));
  for (const Parameter& p : arena.buffers()) RT_RETURN_IF_ERROR(visit(p));
  for (const Parameter& p : arena.fixed()) RT_RETURN_IF_ERROR(visit(p));
  return OkStatus();
}

}  // namespace

std::map<std::string, std::string> ModelMetadata(const RunConfig& config,
                                                 const std::vector<std::string>& class_names) {
  return {{kConfigKey, PrintTextConfig(config)},
          {kClassNamesKey, fmt::format("{}", fmt::join(class_names, "\n"))},
          {kVersionKey, kRingtailVersion}};
}

std::vector<TensorView> ModelTensors(const ParameterArena& arena) {
  std::vector<TensorView> tensors;
  for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
    for (const Parameter& p : list) {
      tensors.push_back(ViewF32(p.spec.name, p.spec.shape, p.value()));
    }
  }
  return tensors;
}

Status WriteModelFile(const std::string& path, const ParameterArena& arena,
                      const std::map<std::string, std::string>& metadata) {
  return WriteSafetensors(path, ModelTensors(arena), metadata);
}

StatusOr<TrainedModel> ReadModelFile(const std::string& path,
                                     std::span<const std::string> overrides) {
  RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(path));
  RT_ASSIGN_OR_RETURN(const std::string config, Required(file, path, kConfigKey));
  RT_ASSIGN_OR_RETURN(const std::string class_names, Required(file, path, kClassNamesKey));
  TrainedModel trained;
  RT_ASSIGN_OR_RETURN(trained.loaded,
                      ParseRunConfig(config, fmt::format("config in {}", path), overrides));
  RunConfig saved;
  RT_RETURN_IF_ERROR(ParseTextConfig(config, path, &saved, nullptr));
  KeepPrecision(saved.train(), trained.loaded.config.mutable_train());
  RT_ASSIGN_OR_RETURN(trained.model, CreateModel(trained.loaded, /*allocate=*/true,
                                                 /*freeze=*/false));
  trained.class_names = SplitLines(class_names);
  trained.data_path = saved.data().path();
  ParameterArena* arena = &trained.model->arena();
  RT_RETURN_IF_ERROR(ReadWeights(file, kAveragePrefix, arena));
  RT_RETURN_IF_ERROR(CheckFiniteWeights(*arena).Annotate(path));
  return trained;
}

Status ReadWeights(const SafetensorsFile& file, const std::string& prefix, ParameterArena* arena) {
  return ForEachTensor(*arena, [&](const Parameter& p) -> Status {
    const std::string preferred = prefix + p.spec.name;
    const std::string& name = file.Has(preferred) ? preferred : p.spec.name;
    RT_ASSIGN_OR_RETURN(const auto saved, file.F32(name, p.spec.shape));
    std::copy(saved.begin(), saved.end(), p.value().begin());
    return OkStatus();
  });
}

Status CheckFiniteWeights(const ParameterArena& arena) {
  return ForEachTensor(arena, [](const Parameter& p) {
    const std::span<const float> values = p.value();
    if (std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
      return OkStatus();
    }
    return DataLoss(fmt::format("'{}' has a NaN or infinity", p.spec.name));
  });
}

}  // namespace ringtail
