#include "core/field_check.h"

#include <fmt/format.h>

#include <limits>

namespace ringtail {
namespace {

// Rules compute in f32, where a smaller number would be zero (or slow) and a larger one infinite.
constexpr double kSmallest = std::numeric_limits<float>::min();
constexpr double kLargest = std::numeric_limits<float>::max();

}  // namespace

Status FieldCheck::Positive(std::string_view field, double value) const {
  return Require(value >= kSmallest && value <= kLargest, field, value,
                 "finite and greater than 0");
}

Status FieldCheck::NotNegative(std::string_view field, double value) const {
  return Require(value >= 0 && value <= kLargest, field, value, "finite and at least 0");
}

Status FieldCheck::Fraction(std::string_view field, double value) const {
  return Require(value >= 0 && value <= 1, field, value, "from 0 to 1");
}

Status FieldCheck::FractionBelowOne(std::string_view field, double value) const {
  return Require(value >= 0 && value < 1, field, value, "at least 0 and less than 1");
}

Status FieldCheck::PositiveFraction(std::string_view field, double value) const {
  return Require(value > 0 && value <= 1, field, value, "greater than 0 and at most 1");
}

Status FieldCheck::Between(std::string_view field, double value, double least, double most) const {
  return Require(value >= least && value <= most, field, value,
                 fmt::format("from {} to {}", least, most));
}

Status FieldCheck::Error(std::string_view field, const std::string& message) const {
  const std::string path = fmt::format("{}.{}", path_, field);
  return source_ ? source_->Error(path, message) : InvalidArgument(path + ": " + message);
}

Status FieldCheck::Require(bool in_range, std::string_view field, double value,
                           std::string_view range) const {
  if (in_range) return OkStatus();
  return Error(field, fmt::format("{} is {}; it must be {}", field, value, range));
}

}  // namespace ringtail
