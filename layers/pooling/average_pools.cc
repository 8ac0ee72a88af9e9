#include "layers/pooling/average_pools.h"

#include <algorithm>

#include "core/round.h"
#include "layers/pooling/pool_window.h"

namespace ringtail {
namespace {

constexpr int32_t kMaxOutput = 1 << 16;  // as large as any image

// `windows` windows along one direction of an image of `size` with `before` and `after` padding.
std::vector<PoolSpan> SlidingSpans(int64_t windows, int64_t size, int64_t before, int64_t after,
                                   int64_t kernel, int64_t stride, bool count_padding) {
  std::vector<PoolSpan> spans;
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t begin = i * stride - before;
    const int64_t end = std::min(begin + kernel, size + after);
    PoolSpan span = {.begin = std::max<int64_t>(begin, 0), .end = std::min(end, size), .count = 0};
    span.count = count_padding ? end - begin : span.end - span.begin;
    spans.push_back(span);
  }
  return spans;
}

// `windows` windows that together cover an image of `size`.
std::vector<PoolSpan> CoveringSpans(int64_t windows, int64_t size) {
  std::vector<PoolSpan> spans;
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t begin = i * size / windows, end = CeilDivide((i + 1) * size, windows);
    spans.push_back({.begin = begin, .end = end, .count = end - begin});
  }
  return spans;
}

}  // namespace

Status AveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                     std::vector<PoolSpan>* columns) {
  RT_ASSIGN_OR_RETURN(const PoolWindow pool, ReadPoolWindow(config_, src, fields()));
  const Window& w = pool.window;
  const bool count_padding = config_.count_padding();
  *rows = SlidingSpans(pool.dst.H, src.H, w.PT, w.PB, w.KH, w.SH, count_padding);
  *columns = SlidingSpans(pool.dst.W, src.W, w.PL, w.PR, w.KW, w.SW, count_padding);
  return OkStatus();
}

Status GlobalAveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                           std::vector<PoolSpan>* columns) {
  *rows = CoveringSpans(1, src.H);
  *columns = CoveringSpans(1, src.W);
  return OkStatus();
}

Status AdaptiveAveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                             std::vector<PoolSpan>* columns) {
  RT_RETURN_IF_ERROR(fields().Between("output", config_.output(), 1, kMaxOutput));
  *rows = CoveringSpans(config_.output(), src.H);
  *columns = CoveringSpans(config_.output(), src.W);
  return OkStatus();
}

}  // namespace ringtail
