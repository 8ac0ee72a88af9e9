#include "tests/apps/help/verbs.h"

#include <CLI/CLI.hpp>
#include <regex>
#include <utility>

#include "apps/dogs_vs_cats/command.h"
#include "apps/help/program_name.h"
#include "core/check.h"

namespace ringtail {
namespace {

// The first group of every match of `pattern` in `text`.
std::vector<std::string> Find(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

std::vector<VerbHelp> ReadAllVerbs() {
  CLI::App app("", ProgramName());
  Command chosen;
#define RT_ADD_VERB(Verb) Add##Verb##Command(&app, &chosen);
  RT_FOR_EACH_VERB(RT_ADD_VERB)
#undef RT_ADD_VERB
  std::vector<VerbHelp> verbs;
  for (const CLI::App* added : app.get_subcommands([](const CLI::App*) { return true; })) {
    VerbHelp verb{.name = added->get_name(), .help = added->help(ProgramName()), .flags = {}};
    // "  --config NAME|FILE  ..." and "  -h,--help  ..."
    for (std::string& flag : Find(verb.help, "\n  (?:-[a-z],)?(--[a-z-]+)")) {
      verb.flags.insert(std::move(flag));
    }
    RT_CHECK(verb.flags.contains("--help"), verb.help);
    verbs.push_back(std::move(verb));
  }
  RT_CHECK(verbs.size() > 10 && verbs.front().flags.contains("--data"), "train is the first verb");
  return verbs;
}

}  // namespace

ProcessResult RunRingtail(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RT_BINARY_DIR "/bin/ringtail");
  return RunProcess(std::move(arguments));
}

const std::vector<VerbHelp>& AllVerbs() {
  static const auto& verbs = *new std::vector<VerbHelp>(ReadAllVerbs());
  return verbs;
}

}  // namespace ringtail
