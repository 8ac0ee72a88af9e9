// ringtail, which is called dogs_vs_cats, too: trains, evaluates and examines networks that classify images. Its verbs
// are in command.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/help/flag_hint.h"
#include "apps/help/program_name.h"
#include "apps/help/verb_flags.h"
#include "apps/help/wrapped_help.h"
#include "apps/version.h"
#include "core/config/nearest_name.h"
#include "core/machine/thread_limit.h"
#include "core/stop_signal.h"
#include "core/terminate.h"
#include "core/text/printable.h"

namespace ringtail {
namespace {

constexpr char kExitCodes[] = R"(

Exit codes
  0    success
  1    failure
  2    a flag or a config is wrong
  3    training met a NaN or infinity
  75   another rank did not join or was lost; start the job again
  76   the ranks hold different bits
  130  stopped by Ctrl-C after a checkpoint; 128 + n by signal n)";

int Fail(const std::string& message, int exit_code) {
  std::cerr << ProgramName() << ": " << Printable(message) << '\n';
  return exit_code;
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

// What to type after a command line that is wrong: "; did you mean 'train'?", "; see `ringtail help train`".
std::string Hint(const CLI::App& app, const std::string& first_word) {
  const std::string nearest = NearestName(first_word, VerbNames(app));
  if (nearest.empty()) return "; see `" + app.get_name() + " help`";
  if (nearest == first_word) return "; see `" + app.get_name() + " help " + nearest + "`";
  return "; did you mean '" + nearest + "'?";
}

// "train does not know '--epochs 3'; did you mean '--set train.epochs=3'?"
std::string UnknownWords(const CLI::App& verb, const std::string& otherwise) {
  const std::vector<std::string> words = verb.remaining();
  const std::string hint = FlagHint(words, DescribeProgram(verb).own);
  return fmt::format("{} does not know '{}'{}", verb.get_name(), fmt::join(words, " "),
                     hint.empty() ? otherwise : fmt::format("; did you mean '{}'?", hint));
}

int Main(int argc, char** argv) {
  ExplainTermination(ProgramName());
  SaveAddressSpace();
  IgnoreBrokenPipes();
  CLI::App app("Trains convolutional networks to classify images, on CPUs, and uses them.",
               ProgramName());
  app.formatter(std::make_shared<WrappedHelp>());
  app.set_version_flag("--version", VersionLine());
  app.footer(Examples({"train --data ~/pets --output runs/first", "report runs/first",
                       "predict --checkpoint runs/first --images cat.jpg", "help train"}) +
             kExitCodes);
  app.require_subcommand(1);
  Command chosen;
#define RT_ADD_VERB(Verb) Add##Verb##Command(&app, &chosen);
  RT_FOR_EACH_VERB(RT_ADD_VERB)
#undef RT_ADD_VERB
  if (argc < 2) {
    std::cerr << app.help();
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) {  // --help, --version
    return app.exit(asked_for);
  } catch (const CLI::ExtrasError& error) {
    const std::string hint = Hint(app, argv[1]);
    const auto verbs = app.get_subcommands();  // those that were named
    return Fail(verbs.empty() ? error.what() + hint : UnknownWords(*verbs.front(), hint),
                kExitUsage);
  } catch (const CLI::ParseError& error) {
    return Fail(error.what() + Hint(app, argv[1]), kExitUsage);
  }
  const StatusOr<int> exit_code = chosen();
  return exit_code.ok() ? *exit_code
                        : Fail(exit_code.status().message(), ExitCodeOf(exit_code.status()));
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) { return ringtail::Main(argc, argv); }
