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

// How many rows are there; DataLoss if it names rows that do not exist.
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

using Norm = ImportantFiltersOptions::Norm;

// All filters of a layer are equally long, and roots are in the order of their squares: sums choose
// the filters that means would.
double Importance(const float* filter, int64_t n, Norm norm) {
  return norm == Norm::kL1 ? RT_KERNEL(SumAbs)(filter, n) : RT_KERNEL(SumSquares)(filter, n);
}

// Adds a filter to what was left of it before.
double AddAndFindImportance(const float* filter, int64_t n, Norm norm, float* left) {
  if (norm == Norm::kL1) return RT_KERNEL(AddAndSumAbs)(filter, n, left);
  RT_KERNEL(AddTo)(filter, n, left);
  return Importance(left, n, norm);
}

// The `wanted` rows of largest importance_of(row), ascending; valid until this thread's next call.
template <typename ImportanceOf>
std::span<const int32_t> MostImportant(int64_t rows, int64_t wanted,
                                       const ImportanceOf& importance_of) {
  // Codecs have no state, and the threads that encode live long: their scratch is used again.
  static thread_local std::vector<float> importance;
  static thread_local std::vector<int32_t> chosen;
  importance.clear();
  for (int64_t row = 0; row < rows; ++row) {
    importance.push_back(static_cast<float>(importance_of(row)));
  }
  LargestPlaces(importance, wanted, &chosen);
  return chosen;
}

// All of the payload.
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
  RT_CHECK(options.rho_max > 0 && options.rho_max <= 1, "a rate is a share of the whole");
  RT_CHECK(options.rho_min > 0 && options.rho_min <= 1, "a rate is a share of the whole");
  RT_CHECK(options.uniform_rate >= 0 && options.uniform_rate <= 1, "so is that of all layers");
  RT_CHECK(options.theta > 0 && options.power >= 0 && options.warmup_epochs >= 0,
           "larger layers have smaller rates, in the end");
}

std::string ImportantFiltersCodec::Describe() const {
  const char* what = options_.norm == Norm::kL1 ? "mean |g|" : "RMS";
  if (options_.uniform_rate > 0) {
    return fmt::format("filters of largest {}, {:g}%", what, options_.uniform_rate * 100);
  }
  return fmt::format("filters of largest {}, {:g}% to {:g}%", what, options_.rho_max * 100,
                     options_.rho_min * 100);
}

double ImportantFiltersCodec::RateOf(const GradientShape& shape, const CodecMoment& moment) const {
  double rate = options_.uniform_rate;
  if (rate == 0) {
    // The last bit of pow depends on the machine: ShareOf makes the same of it all the same.
    const double falling =
        std::pow(options_.theta / static_cast<double>(shape.elements()), options_.power);
    rate = std::clamp(options_.rho_max * falling, options_.rho_min, 1.0);
  }
  if (moment.epoch >= options_.warmup_epochs) return rate;
  return 1 + (rate - 1) * std::max(0.0, moment.epoch / options_.warmup_epochs);
}

int64_t ImportantFiltersCodec::RowsOf(const GradientShape& shape, const CodecMoment& moment) const {
  return ShareOf(RateOf(shape, moment), shape.rows);
}

int64_t ImportantFiltersCodec::PayloadBytes(const GradientShape& shape,
                                            const CodecMoment& moment) const {
  return BitmapBytes(shape) + RowsOf(shape, moment) * shape.columns * 4;
}

void ImportantFiltersCodec::Encode(const GradientShape& shape, const CodecMoment& moment,
                                   std::span<const float> gradient,
                                   std::span<std::byte> payload) const {
  const auto chosen = MostImportant(shape.rows, RowsOf(shape, moment), [&](int64_t row) {
    return Importance(gradient.data() + row * shape.columns, shape.columns, options_.norm);
  });
  WriteRows(shape, gradient, chosen, payload);
}

// A filter's importance is found as it is added up; and of those that are sent nothing is left.
void ImportantFiltersCodec::EncodeWithFeedback(const GradientShape& shape,
                                               const CodecMoment& moment,
                                               std::span<const float> gradient,
                                               std::span<float> residual,
                                               std::span<std::byte> payload) const {
  RT_CHECK(gradient.size() == residual.size(), "a residual has the elements of its gradient");
  const auto chosen = MostImportant(shape.rows, RowsOf(shape, moment), [&](int64_t row) {
    const int64_t begin = row * shape.columns;
    return AddAndFindImportance(gradient.data() + begin, shape.columns, options_.norm,
                                residual.data() + begin);
  });
  WriteRows(shape, residual, chosen, payload);
  for (const int64_t row : chosen) {
    std::ranges::fill(residual.subspan(row * shape.columns, shape.columns), 0.0F);
  }
}

Status ImportantFiltersCodec::DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                                        std::span<const std::byte> payload, float scale,
                                        std::span<float> sum) const {
  if (static_cast<int64_t>(payload.size()) != PayloadBytes(shape, moment)) {
    return DataLoss(fmt::format("a payload of filters has {} bytes, not {}", payload.size(),
                                PayloadBytes(shape, moment)));
  }
  const auto bitmap = payload.first(BitmapBytes(shape));
  RT_ASSIGN_OR_RETURN(const int64_t rows, CountRows(bitmap, shape.rows));
  if (rows != RowsOf(shape, moment)) {
    return DataLoss(
        fmt::format("a payload of filters holds {} of them, not {}", rows, RowsOf(shape, moment)));
  }
  const std::byte* from = payload.data() + bitmap.size();
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (!HasRow(bitmap, row)) continue;
    float* const to = sum.data() + row * shape.columns;
    for (int64_t i = 0; i < shape.columns; ++i) {
      float value;  // the payload may begin at any byte
      std::memcpy(&value, from + 4 * i, 4);
      to[i] += scale * value;
    }
    from += 4 * shape.columns;
  }
  return OkStatus();
}

}  // namespace ringtail
