#include "core/config/renamed_fields.h"

#include <cctype>

namespace ringtail {
namespace {

struct RenamedField {
  std::string_view before, now;
};
constexpr RenamedField kRenamedFields[] = {{"bad_pictures", "bad_images"}};

constexpr bool NoNameIsLonger() {
  for (const RenamedField& field : kRenamedFields) {
    if (field.now.size() > field.before.size()) return false;
  }
  return true;
}
static_assert(NoNameIsLonger());

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The end of the token at `begin`: a name, a quoted text, a comment or one character.
size_t TokenEnd(std::string_view text, size_t begin) {
  const char first = text[begin];
  size_t end = begin + 1;
  if (first == '#') {
    while (end < text.size() && text[end] != '\n') ++end;
  } else if (first == '"' || first == '\'') {
    while (end < text.size() && text[end] != first && text[end] != '\n') {
      end += text[end] == '\\' && end + 1 < text.size() ? 2 : 1;
    }
    if (end < text.size()) ++end;
  } else if (IsNameCharacter(first)) {
    while (end < text.size() && IsNameCharacter(text[end])) ++end;
  }
  return end;
}

}  // namespace

std::string_view CurrentFieldName(std::string_view name) {
  for (const RenamedField& field : kRenamedFields) {
    if (name == field.before) return field.now;
  }
  return name;
}

std::string WithCurrentFieldNames(std::string_view text) {
  std::string current;
  current.reserve(text.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = TokenEnd(text, begin);
    const std::string_view token = text.substr(begin, end - begin);
    const std::string_view name = CurrentFieldName(token);
    current.append(name).append(token.size() - name.size(), ' ');
    begin = end;
  }
  return current;
}

}  // namespace ringtail
