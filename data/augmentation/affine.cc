#include "data/augmentation/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ringtail {
namespace {

constexpr int kFractionBits = 16;
constexpr double kHalf = 0.5;

int64_t Fixed(double value) {
  return static_cast<int64_t>(std::floor(value * (1 << kFractionBits) + kHalf));
}

// The place of the first centre, and the steps, are rounded to fixed point once for the image.
void MapNearest(const Image& src, const AffineMap& map, Image* dst) {
  const int64_t xx = Fixed(map.xx), xy = Fixed(map.xy), yx = Fixed(map.yx), yy = Fixed(map.yy);
  int64_t row_x = Fixed(map.x0 + map.xx * kHalf + map.xy * kHalf);
  int64_t row_y = Fixed(map.y0 + map.yx * kHalf + map.yy * kHalf);
  for (int32_t y = 0; y < dst->height; ++y, row_x += xy, row_y += yy) {
    uint8_t* out = dst->Row(y);
    int64_t at_x = row_x, at_y = row_y;
    for (int32_t x = 0; x < dst->width; ++x, at_x += xx, at_y += yx, out += kChannels) {
      const int64_t from_x = at_x >> kFractionBits, from_y = at_y >> kFractionBits;
      if (from_x < 0 || from_x >= src.width || from_y < 0 || from_y >= src.height) continue;
      std::memcpy(out, src.Row(static_cast<int32_t>(from_y)) + from_x * kChannels, kChannels);
    }
  }
}

// The pixel at (x, y), which lies within the image; neighbours outside are those at the border.
void Interpolate(const Image& src, double x, double y, uint8_t* out) {
  x -= kHalf;
  y -= kHalf;
  const double floor_x = std::floor(x), floor_y = std::floor(y);
  const double right = x - floor_x, below = y - floor_y;
  const auto left = static_cast<int32_t>(floor_x), top = static_cast<int32_t>(floor_y);
  const int32_t x0 = std::max(left, 0), x1 = std::min(left + 1, src.width - 1);
  const uint8_t* const upper = src.Row(std::max(top, 0));
  const uint8_t* const lower = src.Row(std::min(top + 1, src.height - 1));
  for (int c = 0; c < kChannels; ++c) {
    const int a = upper[x0 * kChannels + c], b = upper[x1 * kChannels + c];
    const int d = lower[x0 * kChannels + c], e = lower[x1 * kChannels + c];
    const double above = a + right * (b - a), under = d + right * (e - d);
    out[c] = static_cast<uint8_t>(above + below * (under - above));
  }
}

void MapBilinear(const Image& src, const AffineMap& map, Image* dst) {
  for (int32_t y = 0; y < dst->height; ++y) {
    uint8_t* out = dst->Row(y);
    for (int32_t x = 0; x < dst->width; ++x, out += kChannels) {
      const double centre_x = x + kHalf, centre_y = y + kHalf;
      const double from_x = map.xx * centre_x + map.xy * centre_y + map.x0;
      const double from_y = map.yx * centre_x + map.yy * centre_y + map.y0;
      if (from_x < 0 || from_x >= src.width || from_y < 0 || from_y >= src.height) continue;
      Interpolate(src, from_x, from_y, out);
    }
  }
}

}  // namespace

void MapImage(const Image& src, const AffineMap& map, bool bilinear, Image* dst) {
  dst->Reset(src.width, src.height);
  std::fill(dst->pixels.begin(), dst->pixels.end(), uint8_t{0});
  bilinear ? MapBilinear(src, map, dst) : MapNearest(src, map, dst);
}

}  // namespace ringtail
