#include "data/layouts/list_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "data/image_name.h"

namespace ringtail {
namespace {

constexpr std::array<std::string_view, 7> kPathColumns = {
    "path", "image", "image_path", "file", "file_name", "filename", "filepath"};
constexpr std::array<std::string_view, 5> kLabelColumns = {"label", "class", "class_name",
                                                           "category", "target"};

std::optional<int32_t> ParseNumber(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Takes a field and the separator behind it from the front of `text`; false at the end of the line.
StatusOr<bool> TakeField(char separator, std::string_view* text, std::string* field) {
  field->clear();
  size_t at = 0;
  if (text->starts_with('"')) {
    for (at = 1;; ++at) {
      if (at >= text->size()) return InvalidArgument("a quote is not closed in this line");
      if ((*text)[at] != '"') {
        *field += (*text)[at];
      } else if (text->substr(at + 1).starts_with('"')) {
        *field += (*text)[at++];
      } else {
        break;
      }
    }
    ++at;
    if (at < text->size() && (*text)[at] != separator) {
      return InvalidArgument("something stands behind a field in quotes");
    }
  } else {
    at = std::min(text->find(separator), text->size());
    *field = TrimLine(text->substr(0, at));
  }
  const bool more = at < text->size();
  text->remove_prefix(std::min(at + 1, text->size()));
  return more;
}

StatusOr<std::vector<std::string>> SplitFields(std::string_view text, char separator) {
  std::vector<std::string> fields;
  for (bool more = true; more;) {
    RT_ASSIGN_OR_RETURN(more, TakeField(separator, &text, &fields.emplace_back()));
  }
  return fields;
}

// Of the first field that is one of `names` in any case; fields.size() if there is none.
size_t ColumnOf(std::span<const std::string_view> names, const std::vector<std::string>& fields) {
  const auto is_one = [&](std::string field) {
    std::transform(field.begin(), field.end(), field.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::find(names.begin(), names.end(), field) != names.end();
  };
  return std::find_if(fields.begin(), fields.end(), is_one) - fields.begin();
}

StatusOr<ListLine> ParsePair(std::string_view text) {
  size_t last = text.find_last_of('\t');
  if (last == std::string_view::npos) last = text.find_last_of(' ');
  if (last == std::string_view::npos) {
    return InvalidArgument(fmt::format(
        "'{}' has no label; a line is \"path label\", with -1 for no label; a CSV file begins with "
        "the line \"path,label\"",
        EscapeName(text)));
  }
  return ListLine{std::string(TrimLine(text.substr(0, last))),
                  std::string(TrimLine(text.substr(last + 1))),
                  {}};
}

}  // namespace

std::string_view TrimLine(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool ListLineParser::TakeHeading(std::string_view text) {
  for (const char separator : {',', '\t'}) {
    const auto fields = SplitFields(text, separator);
    if (!fields.ok()) continue;
    const size_t path = ColumnOf(kPathColumns, *fields), label = ColumnOf(kLabelColumns, *fields);
    if (path == fields->size() || label == fields->size()) continue;
    separator_ = separator;
    path_ = path;
    label_ = label;
    columns_ = fields->size();
    return true;
  }
  return false;
}

StatusOr<ListLine> ListLineParser::ParseRow(std::string_view text) const {
  RT_ASSIGN_OR_RETURN(std::vector<std::string> fields, SplitFields(text, separator_));
  if (fields.size() != columns_) {
    return InvalidArgument(
        fmt::format("{} fields where the first line names {}", fields.size(), columns_));
  }
  if (fields[path_].empty() || fields[label_].empty()) {
    return InvalidArgument("a path or a label is missing; -1 stands for no label");
  }
  return ListLine{std::move(fields[path_]), std::move(fields[label_]), {}};
}

StatusOr<std::optional<ListLine>> ListLineParser::Parse(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return InvalidArgument("this is not text; a list file has \"path label\" in each line");
  }
  if (std::exchange(first_, false) && TakeHeading(text)) return std::optional<ListLine>();
  RT_ASSIGN_OR_RETURN(ListLine line, separator_ == '\0' ? ParsePair(text) : ParseRow(text));
  line.number = ParseNumber(line.label);
  if (line.number && (*line.number < -1 || *line.number > kMaxListLabel)) {
    return InvalidArgument(
        fmt::format("label {} is out of range; labels are 0 .. {}, or -1 for none", *line.number,
                    kMaxListLabel));
  }
  return std::optional<ListLine>(std::move(line));
}

}  // namespace ringtail
