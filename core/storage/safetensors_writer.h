// Writing safetensors files (core/storage/safetensors.h has the format and the reader).
//
// The data starts at a multiple of 64 bytes; elements of 8 bytes come before those of 4, those
// before elements of 1, so that every tensor is aligned without gaps. Checksums cover every byte.
// Thread-safety: functions without state; one writer per path. Errors: InvalidArgument for names
// and texts that a file cannot hold, else those of core/storage/file.h.
// Cost: one pass for the checksums and one write; the tensors are not copied.
#ifndef RINGTAIL_CORE_STORAGE_SAFETENSORS_WRITER_H_
#define RINGTAIL_CORE_STORAGE_SAFETENSORS_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"
#include "core/storage/safetensors.h"

namespace ringtail {

// A tensor to write: a view, the caller keeps the data alive.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::span<const std::byte> data;
};
TensorView ViewF32(std::string name, Shape shape, std::span<const float> data);
TensorView ViewI32(std::string name, Shape shape, std::span<const int32_t> data);

// DataLoss, naming the first tensor of F32 with a NaN or infinity. Cost: one pass over the data.
Status CheckFinite(std::span<const TensorView> tensors);

// Writes header and data to `path` atomically and durably (core/storage/file.h WriteFileAtomic).
Status WriteSafetensors(const std::string& path, std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata);

// The same file in memory: the bytes before the data, and views of the tensors.
struct SafetensorsImage {
  std::string head;
  std::vector<std::span<const std::byte>> data;
  std::vector<std::span<const std::byte>> Pieces() const;  // head and data, front to back
};
StatusOr<SafetensorsImage> SerializeSafetensors(std::span<const TensorView> tensors,
                                                const std::map<std::string, std::string>& metadata);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_SAFETENSORS_WRITER_H_
