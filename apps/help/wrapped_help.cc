#include "apps/help/wrapped_help.h"

#include <utility>

namespace ringtail {
namespace {

constexpr size_t kColumns = 100;  // of a line, with what stands before a description

void ReplaceAll(std::string_view from, std::string_view to, std::string* text) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
  }
}

}  // namespace

std::string Wrapped(std::string_view text, size_t columns) {
  std::string lines;
  size_t length = 0;  // of the last line
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    if (!lines.empty()) {
      const bool fits = length + 1 + word.size() <= columns;
      lines += fits ? ' ' : '\n';
      length = fits ? length + 1 : 0;
    }
    lines += word;
    length += word.size();
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
  }
  return lines;
}

std::string WrappedHelp::make_help(const CLI::App* app, std::string name,
                                   CLI::AppFormatMode mode) const {
  std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
  ReplaceAll("\n\n\n", "\n\n", &help);
  return help;
}

// The type, and again that of the range: "INT:INT in [1 - 4096]".
std::string WrappedHelp::make_option_opts(const CLI::Option* option) const {
  std::string text = CLI::Formatter::make_option_opts(option);
  ReplaceAll("INT:INT in", "INT in", &text);
  ReplaceAll("FLOAT:FLOAT in", "FLOAT in", &text);
  return text;
}

std::string WrappedHelp::make_option_desc(const CLI::Option* option) const {
  return Wrapped(CLI::Formatter::make_option_desc(option), kColumns - get_column_width());
}

}  // namespace ringtail
