#include "layers/pooling/average_pool.h"

#include <algorithm>

#include "layers/pooling/pool_window.h"

namespace ringtail {
namespace {

// Windows along one direction of an image of `size` with `before` and `after` padding.
void FillSpans(int64_t windows, int64_t size, int64_t before, int64_t after, int64_t kernel,
               int64_t stride, bool count_padding, std::vector<PoolSpan>* spans) {
  for (int64_t i = 0; i < windows; ++i) {
    const int64_t begin = i * stride - before;
    const int64_t end = std::min(begin + kernel, size + after);
    PoolSpan span = {.begin = std::max<int64_t>(begin, 0), .end = std::min(end, size), .count = 0};
    span.count = count_padding ? end - begin : span.end - span.begin;
    spans->push_back(span);
  }
}

}  // namespace

AveragePoolLayer::AveragePoolLayer(const PoolConfig& config) : config_(config) {}

Status AveragePoolLayer::FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                                     std::vector<PoolSpan>* columns) {
  RT_ASSIGN_OR_RETURN(const PoolWindow pool, ReadPoolWindow(config_, src, fields()));
  const Window& w = pool.window;
  const bool count_padding = config_.count_padding();
  FillSpans(pool.dst.H, src.H, w.PT, w.PB, w.KH, w.SH, count_padding, rows);
  FillSpans(pool.dst.W, src.W, w.PL, w.PR, w.KW, w.SW, count_padding, columns);
  return OkStatus();
}

}  // namespace ringtail
