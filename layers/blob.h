// BlobDesc: the shape, memory layout and element type of an activation or of its gradient.
//
// All layouts that Ringtail uses are one formula, channels in blocks of `block`:
//
//   offset(n, c, y, x) = ((n * channel_blocks + c / block) * H * W + y * W + x) * block + c % block
//
//   block 1         plain NCHW; NC where H = W = 1
//   block 8 or 16   oneDNN's nChw8c, nChw16c (AVX2, AVX-512)
//
// In a blocked layout C is rounded up to whole blocks; the padding channels are always zero, in
// data and in gradients (every layer keeps it so). Offsets count elements, memory counts bytes.
// Thread-safety: a value type.
#ifndef RINGTAIL_LAYERS_BLOB_H_
#define RINGTAIL_LAYERS_BLOB_H_

#include <cstdint>
#include <string>

#include "core/check.h"
#include "core/round.h"

namespace ringtail {

// How an element is stored; all arithmetic is on floats (core/kernels/bfloat16.h). Blobs travel as float*
// whatever their type is: who reads one as its BlobDesc says goes through layers/element_types/blob_elements.h.
enum class BlobType { kF32, kBf16 };

constexpr int64_t BytesPerElement(BlobType type) {
  switch (type) {
    case BlobType::kF32:
      return 4;
    case BlobType::kBf16:
      return 2;
  }
  CheckFailed(__FILE__, __LINE__, "", "no such element type");
}

constexpr const char* BlobTypeName(BlobType type) {
  return type == BlobType::kF32 ? "f32" : "bf16";
}

struct BlobDesc {
  int64_t N = 0, C = 0, H = 1, W = 1;
  int64_t block = 1;
  BlobType type = BlobType::kF32;

  int64_t channel_blocks() const { return CeilDivide(C, block); }
  int64_t plane() const { return H * W; }
  // With padding channels.
  int64_t elements() const { return N * channel_blocks() * block * H * W; }
  int64_t bytes() const { return elements() * BytesPerElement(type); }
  BlobDesc As(BlobType other) const {  // the same shape and layout
    BlobDesc desc = *this;
    desc.type = other;
    return desc;
  }
  bool SameShape(const BlobDesc& o) const { return N == o.N && C == o.C && H == o.H && W == o.W; }
  bool operator==(const BlobDesc&) const = default;
  std::string ShapeString() const;  // "32x64x16x16"; "32x10" when H = W = 1
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_BLOB_H_
