#include "layers/shape_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"
#include "core/text/counted.h"

namespace ringtail {

int64_t SaturatingProduct(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return kMaxBlobBytes + 1;
  return std::min(product, kMaxBlobBytes + 1);
}

Status CheckBlobSize(const BlobDesc& desc) {
  int64_t bytes = BytesPerElement(BlobType::kF32);  // the largest
  for (const int64_t d : {desc.N, desc.C, desc.H, desc.W}) {
    if (d < 1 || d > kMaxDimension) {
      return InvalidArgument(fmt::format("the output would be {}: every dimension must be 1 to {}",
                                         desc.ShapeString(), kMaxDimension));
    }
    bytes = SaturatingProduct(bytes, d);
  }
  if (bytes > kMaxBlobBytes) {
    return InvalidArgument(
        fmt::format("the output would be {}: more than the {} GiB that a blob may have",
                    desc.ShapeString(), kMaxBlobBytes >> 30));
  }
  return OkStatus();
}

Status CheckInputCount(size_t actual, size_t count) {
  if (actual == count) return OkStatus();
  return InvalidArgument(fmt::format("it has {}; it takes {}", Counted(actual, "input"), count));
}

Status CheckSameShapes(std::span<const BlobDesc> src) {
  for (size_t i = 1; i < src.size(); ++i) {
    if (src[i].SameShape(src[0])) continue;
    return InvalidArgument(
        fmt::format("input {} is {}, but input 0 is {}; they must have one shape", i,
                    src[i].ShapeString(), src[0].ShapeString()));
  }
  return OkStatus();
}

void RequireF32(std::span<const BlobDesc> blobs) {
  for (const BlobDesc& blob : blobs) {
    RT_CHECK(blob.type == BlobType::kF32, "this layer computes on f32 alone");
  }
}

}  // namespace ringtail
