#include "dist/compression/sample_gradient.h"

#include <algorithm>

#include "core/random.h"

namespace ringtail {

void FillWithNormalNumbers(std::span<float> numbers) {
  Rng rng(RngKey(1).With("coding"));
  // Enough different ones; drawing them all would take longer than the measurement.
  constexpr size_t kDrawn = 1 << 16;
  const size_t drawn = std::min(numbers.size(), kDrawn);
  for (float& number : numbers.first(drawn)) number = rng.Normal();
  for (size_t i = drawn; i < numbers.size(); ++i) numbers[i] = numbers[i - drawn] * 1.0001F;
}

}  // namespace ringtail
