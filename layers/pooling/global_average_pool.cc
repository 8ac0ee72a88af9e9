#include "layers/pooling/global_average_pool.h"

namespace ringtail {

GlobalAveragePoolLayer::GlobalAveragePoolLayer(const GlobalAveragePoolConfig&) {}

Status GlobalAveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                           std::vector<PoolSpan>* columns) {
  rows->push_back({.begin = 0, .end = src.H, .count = src.H});
  columns->push_back({.begin = 0, .end = src.W, .count = src.W});
  return OkStatus();
}

}  // namespace ringtail
