#include "core/config/field_check.h"

#include <fmt/format.h>

#include <limits>

namespace ringtail {
namespace {

// Rules compute in f32, where a smaller number would be zero or denormal and a larger one infinite.
constexpr double kSmallest = std::numeric_limits<float>::min();
constexpr double kLargest = std::numeric_limits<float>::max();

}  // namespace

std::string FieldCheck::Number::Text() const {
  return is_float_ ? fmt::format("{}", static_cast<float>(value_)) : fmt::format("{}", value_);
}

Status FieldCheck::Positive(std::string_view field, Number value) const {
  return Require(value.value() >= kSmallest && value.value() <= kLargest, field, value,
                 "finite and greater than 0");
}

Status FieldCheck::NotNegative(std::string_view field, Number value) const {
  return Require(value.value() >= 0 && value.value() <= kLargest, field, value,
                 "finite and at least 0");
}

Status FieldCheck::Fraction(std::string_view field, Number value) const {
  return Between(field, value, 0, 1);
}

Status FieldCheck::FractionBelowOne(std::string_view field, Number value) const {
  return Require(value.value() >= 0 && value.value() < 1, field, value,
                 "at least 0 and less than 1");
}

Status FieldCheck::PositiveFraction(std::string_view field, Number value) const {
  return PositiveUpTo(field, value, 1);
}

Status FieldCheck::Between(std::string_view field, Number value, double least, double most) const {
  return Require(value.value() >= least && value.value() <= most, field, value,
                 fmt::format("from {} to {}", least, most));
}

Status FieldCheck::PositiveUpTo(std::string_view field, Number value, double most) const {
  return Require(value.value() > 0 && value.value() <= most, field, value,
                 fmt::format("greater than 0 and at most {}", most));
}

Status FieldCheck::AtLeast(std::string_view field, Number value, double least) const {
  return Require(value.value() >= least && value.value() <= kLargest, field, value,
                 fmt::format("at least {}", least));
}

Status FieldCheck::Error(std::string_view field, const std::string& message) const {
  const std::string path = PathOf(field);
  if (failed_ != nullptr) {
    *failed_ = path;
    return InvalidArgument(message);
  }
  return source_ ? source_->Error(path, message) : InvalidArgument(path + ": " + message);
}

std::string FieldCheck::PathOf(std::string_view field) const {
  if (field.empty()) return path_;
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

Status FieldCheck::Require(bool in_range, std::string_view field, Number value,
                           std::string_view range) const {
  if (in_range) return OkStatus();
  return Error(field, fmt::format("{} is {}; it must be {}", field, value.Text(), range));
}

}  // namespace ringtail
