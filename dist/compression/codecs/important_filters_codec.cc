#include "dist/compression/codecs/important_filters_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "dist/compression/codecs/largest.h"
#include "dist/compression/kernels/sums.h"

namespace ringtail {
namespace {

int64_t BitmapBytes(const GradientShape& shape) { return (shape.rows + 31) / 32 * 4; }

bool HasRow(std::span<const std::byte> bitmap, int64_t row) {
  return (bitmap[row / 8] >> (row % 8) & std::byte{1}) != std::byte{0};
}

// Number of rows in the payload; DataLoss if it names rows that do not exist.
StatusOr<int64_t> CountRows(std::span<const std::byte> bitmap, int64_t rows) {
  int64_t count = 0;
  for (size_t i = 0; i < bitmap.size(); ++i) {
    count += std::popcount(static_cast<uint8_t>(bitmap[i]));
  }
  for (auto row = rows; row < static_cast<int64_t>(8 * bitmap.size()); ++row) {
    if (HasRow(bitmap, row)) {
      return DataLoss(fmt::format("a payload of filters holds filter {} of {}", row, rows));
    }
  }
  return count;
}

// The `wanted` rows of largest importance_of(row), ascending; valid until this thread's next call.
// All filters of a layer are equally long, so their sums |a| have the order of their means.
template <typename ImportanceOf>
std::span<const int32_t> MostImportant(int64_t rows, int64_t wanted,
                                       const ImportanceOf& importance_of) {
  // Codecs have no state, and the threads that encode live long: they reuse their scratch memory.
  static thread_local std::vector<float> importance;
  static thread_local std::vector<int32_t> chosen;
  importance.clear();
  for (int64_t row = 0; row < rows; ++row) {
    importance.push_back(static_cast<float>(importance_of(row)));
  }
  LargestPlaces(importance, wanted, &chosen);
  return chosen;
}

// Writes the whole payload.
void WriteRows(const GradientShape& shape, std::span<const float> a,
               std::span<const int32_t> chosen, std::span<std::byte> payload) {
  const std::span<std::byte> bitmap = payload.first(BitmapBytes(shape));
  std::ranges::fill(bitmap, std::byte{0});
  const size_t row_bytes = shape.columns * sizeof(float);
  std::byte* to = payload.data() + bitmap.size();
  for (const int64_t row : chosen) {
    bitmap[row / 8] |= std::byte{1} << (row % 8);
    if (row_bytes > 0) std::memcpy(to, &a[row * shape.columns], row_bytes);
    to += row_bytes;
  }
}

}  // namespace

ImportantFiltersCodec::ImportantFiltersCodec(const ImportantFiltersOptions& options)
    : options_(options) {
  RT_CHECK(options.max_rate > 0 && options.max_rate <= 1, "a rate is above 0 and at most 1");
  RT_CHECK(options.min_rate > 0 && options.min_rate <= 1, "a rate is above 0 and at most 1");
  RT_CHECK(options.theta > 0 && options.power >= 0 && options.warmup_epochs >= 0,
           "theta is positive, power and warm-up are not negative");
}

std::string ImportantFiltersCodec::Describe() const {
  return fmt::format("filters of largest mean |g|, {:g}% to {:g}%, (n / {})^-{:g}",
                     options_.max_rate * 100, options_.min_rate * 100, options_.theta,
                     options_.power);
}

double ImportantFiltersCodec::RateOf(const EncodeContext& context) const {
  // The last bit of pow depends on the machine; ShareOf gives the same number of rows anyway.
  const double falling =
      std::pow(options_.theta / static_cast<double>(context.shape.elements()), options_.power);
  const double rate = std::clamp(options_.max_rate * falling, options_.min_rate, 1.0);
  if (context.epoch >= options_.warmup_epochs) return rate;
  return 1 + (rate - 1) * std::max(0.0, context.epoch / options_.warmup_epochs);
}

int64_t ImportantFiltersCodec::RowsOf(const EncodeContext& context) const {
  return ShareOf(RateOf(context), context.shape.rows);
}

int64_t ImportantFiltersCodec::PayloadBytes(const EncodeContext& context) const {
  const GradientShape& shape = context.shape;
  return BitmapBytes(shape) + RowsOf(context) * shape.columns * 4;
}

void ImportantFiltersCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                                   std::span<std::byte> payload) const {
  const GradientShape& shape = context.shape;
  const auto chosen = MostImportant(shape.rows, RowsOf(context), [&](int64_t row) {
    return RT_KERNEL(SumAbs)(gradient.data() + row * shape.columns, shape.columns);
  });
  WriteRows(shape, gradient, chosen, payload);
}

// The importance of a filter is measured while its gradient is added; the residual of a filter that
// is sent becomes zero.
void ImportantFiltersCodec::EncodeWithFeedback(const EncodeContext& context,
                                               std::span<const float> gradient,
                                               std::span<float> residual,
                                               std::span<std::byte> payload) const {
  const GradientShape& shape = context.shape;
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  const auto chosen = MostImportant(shape.rows, RowsOf(context), [&](int64_t row) {
    const int64_t begin = row * shape.columns;
    return RT_KERNEL(AddAndSumAbs)(gradient.data() + begin, shape.columns, residual.data() + begin);
  });
  WriteRows(shape, residual, chosen, payload);
  for (const int64_t row : chosen) {
    std::ranges::fill(residual.subspan(row * shape.columns, shape.columns), 0.0F);
  }
}

Status ImportantFiltersCodec::DecodeAdd(const EncodeContext& context,
                                        std::span<const std::byte> payload, float scale,
                                        std::span<float> sum) const {
  const GradientShape& shape = context.shape;
  if (static_cast<int64_t>(payload.size()) != PayloadBytes(context)) {
    return DataLoss(fmt::format("a payload of filters has {} bytes, not {}", payload.size(),
                                PayloadBytes(context)));
  }
  const auto bitmap = payload.first(BitmapBytes(shape));
  RT_ASSIGN_OR_RETURN(const int64_t rows, CountRows(bitmap, shape.rows));
  if (rows != RowsOf(context)) {
    return DataLoss(
        fmt::format("a payload of filters holds {} of them, not {}", rows, RowsOf(context)));
  }
  const std::byte* from = payload.data() + bitmap.size();
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (!HasRow(bitmap, row)) continue;
    float* const to = sum.data() + row * shape.columns;
    for (int64_t i = 0; i < shape.columns; ++i) {
      float value;  // rows start at any byte
      std::memcpy(&value, from + 4 * i, 4);
      to[i] += scale * value;
    }
    from += 4 * shape.columns;
  }
  return OkStatus();
}

}  // namespace ringtail
