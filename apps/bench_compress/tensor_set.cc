#include "apps/bench_compress/tensor_set.h"

#include <span>
#include <string_view>

#include "apps/byte_text.h"
#include "core/random.h"
#include "core/storage/safetensors.h"

namespace ringtail {
namespace {

ParameterSpec SpecOf(const SafetensorsFile::Entry& entry) {
  ParameterSpec spec = {.name = {}, .shape = entry.shape, .kind = ParameterKind::kVector};
  if (entry.shape.size() == 4) spec.kind = ParameterKind::kConvolutionWeight;
  if (entry.shape.size() == 2) spec.kind = ParameterKind::kLinearWeight;
  return spec;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

TensorSet RandomSet(int64_t bytes) {
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
  int64_t rows = 1;
  for (int64_t r = 1; r * r <= elements; ++r) rows = elements % r == 0 ? r : rows;
  Tensor tensor = {.shape = {ParameterKind::kLinearWeight, rows, elements / rows},
                   .gradient = std::vector<float>(static_cast<size_t>(elements))};
  Rng rng(RngKey(1).With(kTestStream));
  for (float& element : tensor.gradient) element = rng.Normal();
  TensorSet set = {.name = "normal " + FormatBytes(bytes), .tensors = {}};
  set.tensors.push_back(std::move(tensor));
  return set;
}

StatusOr<std::vector<TensorSet>> ReadSets(const std::string& path, double samples,
                                          bool per_tensor) {
  constexpr std::string_view kPrefix = "grad.";
  RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(path));
  std::vector<TensorSet> sets;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(kPrefix) || NumElements(entry.shape) == 0) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> gradient, file.F32(name, {}));
    if (per_tensor || sets.empty()) {
      const std::string in_file = name.substr(kPrefix.size());
      sets.push_back({.name = per_tensor ? in_file : FileName(path), .tensors = {}});
    }
    std::vector<Tensor>& tensors = sets.back().tensors;
    tensors.push_back(
        {.shape = GradientShapeOf(SpecOf(entry)), .gradient = {gradient.begin(), gradient.end()}});
    for (float& element : tensors.back().gradient) {
      element = static_cast<float>(element * samples);
    }
  }
  if (sets.empty()) return InvalidArgument(path + ": no tensor is called grad.<name>");
  return sets;
}

}  // namespace ringtail
