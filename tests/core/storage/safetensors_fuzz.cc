// Any bytes are a safetensors file or an error, never a crash; and a parsed file can be used.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/storage/safetensors.h"

namespace {

using ringtail::Dtype;
using ringtail::SafetensorsFile;

// Touches every byte of every tensor, so that sanitizers detect a range outside the file.
uint64_t Touch(const SafetensorsFile& file) {
  uint64_t sum = 0;
  for (const auto& [name, entry] : file.entries()) {
    if (entry.dtype == Dtype::kF32) {
      const auto elements = file.F32(name, entry.shape);
      if (!elements.ok()) std::abort();
      if (static_cast<int64_t>(elements->size()) != ringtail::NumElements(entry.shape))
        std::abort();
      for (const float element : *elements) sum += element != 0;
    } else if (entry.dtype == Dtype::kI32) {
      const auto elements = file.I32(name, entry.shape);
      if (!elements.ok()) std::abort();
      for (const int32_t element : *elements) sum += element != 0;
    } else if (file.F32(name, {}).ok()) {
      std::abort();
    }
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto file = SafetensorsFile::Parse({bytes, bytes + size}, "fuzz");
  if (!file.ok()) return 0;
  return Touch(*file) == UINT64_MAX ? 1 : 0;
}
