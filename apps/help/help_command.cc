// ringtail help: what `--help` prints, of the program or of a verb.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "core/config/nearest_name.h"

namespace ringtail {
namespace {

void PrintHelp(const CLI::App& app, const std::string& name) {
  Print("{}", app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal));
}

StatusOr<int> RunHelp(const CLI::App& program, const std::string& asked) {
  if (asked.empty()) {
    PrintHelp(program, program.get_name());
    return kExitSuccess;
  }
  std::vector<std::string> names;
  for (const CLI::App* verb : program.get_subcommands({})) {
    names.push_back(verb->get_name());
    if (names.back() != asked) continue;
    PrintHelp(*verb, program.get_name() + " " + asked);
    return kExitSuccess;
  }
  const std::string nearest = NearestName(asked, names);
  return InvalidArgument(fmt::format("there is no verb '{}'{}", asked,
                                     nearest.empty()
                                         ? fmt::format("; `{} help` lists them", ProgramName())
                                         : fmt::format("; did you mean '{}'?", nearest)));
}

}  // namespace

void AddHelpCommand(CLI::App* app, Command* chosen) {
  auto asked = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("help", "Describe the program, or a verb");
  verb->add_option("verb", *asked, "The verb to describe (default: list all)")->type_name("VERB");
  verb->footer(Examples({"help", "help train"}));
  verb->callback(
      [app, asked, chosen] { *chosen = [app, asked] { return RunHelp(*app, *asked); }; });
}

}  // namespace ringtail
