// Paths to a field of a config: "net.layer[3].convolution.kernel", "net.layer[conv1].name".
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_FIELD_PATH_H_
#define RINGTAIL_CORE_CONFIG_FIELD_PATH_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct PathStep {
  std::string field;
  std::optional<std::string> selector;  // the text in [ ]: a number or a name

  bool operator==(const PathStep&) const = default;
  std::optional<int> Index() const;  // the selector, if it is a number
};
using FieldPath = std::vector<PathStep>;

// InvalidArgument, with the reason, for empty steps and brackets that do not match.
StatusOr<FieldPath> ParseFieldPath(std::string_view text);

// Whether `path` equals `ancestor` or lies below it. "a.b[2]" lies below "a.b".
bool IsAtOrBelow(const FieldPath& path, const FieldPath& ancestor);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_FIELD_PATH_H_
