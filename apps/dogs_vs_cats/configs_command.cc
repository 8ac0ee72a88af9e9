// dogs_vs_cats configs: the shipped configs, which `--config NAME` finds, as a list or one as text.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/config/run_config.h"
#include "apps/config/shipped_configs.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "core/config/nearest_name.h"

namespace ringtail {
namespace {

constexpr double kMillion = 1e6;

// The first line of the comment that the file begins with.
std::string_view Description(std::string_view text) {
  constexpr std::string_view kComment = "# ";
  if (!text.starts_with(kComment)) return "";
  return text.substr(kComment.size(), text.find('\n') - kComment.size());
}

StatusOr<int> ListConfigs() {
  for (const ShippedConfig& config : ShippedConfigs()) {
    RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig(std::string(config.name), {}));
    RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
    Print("{:<13} {:>6.2f} M parameters, {:>3} pixels: {}\n", config.name,
          static_cast<double>(model->CountParameters()) / kMillion,
          loaded.config.data().image_size(), Description(config.text));
  }
  return kExitSuccess;
}

StatusOr<int> RunConfigs(const std::string& name) {
  if (name.empty()) return ListConfigs();
  const ShippedConfig* const config = FindShippedConfig(name);
  if (config == nullptr) {
    const std::string nearest = NearestName(name, ShippedConfigNames());
    return InvalidArgument(fmt::format("there is no shipped config '{}'{}", name,
                                       nearest.empty()
                                           ? fmt::format("; `{} configs` lists them", ProgramName())
                                           : fmt::format("; did you mean '{}'?", nearest)));
  }
  Print("{}", config->text);
  return kExitSuccess;
}

}  // namespace

void AddConfigsCommand(CLI::App* app, Command* chosen) {
  auto name = std::make_shared<std::string>();
  CLI::App* verb = app->add_subcommand("configs", "List the networks for --config, or print one");
  verb->add_option("name", *name,
                   "Print this one, e.g. to edit it: configs resnet18 > my.textproto")
      ->type_name("NAME");
  verb->footer(Examples({"configs", "configs resnet18 > mine.textproto"}));
  verb->callback([name, chosen] { *chosen = [name] { return RunConfigs(*name); }; });
}

}  // namespace ringtail
