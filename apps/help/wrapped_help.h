// WrappedHelp: how --help looks: a flag's description in lines that fit, no two blank lines.
//
//   --set FIELD=VALUE           Override any field, e.g. train.epochs=3 or
//                               net.layer[fc].linear.bias=false; FIELD= empties a list; repeatable
//
// An App takes it before its verbs are added, which take that of their App.
// Thread-safety: const.
#ifndef RINGTAIL_APPS_HELP_WRAPPED_HELP_H_
#define RINGTAIL_APPS_HELP_WRAPPED_HELP_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace ringtail {

class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

// `text` with line ends in place of blanks, so that no line is longer than `columns`, unless a word is.
std::string Wrapped(std::string_view text, size_t columns);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_WRAPPED_HELP_H_
