#include "apps/csv.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ringtail {
namespace {

// Takes a field from the front of `text`, up to the comma or line end behind it. False if quotes
// are wrong.
bool TakeField(std::string_view* text, std::string* field) {
  if (!text->starts_with('"')) {
    const size_t end = std::min(text->find_first_of(",\r\n"), text->size());
    *field = text->substr(0, end);
    text->remove_prefix(end);
    return field->find('"') == std::string::npos;
  }
  text->remove_prefix(1);
  while (true) {
    const size_t quote = text->find('"');
    if (quote == std::string_view::npos) return false;
    *field += text->substr(0, quote);
    text->remove_prefix(quote + 1);
    if (!text->starts_with('"')) break;
    *field += '"';
    text->remove_prefix(1);
  }
  return text->empty() || text->front() == ',' || text->front() == '\r' || text->front() == '\n';
}

}  // namespace

std::string CsvField(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

StatusOr<std::vector<std::vector<std::string>>> ParseCsv(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  while (!text.empty()) {
    std::vector<std::string> fields;
    do {
      if (!fields.empty()) text.remove_prefix(1);
      if (!TakeField(&text, &fields.emplace_back())) {
        return InvalidArgument(
            fmt::format("line {}: a quote is not closed, or stands inside a "
                        "field without quotes",
                        lines.size() + 1));
      }
    } while (text.starts_with(','));
    if (text.starts_with('\r')) text.remove_prefix(1);
    if (text.starts_with('\n')) text.remove_prefix(1);
    lines.push_back(std::move(fields));
  }
  return lines;
}

}  // namespace ringtail
