#include "apps/grad_cam/activation_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace ringtail {
namespace {

// Where sample i of `to` lies among `from` samples: between two of them, nearer to the second.
struct Between {
  int64_t first = 0, second = 0;
  double weight = 0;  // of the second
};

Between Place(int64_t i, int64_t from, int64_t to) {
  const double at =
      (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
  const double inside = std::clamp(at, 0.0, static_cast<double>(from - 1));
  const auto first = static_cast<int64_t>(inside);
  return {first, std::min(first + 1, from - 1), inside - static_cast<double>(first)};
}

}  // namespace

ActivationMap GradCam(std::span<const float> activations, std::span<const float> gradient,
                      int64_t channels, int64_t height, int64_t width) {
  const int64_t plane = height * width;
  RT_CHECK(std::ssize(activations) == channels * plane && activations.size() == gradient.size(),
           "one gradient per activation");
  std::vector<double> sums(plane, 0);
  for (int64_t c = 0; c < channels; ++c) {
    const std::span<const float> of_channel = gradient.subspan(c * plane, plane);
    const double alpha =
        std::accumulate(of_channel.begin(), of_channel.end(), 0.0) / static_cast<double>(plane);
    for (int64_t i = 0; i < plane; ++i) sums[i] += alpha * activations[c * plane + i];
  }
  const double largest = *std::max_element(sums.begin(), sums.end());
  ActivationMap map{.height = height, .width = width, .values = std::vector<float>(plane, 0.0F)};
  if (!(largest > 0)) return map;
  for (int64_t i = 0; i < plane; ++i) {
    map.values[i] = static_cast<float>(std::max(0.0, sums[i]) / largest);
  }
  return map;
}

ActivationMap Resize(const ActivationMap& map, int64_t height, int64_t width) {
  ActivationMap resized{.height = height, .width = width, .values = {}};
  resized.values.reserve(height * width);
  for (int64_t y = 0; y < height; ++y) {
    const Between row = Place(y, map.height, height);
    for (int64_t x = 0; x < width; ++x) {
      const Between column = Place(x, map.width, width);
      const auto across = [&](int64_t of_row) {
        return std::lerp(static_cast<double>(map.at(of_row, column.first)),
                         static_cast<double>(map.at(of_row, column.second)), column.weight);
      };
      resized.values.push_back(
          static_cast<float>(std::lerp(across(row.first), across(row.second), row.weight)));
    }
  }
  return resized;
}

std::string Strongest(const ActivationMap& map) {
  constexpr std::array<const char*, 9> kNinths = {
      "the top left", "the top",         "the top right", "the left",        "the centre",
      "the right",    "the bottom left", "the bottom",    "the bottom right"};
  const auto largest = std::max_element(map.values.begin(), map.values.end());
  if (largest == map.values.end() || *largest <= 0) return {};
  const int64_t i = largest - map.values.begin();
  const auto third = [](int64_t at, int64_t of) { return (2 * at + 1) * 3 / (2 * of); };
  return kNinths[3 * third(i / map.width, map.height) + third(i % map.width, map.width)];
}

}  // namespace ringtail
