// Numbers with their unit in singular or plural: "1 epoch", "2.5 epochs", "0 steps".
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_TEXT_COUNTED_H_
#define RINGTAIL_CORE_TEXT_COUNTED_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringtail {

// `unit` is the singular of a noun whose plural takes an s.
std::string CountedInteger(int64_t number, std::string_view unit);
std::string CountedReal(double number, std::string_view unit);  // four significant digits

template <typename Number>
std::string Counted(Number number, std::string_view unit) {
  if constexpr (std::integral<Number>)
    return CountedInteger(static_cast<int64_t>(number), unit);
  else
    return CountedReal(number, unit);
}

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TEXT_COUNTED_H_
