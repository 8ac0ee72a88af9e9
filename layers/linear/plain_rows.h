// PlainRows: a blob of any layout read and written as the plain matrix that a linear layer takes.
//   (N, C, H, W) in blocks of channels <-> (N, K), K = C H W in PyTorch's order
// Where the blob is plain already nothing is copied. Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_LINEAR_PLAIN_ROWS_H_
#define RINGTAIL_LAYERS_LINEAR_PLAIN_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "layers/blob.h"

namespace ringtail {

class PlainRows {
 public:
  PlainRows() = default;
  explicit PlainRows(const BlobDesc& blob);

  int64_t N() const { return blob_.N; }
  int64_t K() const { return blob_.C * blob_.plane(); }
  bool is_plain() const;
  size_t copied_bytes() const { return is_plain() ? 0 : N() * K() * BytesPerElement(blob_.type); }

  // `blob` itself, or `copy` (copied_bytes()), into which it is copied. Both have the blob's type.
  const float* Read(const float* blob, float* copy) const;
  // Copies `rows` to the blob, padding channels included; nothing if they are the blob.
  void Write(const float* rows, float* blob) const;

 private:
  BlobDesc blob_, plain_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_PLAIN_ROWS_H_
