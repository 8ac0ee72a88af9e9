#include "layers/blob.h"

namespace ringtail {

std::string BlobDesc::ShapeString() const {
  std::string s = std::to_string(N) + "x" + std::to_string(C);
  if (H != 1 || W != 1) s += "x" + std::to_string(H) + "x" + std::to_string(W);
  return s;
}

}  // namespace ringtail
