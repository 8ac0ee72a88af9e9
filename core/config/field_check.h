// Range checks of config fields, with the error at the field's place in the file:
//
//   run.textproto:12:17: momentum is 1.5; it must be at least 0 and less than 1
//
// All checks also reject NaN and infinity, which the text format can spell.
// Thread-safety: immutable.
#ifndef RINGTAIL_CORE_CONFIG_FIELD_CHECK_H_
#define RINGTAIL_CORE_CONFIG_FIELD_CHECK_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "core/config/config_source.h"
#include "core/status.h"

namespace ringtail {

class FieldCheck {
 public:
  // A field's value. Values of float fields are printed with a float's digits: 0.1, not
  // 0.100000001.
  class Number {
   public:
    template <typename T>
    Number(T value)  // NOLINT(google-explicit-constructor)
        : value_(static_cast<double>(value)), is_float_(std::is_same_v<T, float>) {}
    double value() const { return value_; }
    std::string Text() const;

   private:
    double value_;
    bool is_float_;
  };

  // `source` may be null: messages then contain the path. `path`: the message that holds the
  // fields, "optim.sgd"; "": the whole config.
  FieldCheck(const ConfigSource* source, std::string path)
      : source_(source), path_(std::move(path)) {}
  // For code that does not know the place of its message: errors are bare sentences, and the path
  // of the wrong field, relative to the message, is stored in *failed for the caller to place it.
  explicit FieldCheck(std::string* failed) : failed_(failed) {}
  // For the message in `field`.
  FieldCheck Within(std::string_view field) const {
    FieldCheck within = *this;
    within.path_ = PathOf(field);
    return within;
  }

  Status Positive(std::string_view field, Number value) const;
  Status NotNegative(std::string_view field, Number value) const;
  Status Fraction(std::string_view field, Number value) const;          // 0 .. 1
  Status FractionBelowOne(std::string_view field, Number value) const;  // 0 .. <1
  Status PositiveFraction(std::string_view field, Number value) const;  // >0 .. 1
  Status Between(std::string_view field, Number value, double least, double most) const;
  Status PositiveUpTo(std::string_view field, Number value, double most) const;
  Status AtLeast(std::string_view field, Number value, double least) const;
  // An empty `field` means the message itself.
  Status Error(std::string_view field, const std::string& message) const;

 private:
  std::string PathOf(std::string_view field) const;
  Status Require(bool in_range, std::string_view field, Number value, std::string_view range) const;
  const ConfigSource* source_ = nullptr;
  std::string* failed_ = nullptr;
  std::string path_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_FIELD_CHECK_H_
