// safetensors: u64 little-endian header length, JSON header, raw tensor data.
//
//   | 8 bytes N | N bytes JSON: {"name": {"dtype","shape","data_offsets":[begin,end]}, "__metadata__": {}} | data |
//
// Used for checkpoints, replay and interchange. Ringtail's own files also carry in `__metadata__`
// "crc32c.<name>" of every tensor, and "data_bytes"; where present they are verified on read.
// A hostile file never reads or writes out of bounds and never allocates what it merely claims.
// Limits: header <= 16 MiB, dtypes F32, I32, I64, U8; at most 8 dimensions; no holes, no overlaps, no duplicate
// names. Errors: DataLoss with the file, the tensor and the reason. Source: github.com/huggingface/safetensors.
#ifndef RINGTAIL_CORE_SAFETENSORS_H_
#define RINGTAIL_CORE_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"

namespace ringtail {

enum class Dtype { kF32, kI32, kI64, kU8 };
int64_t DtypeBytes(Dtype dtype);

// A tensor to write: a view, the caller keeps the data alive.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::span<const std::byte> data;
};
TensorView ViewF32(std::string name, Shape shape, std::span<const float> data);
TensorView ViewI32(std::string name, Shape shape, std::span<const int32_t> data);

// Serialises header and data to `path` atomically and durably (core/file.h WriteFileAtomic).
Status WriteSafetensors(const std::string& path, std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata);

// A whole file in memory. Movable.
class SafetensorsFile {
 public:
  struct Entry {
    Dtype dtype;
    Shape shape;
    size_t begin, end;  // in data
  };
  static StatusOr<SafetensorsFile> Read(const std::string& path);
  static StatusOr<SafetensorsFile> Parse(std::vector<std::byte> bytes, std::string_view name_for_errors);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool Has(std::string_view name) const;
  // The tensor's elements. NotFound (with the nearest name), or InvalidArgument if dtype or shape differ
  // from what is expected (an empty `shape` expects nothing).
  StatusOr<std::span<const float>> F32(std::string_view name, const Shape& shape) const;
  StatusOr<std::span<const int32_t>> I32(std::string_view name, const Shape& shape) const;

 private:
  std::string file_name_;
  std::vector<std::byte> bytes_;
  size_t data_begin_ = 0;  // 8-byte aligned, or the tensors were moved so that it is
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_SAFETENSORS_H_
