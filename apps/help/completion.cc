#include "apps/help/completion.h"

#include <fmt/core.h>

namespace ringtail {

std::string FillIn(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  for (size_t i = 0; i < text.size();) {
    bool found = false;
    for (const auto& [name, value] : values) {
      const std::string mark = fmt::format("@{}@", name);
      if (!text.substr(i).starts_with(mark)) continue;
      filled += value;
      i += mark.size();
      found = true;
      break;
    }
    if (!found) filled += text[i++];
  }
  return filled;
}

std::string ShellQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ShellWords(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

std::vector<std::string> VerbNames(const ProgramInfo& program) {
  std::vector<std::string> names;
  for (const VerbInfo& verb : program.verbs) names.push_back(verb.name);
  return names;
}

std::vector<std::string> FlagNames(const std::vector<FlagInfo>& flags) {
  std::vector<std::string> names;
  for (const FlagInfo& flag : flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

}  // namespace ringtail
