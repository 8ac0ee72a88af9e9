// ringtail manual: writes the man pages of the program, its verbs and the launcher.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/help/man_page.h"
#include "apps/help/program_name.h"
#include "apps/help/verb_flags.h"
#include "apps/launch/launch_options.h"
#include "apps/print.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

StatusOr<int> RunManual(const CLI::App& program, const std::string& folder) {
  ProgramInfo info = DescribeProgram(program);
  info.own.name = kProgramName;
  std::vector<ManPage> pages = ManPages(info, kOtherProgramName);
  DescribeLauncher([&](const CLI::App& launcher) {
    for (ManPage& page : ManPages(DescribeProgram(launcher))) pages.push_back(std::move(page));
  });
  RT_RETURN_IF_ERROR(MakeDirectories(folder));
  for (const ManPage& page : pages) {
    RT_RETURN_IF_ERROR(WriteFileAtomic(folder + "/" + page.file, page.text));
  }
  Print("{} man pages in {}\n", pages.size(), folder);
  return kExitSuccess;
}

}  // namespace

void AddManualCommand(CLI::App* app, Command* chosen) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("manual", "Write the man pages, where none are installed");
  verb->add_option("--out", *folder, "Folder for ringtail.1, ringtail-train.1, ...")
      ->type_name("DIR")
      ->required();
  verb->footer(Examples({"manual --out ~/.local/share/man/man1"}));
  verb->callback(
      [app, folder, chosen] { *chosen = [app, folder] { return RunManual(*app, *folder); }; });
}

}  // namespace ringtail
