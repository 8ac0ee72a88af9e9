// Range checks of config fields, with the error at the field's place in the file:
//
//   run.textproto:12:17: momentum is 1.5; it must be at least 0 and less than 1
//
// All checks reject NaN and infinity, too, which the text format can spell.
// Thread-safety: immutable.
#ifndef RINGTAIL_CORE_FIELD_CHECK_H_
#define RINGTAIL_CORE_FIELD_CHECK_H_

#include <string>
#include <string_view>

#include "core/status.h"
#include "core/text_config.h"

namespace ringtail {

class FieldCheck {
 public:
  // `source` may be null: the path then stands in the message. `path`: the message that holds the
  // fields, "optim.sgd".
  FieldCheck(const ConfigSource* source, std::string path)
      : source_(source), path_(std::move(path)) {}

  Status Positive(std::string_view field, double value) const;
  Status NotNegative(std::string_view field, double value) const;
  Status Fraction(std::string_view field, double value) const;          // 0 .. 1
  Status FractionBelowOne(std::string_view field, double value) const;  // 0 .. <1
  Status PositiveFraction(std::string_view field, double value) const;  // >0 .. 1
  Status Between(std::string_view field, double value, double least, double most) const;
  Status Error(std::string_view field, const std::string& message) const;

 private:
  Status Require(bool in_range, std::string_view field, double value, std::string_view range) const;
  const ConfigSource* source_;
  std::string path_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_FIELD_CHECK_H_
