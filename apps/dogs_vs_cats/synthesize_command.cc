// dogs_vs_cats synthesize: draws cats and dogs, for trials without real images.
#include <CLI/CLI.hpp>
#include <memory>

#include "apps/dogs_vs_cats/command.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/synthesize/synthesize.h"

namespace ringtail {
namespace {

StatusOr<int> RunSynthesize(const SynthesizeOptions& options) {
  RT_RETURN_IF_ERROR(Synthesize(options));
  Print("{} images in {}/train", options.images, options.output);
  if (options.test_images > 0) {
    Print(", {} in {}/test1", options.test_images, options.output);
  }
  Print("\n");
  return kExitSuccess;
}

}  // namespace

void AddSynthesizeCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<SynthesizeOptions>();
  CLI::App* verb = app->add_subcommand("synthesize", "Draw images of cats and dogs to train on");
  verb->add_option("--out", options->output, "Folder for train/cat.N.jpg, train/dog.N.jpg")
      ->type_name("DIR")
      ->required();
  verb->add_option("--images", options->images, "Labelled images, half of them cats")
      ->capture_default_str();
  verb->add_option("--test-images", options->test_images, "Unlabelled images in test1/")
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "Other seeds draw other images")->capture_default_str();
  verb->footer(Examples({"synthesize --out drawn --images 2000"}));
  verb->callback([options, chosen] { *chosen = [options] { return RunSynthesize(*options); }; });
}

}  // namespace ringtail
