#include "layers/pooling/adaptive_average_pool.h"

namespace ringtail {
namespace {

constexpr int32_t kMaxOutput = 1 << 16;  // as large as any image

void FillSpans(int64_t windows, int64_t size, std::vector<PoolSpan>* spans) {
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t begin = i * size / windows, end = ((i + 1) * size + windows - 1) / windows;
    spans->push_back({.begin = begin, .end = end, .count = end - begin});
  }
}

}  // namespace

AdaptiveAveragePoolLayer::AdaptiveAveragePoolLayer(const AdaptiveAveragePoolConfig& config)
    : config_(config) {}

Status AdaptiveAveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                             std::vector<PoolSpan>* columns) {
  const int32_t output = config_.output();
  RT_RETURN_IF_ERROR(fields().Between("output", output, 1, kMaxOutput));
  FillSpans(output, src.H, rows);
  FillSpans(output, src.W, columns);
  return OkStatus();
}

}  // namespace ringtail
