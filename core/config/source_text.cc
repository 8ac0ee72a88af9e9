#include "core/config/source_text.h"

#include <algorithm>

#include "core/text/printable.h"
#include "core/text/utf8.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

constexpr size_t kTabColumns = 8;         // the tab width of protobuf's tokenizer
constexpr size_t kShownBytesBefore = 80;  // of a long line, around the caret
constexpr size_t kShownBytesAfter = 80;

size_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return !IsUtf8Continuation(c); });
}

// Replaces each unprintable character by one question mark, so that the caret below is in place.
std::string WithQuestionMarks(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = text[0] == '\t' ? 1 : PrintableCharacter(text);
    shown += length > 0 ? text.substr(0, length) : "?";
    text.remove_prefix(std::max<size_t>({length, Utf8CharacterLength(text), 1}));
  }
  return shown;
}

// Blanks as wide as `text`; tabs stay, so that the caret is in place at any tab width.
std::string Blanks(std::string_view text) {
  std::string blanks;
  for (const char c : text) {
    if (!IsUtf8Continuation(c)) blanks += c == '\t' ? '\t' : ' ';
  }
  return blanks;
}

// The line, with a caret below its byte `at`.
std::string Excerpt(std::string_view line, size_t at) {
  size_t begin = at > kShownBytesBefore ? at - kShownBytesBefore : 0;
  while (begin < at && IsUtf8Continuation(line[begin])) ++begin;
  size_t end = std::min(line.size(), at + kShownBytesAfter);
  while (end < line.size() && IsUtf8Continuation(line[end])) ++end;
  const std::string before =
      (begin > 0 ? "..." : "") + WithQuestionMarks(line.substr(begin, at - begin));
  const std::string after =
      WithQuestionMarks(line.substr(at, end - at)) + (end < line.size() ? "..." : "");
  return fmt::format("  {}{}\n  {}^", before, after, Blanks(before));
}

}  // namespace

size_t EndOfQuoted(std::string_view text, size_t begin) {
  const char quote = text[begin];
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '\n') {
    if (quote != '#' && text[i] == quote) return i + 1;
    i += quote != '#' && text[i] == '\\' ? 2 : 1;
  }
  return std::min(i, text.size());
}

SourceText::SourceText(std::string file_name, std::string text)
    : file_name_(std::move(file_name)), text_(std::move(text)), line_begins_{0} {
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_begins_.push_back(i + 1);
  }
}

size_t SourceText::LineOf(size_t offset) const {
  const auto after = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  return after - line_begins_.begin() - 1;
}

std::string_view SourceText::Line(size_t line) const {
  const std::string_view rest = text().substr(line_begins_[line]);
  return rest.substr(0, rest.find_first_of("\r\n"));
}

size_t SourceText::OffsetOf(int line, int column) const {
  if (line < 0) return 0;
  if (static_cast<size_t>(line) >= line_begins_.size()) return text_.size();
  const std::string_view characters = Line(line);
  size_t at = 0;
  for (size_t reached = 0; at < characters.size(); ++at) {
    if (reached >= static_cast<size_t>(std::max(column, 0))) break;
    reached = characters[at] == '\t' ? (reached / kTabColumns + 1) * kTabColumns : reached + 1;
  }
  return line_begins_[line] + at;
}

Status SourceText::Error(size_t offset, std::string_view message) const {
  const size_t line = LineOf(std::min(offset, text_.size()));
  const std::string_view characters = Line(line);
  const size_t at = std::min(offset - line_begins_[line], characters.size());
  return InvalidArgument(fmt::format("{}:{}:{}: {}\n{}", file_name_, line + 1,
                                     CountCharacters(characters.substr(0, at)) + 1, message,
                                     Excerpt(characters, at)));
}

}  // namespace ringtail
