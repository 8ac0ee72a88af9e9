// dogs_vs_cats: trains, evaluates and examines networks that tell cats from dogs. Its verbs are in
// command.h.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/version.h"
#include "core/config/nearest_name.h"
#include "core/machine/thread_limit.h"
#include "core/printable.h"
#include "core/stop_signal.h"
#include "core/terminate.h"

namespace ringtail {
namespace {

int Fail(const std::string& message, int exit_code) {
  std::cerr << "dogs_vs_cats: " << Printable(message) << '\n';
  return exit_code;
}

// A hint for a first word that resembles a verb.
std::string DidYouMean(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands({})) verbs.push_back(verb->get_name());
  const std::string nearest = argc > 1 ? NearestName(argv[1], verbs) : "";
  return nearest.empty() || nearest == argv[1] ? "" : " (did you mean '" + nearest + "'?)";
}

int Main(int argc, char** argv) {
  ExplainTermination("dogs_vs_cats");
  SaveAddressSpace();
  IgnoreBrokenPipes();
  CLI::App app("Trains convolutional networks on CPUs to tell cats from dogs.", "dogs_vs_cats");
  app.set_version_flag("--version", VersionLine());
  app.require_subcommand(1);
  Command chosen;
#define RT_ADD_VERB(Verb) Add##Verb##Command(&app, &chosen);
  RT_FOR_EACH_VERB(RT_ADD_VERB)
#undef RT_ADD_VERB
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) {  // --help, --version
    return app.exit(asked_for);
  } catch (const CLI::ParseError& error) {
    return Fail(std::string(error.what()) + DidYouMean(app, argc, argv) + "; see --help",
                kExitUsage);
  }
  const StatusOr<int> exit_code = chosen();
  return exit_code.ok() ? *exit_code
                        : Fail(exit_code.status().message(), ExitCodeOf(exit_code.status()));
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) { return ringtail::Main(argc, argv); }
