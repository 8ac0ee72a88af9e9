#include "dist/parameter_server/compensation.h"

#include <cmath>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr float kEpsilon = 1e-7F;  // within the root, as in the authors' code

float Limited(float x, float limit) {
  const float below = x > limit ? limit : x;
  return below < -limit ? -limit : below;
}

void CheckSizes(std::span<const float> gradient, const WeightsOfPush& weights,
                std::span<const float> out) {
  RT_CHECK(weights.then.size() == gradient.size() && weights.now.size() == gradient.size() &&
               out.size() == gradient.size(),
           "spans of one length");
}

float Inverse(int64_t images) {
  RT_CHECK(images > 0, "a gradient is of images");
  return static_cast<float>(1.0 / static_cast<double>(images));
}

}  // namespace

void CompensateDelay(std::span<const float> gradient, int64_t images, const WeightsOfPush& weights,
                     double lambda, double limit, std::span<float> out) {
  CheckSizes(gradient, weights, out);
  const float factor = static_cast<float>(lambda) * Inverse(images);
  const auto most = static_cast<float>(limit);
  const float* g = gradient.data();
  const float* then = weights.then.data();
  const float* now = weights.now.data();
  float* result = out.data();
#pragma omp simd
  for (size_t i = 0; i < gradient.size(); ++i) {
    result[i] = g[i] + g[i] * Limited(factor * g[i] * (now[i] - then[i]), most);
  }
}

void CompensateDelayAdaptively(std::span<const float> gradient, int64_t images,
                               const WeightsOfPush& weights, std::span<const float> mean_squares,
                               double strength, double limit, std::span<float> out) {
  CheckSizes(gradient, weights, out);
  RT_CHECK(mean_squares.size() == gradient.size(), "spans of one length");
  const float factor = static_cast<float>(strength) * Inverse(images);
  const auto most = static_cast<float>(limit);
  const float* g = gradient.data();
  const float* then = weights.then.data();
  const float* now = weights.now.data();
  const float* squares = mean_squares.data();
  float* result = out.data();
#pragma omp simd
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float lambda = factor / std::sqrt(squares[i] + kEpsilon);
    result[i] = g[i] + g[i] * Limited(lambda * g[i] * (now[i] - then[i]), most);
  }
}

void UpdateMeanSquares(std::span<const float> gradient, int64_t images, double decay,
                       std::span<float> mean_squares) {
  RT_CHECK(mean_squares.size() == gradient.size(), "spans of one length");
  const float inverse = Inverse(images), keep = static_cast<float>(decay);
  const auto add = static_cast<float>(1 - decay);
  const float* sums = gradient.data();
  float* squares = mean_squares.data();
#pragma omp simd
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float g = inverse * sums[i];
    squares[i] = keep * squares[i] + add * (g * g);
  }
}

void WeighByGap(std::span<const float> gradient, const WeightsOfPush& weights, double step,
                std::span<float> out) {
  CheckSizes(gradient, weights, out);
  RT_CHECK(step > 0, "a gap is measured in steps");
  const auto inverse = static_cast<float>(1 / step);
  const float* g = gradient.data();
  const float* then = weights.then.data();
  const float* now = weights.now.data();
  float* result = out.data();
#pragma omp simd
  for (size_t i = 0; i < gradient.size(); ++i) {
    result[i] = g[i] / (1 + std::abs(now[i] - then[i]) * inverse);
  }
}

void AddToVelocity(std::span<const float> gradient, int64_t images, double momentum,
                   std::span<float> velocity, std::span<float> velocity_sum, std::span<float> out) {
  RT_CHECK(velocity.size() == gradient.size() && velocity_sum.size() == gradient.size() &&
               out.size() == gradient.size(),
           "spans of one length");
  const float inverse = Inverse(images), keep = static_cast<float>(momentum);
  const auto scale = static_cast<float>(images);
  const float* g = gradient.data();
  float* own = velocity.data();
  float* sum = velocity_sum.data();
  float* result = out.data();
#pragma omp simd
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float before = own[i], after = keep * before + inverse * g[i];
    own[i] = after;
    sum[i] += after - before;
    result[i] = scale * after;
  }
}

void LookAhead(std::span<const float> weights, std::span<const float> velocity_sum, double distance,
               std::span<float> out) {
  RT_CHECK(velocity_sum.size() == weights.size() && out.size() == weights.size(),
           "spans of one length");
  const auto factor = static_cast<float>(distance);
  const float* w = weights.data();
  const float* sum = velocity_sum.data();
  float* result = out.data();
#pragma omp simd
  for (size_t i = 0; i < weights.size(); ++i) result[i] = w[i] - factor * sum[i];
}

}  // namespace ringtail
