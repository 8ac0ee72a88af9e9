// safetensors: u64 little-endian header length N, JSON header, raw tensor data (core/README.md
// draws it).
//
//   | N, 8 bytes | N bytes: {"name": {"dtype", "shape", "data_offsets": [begin, end]}} | data |
//
// Used for checkpoints, replay and interchange: other programs read Ringtail's files and vice
// versa. Ringtail's own files also prove that they are intact, with reserved names in
// "__metadata__" that are verified on read where present:
//
//   crc32c.<tensor>   of the tensor's bytes
//   header_crc32c     of all bytes before the data, its own eight digits taken as zeros
//   data_bytes        the size of the data
//
// A hostile file never causes an access out of bounds, nor an allocation of a merely claimed size:
// the header is parsed as a stream of events into its few permitted elements, and every number is
// compared with the bytes that are really there.
//
// Limits: header <= 16 MiB, dtypes F64, F32, F16, BF16, I64, I32, U8; at most 8 dimensions;
// names <= 1 KiB; no holes, no overlaps, no duplicate names.
// Errors: DataLoss with the file, the tensor and the reason. Writing:
// core/storage/safetensors_writer.h.
// Thread-safety: const after Parse. Cost: the file once in memory, one pass for the checksums.
// Source: github.com/huggingface/safetensors, "Format".
#ifndef RINGTAIL_CORE_STORAGE_SAFETENSORS_H_
#define RINGTAIL_CORE_STORAGE_SAFETENSORS_H_

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

enum class Dtype { kF32, kI32, kI64, kU8, kF64, kF16, kBF16 };
int64_t DtypeBytes(Dtype dtype);
std::string_view DtypeName(Dtype dtype);  // "F32"

// A file's metadata, read and verified without the data after it.
StatusOr<std::map<std::string, std::string>> ReadSafetensorsMetadata(const std::string& path);

// A whole file in memory. Movable.
class SafetensorsFile {
 public:
  struct Entry {
    Dtype dtype = Dtype::kF32;
    Shape shape;
    size_t begin = 0, end = 0;  // in data
  };
  static StatusOr<SafetensorsFile> Read(const std::string& path);
  static StatusOr<SafetensorsFile> Parse(std::vector<std::byte> bytes,
                                         std::string_view name_for_errors);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  // The writer's metadata, without the reserved names.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Whether checksums covered, and so proved, every byte of the file: true for Ringtail's files.
  bool proven_intact() const { return proven_intact_; }
  bool Has(std::string_view name) const;

  // The tensor's elements. NotFound (with the nearest name), or InvalidArgument if dtype or shape
  // differ from what is expected (an empty `shape` matches every shape).
  StatusOr<std::span<const float>> F32(std::string_view name, const Shape& shape) const;
  StatusOr<std::span<const int32_t>> I32(std::string_view name, const Shape& shape) const;
  // The bytes of one of entries(), aligned for its dtype.
  std::span<const std::byte> Data(const Entry& entry) const;

 private:
  Status ParseParts();
  Status VerifyChecksums(std::string_view header_json);
  void AlignTensors();
  Status MissingTensor(std::string_view name) const;
  template <typename T>
  StatusOr<std::span<const T>> Elements(std::string_view name, Dtype dtype,
                                        const Shape& shape) const;

  std::string file_name_;
  std::vector<std::byte> bytes_;
  size_t data_begin_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
  bool proven_intact_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_SAFETENSORS_H_
