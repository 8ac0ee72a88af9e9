#include "apps/help/program_name.h"

#include <errno.h>  // program_invocation_short_name
#include <fmt/core.h>

namespace ringtail {

const char* ProgramName() { return program_invocation_short_name; }

std::string Examples(const std::vector<std::string_view>& commands, std::string_view notes) {
  std::string text = "Examples";
  for (const std::string_view command : commands) {
    text += fmt::format("\n  {} {}", ProgramName(), command);
  }
  if (!notes.empty()) text += fmt::format("\n\n{}", notes);
  return text;
}

}  // namespace ringtail
