// ringtail completion: prints a script that teaches a shell the verbs, flags, configs and fields.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/config/shipped_configs.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/emulator/script.pb.h"
#include "apps/exit_code.h"
#include "apps/help/completion.h"
#include "apps/help/field_paths.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/run.pb.h"

namespace ringtail {
namespace {

StatusOr<int> RunCompletion(const CLI::App& program, const std::string& shell) {
  ProgramInfo info = DescribeProgram(program);
  info.own.name = kProgramName;
  const CompletionWords words = {.configs = ShippedConfigNames(),
                                 .fields = FieldAssignments(*RunConfig::descriptor()),
                                 .script_fields = FieldAssignments(*EmulationScript::descriptor())};
  const auto write = shell == "bash"  ? BashCompletion
                     : shell == "zsh" ? ZshCompletion
                                      : FishCompletion;
  Print("{}", write(info, kOtherProgramName, words));
  return kExitSuccess;
}

}  // namespace

void AddCompletionCommand(CLI::App* app, Command* chosen) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb =
      app->add_subcommand("completion", "Print a script that completes commands in a shell");
  verb->add_option("shell", *shell, "The shell")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  verb->footer(Examples({"completion bash > ~/.local/share/bash-completion/completions/ringtail",
                         "completion fish > ~/.config/fish/completions/ringtail.fish"},
                        "In ~/.bashrc or ~/.zshrc: source <(ringtail completion bash), or zsh. "
                        "Where the program is installed as\na package, shells find it by "
                        "themselves."));
  verb->callback(
      [app, shell, chosen] { *chosen = [app, shell] { return RunCompletion(*app, *shell); }; });
}

}  // namespace ringtail
