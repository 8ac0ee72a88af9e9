// dogs_vs_cats report: a run as one HTML file.
#include <CLI/CLI.hpp>
#include <memory>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/trained_network.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/report/write_report.h"
#include "apps/trainer/checkpoint/network_of_run.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

struct ReportFlags {
  ConfigFlags config;
  std::string run, data, out;
  bool no_images = false;
};

StatusOr<int> RunReport(ReportFlags flags) {
  if (!IsFolder(flags.run)) {
    return InvalidArgument("'" + flags.run + "' is not a folder; give that of a run");
  }
  if (!flags.data.empty()) {
    flags.config.SetString("data.path", flags.data);
    flags.config.set.push_back("data.layout=AUTO");
  }
  ReportRequest request{.run_folder = flags.run, .images = !flags.no_images};
  const std::string out = flags.out.empty() ? flags.run + "/" + kReportName : flags.out;
  RT_ASSIGN_OR_RETURN(request.out, OutputPath(out));
  request.changed = !flags.config.set.empty();
  RT_ASSIGN_OR_RETURN(request.network, NetworkFile(flags.run));
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadModelFile(request.network, flags.config.set));
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads,
                      UseThreads(flags.config, trained.loaded.config));
  RT_RETURN_IF_ERROR(WriteReport(request, trained));
  Print("report in {}\n", out);
  return kExitSuccess;
}

}  // namespace

void AddReportCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* verb = app->add_subcommand(
      "report", "Show a run as one HTML file: curves, mistakes, classes, images, config");
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  verb->add_option("run", flags->run, "Folder of the run")->type_name("RUN")->required();
  verb->add_option("--out", flags->out,
                   "File to write (default: report.html in the run's folder); - is standard output")
      ->type_name("FILE");
  verb->add_option("--data", flags->data,
                   "Labelled images to evaluate (default: the validation images of the run)")
      ->type_name("PATH");
  verb->add_flag("--no-images", flags->no_images, "Put no copies of images into the report");
  verb->footer(Examples({"report runs/first", "report runs/first --no-images --out first.html"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunReport(*flags); }; });
}

}  // namespace ringtail
