#include "core/storage/weights/weights_file.h"

#include <cstdint>
#include <utility>

#include "core/storage/file.h"
#include "core/storage/weights/torch_file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 30;

}  // namespace

StatusOr<WeightsFile> WeightsFile::Read(const std::string& path) {
  RT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, ReadFileBytes(path, kMaxFileBytes));
  WeightsFile file;
  if (LooksLikeTorch(bytes)) {
    file.bytes_ = std::move(bytes);
    auto state = ParseTorch(file.bytes_);
    RT_RETURN_IF_ERROR(state.status().Annotate("'" + path + "'"));
    file.tensors_ = std::move(state->tensors);
    file.taken_from_ = std::move(state->taken_from);
    return file;
  }
  RT_ASSIGN_OR_RETURN(file.safetensors_, SafetensorsFile::Parse(std::move(bytes), path));
  for (const auto& [name, entry] : file.safetensors_->entries()) {
    file.tensors_[name] = {.dtype = entry.dtype,
                           .shape = entry.shape,
                           .strides = ContiguousStrides(entry.shape),
                           .data = file.safetensors_->Data(entry)};
  }
  file.metadata_ = file.safetensors_->metadata();
  return file;
}

}  // namespace ringtail
