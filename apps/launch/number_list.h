// Lists of ranks or cores as text: "0-3,8". Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_NUMBER_LIST_H_
#define RINGTAIL_APPS_LAUNCH_NUMBER_LIST_H_

#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

inline constexpr int kMostNumbers = 1 << 16;  // numbers are below it

std::string FormatNumbers(std::vector<int> numbers);

// InvalidArgument for other text.
StatusOr<std::vector<int>> ParseNumbers(const std::string& text);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_NUMBER_LIST_H_
