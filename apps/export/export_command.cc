// dogs_vs_cats export: a trained network for other programs.
#include <CLI/CLI.hpp>
#include <memory>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/trained_network.h"
#include "apps/exit_code.h"
#include "apps/export/onnx_export.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/trainer/evaluation.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

struct ExportFlags {
  NetworkFlags network;
  std::string onnx;
  int64_t image_size = 0;
};

StatusOr<int> RunExport(const ExportFlags& flags) {
  RT_ASSIGN_OR_RETURN(const std::string path, OutputPath(flags.onnx));
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadNetwork(flags.network));
  const RunConfig& config = trained.loaded.config;
  const int64_t image_size =
      flags.image_size > 0 ? flags.image_size : EvaluationOptionsOf(config).image_size;
  RT_ASSIGN_OR_RETURN(const std::string model, OnnxModel(trained, image_size));
  RT_RETURN_IF_ERROR(WriteFileAtomic(path, model));
  Print("{}: {:.1f} MB, images N x 3 x {} x {} (R G B, 0 .. 255) -> probabilities N x {}\n",
        flags.onnx, static_cast<double>(model.size()) / 1e6, image_size, image_size,
        trained.model->num_classes());
  if (config.train().evaluate_flipped()) {
    Print(
        "evaluate and predict average each image with its mirror image, this file does not: "
        "`evaluate --set train.evaluate_flipped=false` says what it reaches\n");
  }
  Print("{}", OnnxUsage(flags.onnx, config.data(), image_size, trained.class_names));
  return kExitSuccess;
}

}  // namespace

void AddExportCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App* verb = app->add_subcommand("export", "Write a trained network for other programs");
  AddNetworkFlags(verb, &flags->network);
  verb->add_option("--onnx", flags->onnx,
                   "ONNX file to write, for OpenCV, ONNX Runtime and others; - is standard output")
      ->type_name("FILE")
      ->required();
  verb->add_option("--image-size", flags->image_size,
                   "Pixels, square (default: the size of the run's evaluation)")
      ->check(CLI::Range(8, 1024));
  verb->footer(Examples({"export --checkpoint runs/first --onnx first.onnx"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunExport(*flags); }; });
}

}  // namespace ringtail
