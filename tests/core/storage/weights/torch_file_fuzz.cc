// Any bytes are a file of PyTorch or an error, never a crash; and what was read can be used.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/storage/weights/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kMostElements = 1 << 16;  // a stride of zero makes any number of them
  const auto state = ringtail::ParseTorch({reinterpret_cast<const std::byte*>(data), size});
  if (!state.ok()) return 0;
  for (const auto& [name, tensor] : state->tensors) {
    if (!ringtail::IsInside(tensor)) std::abort();
    const int64_t elements = ringtail::NumElements(tensor.shape);
    if (elements > kMostElements) continue;
    std::vector<float> values(elements);
    const bool is_float = tensor.dtype != ringtail::Dtype::kI32 &&
                          tensor.dtype != ringtail::Dtype::kI64 &&
                          tensor.dtype != ringtail::Dtype::kU8;
    if (ringtail::ToFloats(tensor, values).ok() != is_float) std::abort();
  }
  return 0;
}
