#include "core/config/field_path.h"

#include <algorithm>
#include <charconv>

#include "core/config/renamed_fields.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

// Reads "field" or "field[selector]" from the front of `rest`.
StatusOr<PathStep> ReadStep(std::string_view* rest) {
  PathStep step;
  const size_t field_end = std::min(rest->find_first_of(".[]"), rest->size());
  step.field = CurrentFieldName(rest->substr(0, field_end));
  rest->remove_prefix(field_end);
  if (step.field.empty()) return InvalidArgument("a field name is missing");
  if (!rest->starts_with('[')) return step;
  const size_t close = rest->find(']');
  if (close == std::string_view::npos) {
    return InvalidArgument(fmt::format("the '[' after '{}' is not closed", step.field));
  }
  step.selector = rest->substr(1, close - 1);
  rest->remove_prefix(close + 1);
  if (step.selector->empty()) {
    return InvalidArgument(
        fmt::format("'{}[]' needs an index or a name in the brackets", step.field));
  }
  return step;
}

}  // namespace

std::optional<int> PathStep::Index() const {
  if (!selector) return std::nullopt;
  int index = 0;
  const char* const end = selector->data() + selector->size();
  const auto [stopped, error] = std::from_chars(selector->data(), end, index);
  if (error != std::errc() || stopped != end || index < 0) return std::nullopt;
  return index;
}

StatusOr<FieldPath> ParseFieldPath(std::string_view text) {
  FieldPath path;
  std::string_view rest = text;
  while (true) {
    StatusOr<PathStep> step = ReadStep(&rest);
    if (!step.ok()) return step.status().Annotate(fmt::format("path '{}'", text));
    path.push_back(*std::move(step));
    if (rest.empty()) return path;
    if (!rest.starts_with('.')) {
      return InvalidArgument(fmt::format("path '{}': expected '.' before '{}'", text, rest));
    }
    rest.remove_prefix(1);
  }
}

bool IsAtOrBelow(const FieldPath& path, const FieldPath& ancestor) {
  if (ancestor.empty()) return true;
  if (path.size() < ancestor.size()) return false;
  const size_t last = ancestor.size() - 1;
  if (!std::equal(ancestor.begin(), ancestor.end() - 1, path.begin())) return false;
  if (path[last].field != ancestor[last].field) return false;
  return !ancestor[last].selector || ancestor[last].selector == path[last].selector;
}

}  // namespace ringtail
