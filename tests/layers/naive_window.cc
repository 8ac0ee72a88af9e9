#include <algorithm>
#include <array>
#include <limits>

#include "core/check.h"
#include "tests/layers/naive.h"

namespace ringtail {
namespace {

using Repeated = google::protobuf::RepeatedField<int32_t>;

// One value for both axes, or one for each.
std::array<int64_t, 2> PerAxis(const Repeated& list, std::array<int64_t, 2> fallback) {
  if (list.empty()) return fallback;
  return {list[0], list[list.size() - 1]};
}

// Top, left, bottom, right.
std::array<int64_t, 4> Padding(const Repeated& list) {
  if (list.empty()) return {0, 0, 0, 0};
  if (list.size() == 4) return {list[0], list[1], list[2], list[3]};
  const auto [h, w] = PerAxis(list, {0, 0});
  return {h, w, h, w};
}

double At(const BlobDesc& desc, const Doubles& blob, int64_t n, int64_t c, int64_t y, int64_t x) {
  return blob[((n * desc.C + c) * desc.H + y) * desc.W + x];
}

bool Inside(const BlobDesc& desc, int64_t y, int64_t x) {
  return y >= 0 && y < desc.H && x >= 0 && x < desc.W;
}

// fn(n, c, y, x) for every element of the blob in row-major order; returns what it returns.
template <typename Function>
Doubles Generate(const BlobDesc& desc, const Function& fn) {
  Doubles blob;
  for (int64_t n = 0; n < desc.N; ++n) {
    for (int64_t c = 0; c < desc.C; ++c) {
      for (int64_t y = 0; y < desc.H; ++y) {
        for (int64_t x = 0; x < desc.W; ++x) blob.push_back(fn(n, c, y, x));
      }
    }
  }
  return blob;
}

// Where the window of one output begins and how large it is.
struct PoolGeometry {
  explicit PoolGeometry(const PoolConfig& config)
      : kernel(PerAxis(config.kernel(), {1, 1})),
        stride(PerAxis(config.stride(), kernel)),
        padding(Padding(config.padding())) {}
  int64_t Top(int64_t y) const { return y * stride[0] - padding[0]; }
  int64_t Left(int64_t x) const { return x * stride[1] - padding[1]; }

  std::array<int64_t, 2> kernel, stride;
  std::array<int64_t, 4> padding;
};

}  // namespace

Doubles NaiveConvolution(const ConvolutionConfig& config, const BlobDesc& src_desc,
                         const BlobDesc& dst_desc, const Doubles& src,
                         const std::vector<Doubles>& parameters) {
  const auto kernel = PerAxis(config.kernel(), {1, 1});
  const auto stride = PerAxis(config.stride(), {1, 1});
  const auto dilation = PerAxis(config.dilation(), {1, 1});
  const auto padding = Padding(config.padding());
  const int64_t groups = config.depthwise() ? src_desc.C : config.groups();
  const int64_t group_ic = src_desc.C / groups, group_oc = dst_desc.C / groups;
  return Generate(dst_desc, [&](int64_t n, int64_t oc, int64_t oy, int64_t ox) {
    double sum = config.bias() ? parameters[1][oc] : 0;
    for (int64_t ic = 0; ic < group_ic; ++ic) {
      for (int64_t i = 0; i < kernel[0]; ++i) {
        for (int64_t j = 0; j < kernel[1]; ++j) {
          const int64_t y = oy * stride[0] - padding[0] + i * dilation[0];
          const int64_t x = ox * stride[1] - padding[1] + j * dilation[1];
          if (!Inside(src_desc, y, x)) continue;
          const double weight =
              parameters[0][((oc * group_ic + ic) * kernel[0] + i) * kernel[1] + j];
          sum += weight * At(src_desc, src, n, oc / group_oc * group_ic + ic, y, x);
        }
      }
    }
    return sum;
  });
}

Doubles NaiveMaxPool(const PoolConfig& config, const BlobDesc& src_desc, const BlobDesc& dst_desc,
                     const Doubles& src) {
  const PoolGeometry g(config);
  return Generate(dst_desc, [&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t y = g.Top(oy); y < g.Top(oy) + g.kernel[0]; ++y) {
      for (int64_t x = g.Left(ox); x < g.Left(ox) + g.kernel[1]; ++x) {
        if (Inside(src_desc, y, x)) largest = std::max(largest, At(src_desc, src, n, c, y, x));
      }
    }
    return largest;
  });
}

Doubles NaiveAveragePool(const PoolConfig& config, const BlobDesc& src_desc,
                         const BlobDesc& dst_desc, const Doubles& src) {
  const PoolGeometry g(config);
  return Generate(dst_desc, [&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    double sum = 0;
    int64_t inside = 0, with_padding = 0;
    for (int64_t y = g.Top(oy); y < g.Top(oy) + g.kernel[0]; ++y) {
      for (int64_t x = g.Left(ox); x < g.Left(ox) + g.kernel[1]; ++x) {
        // Elements that rounding up adds beyond the padding are not counted.
        if (y >= src_desc.H + g.padding[2] || x >= src_desc.W + g.padding[3]) continue;
        ++with_padding;
        if (!Inside(src_desc, y, x)) continue;
        ++inside;
        sum += At(src_desc, src, n, c, y, x);
      }
    }
    return sum / static_cast<double>(config.count_padding() ? with_padding : inside);
  });
}

Doubles NaiveAdaptiveAveragePool(int64_t output, const BlobDesc& src_desc, const Doubles& src) {
  const auto begin = [&](int64_t i, int64_t size) { return i * size / output; };
  const auto end = [&](int64_t i, int64_t size) { return ((i + 1) * size + output - 1) / output; };
  const BlobDesc dst_desc = {src_desc.N, src_desc.C, output, output};
  return Generate(dst_desc, [&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
    double sum = 0, count = 0;
    for (int64_t y = begin(oy, src_desc.H); y < end(oy, src_desc.H); ++y) {
      for (int64_t x = begin(ox, src_desc.W); x < end(ox, src_desc.W); ++x) {
        sum += At(src_desc, src, n, c, y, x);
        count += 1;
      }
    }
    return sum / count;
  });
}

}  // namespace ringtail
