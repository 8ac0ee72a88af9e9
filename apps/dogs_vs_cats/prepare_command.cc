// dogs_vs_cats prepare: packs a data set into one file.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <numeric>
#include <unordered_set>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "data/dataset.h"
#include "data/layouts/packed_writer.h"
#include "data/scan.h"

namespace ringtail {
namespace {

struct PrepareFlags {
  std::string data, out;
  PackedFileOptions options;
};

StatusOr<int> RunPrepare(const PrepareFlags& flags) {
  ReceiveStopSignals();
  RT_ASSIGN_OR_RETURN(const std::string out, OutputPath(flags.out));
  DataConfig config;
  config.set_path(flags.data);
  RT_ASSIGN_OR_RETURN(const auto dataset, Dataset::Open(config));
  Print("{}\n", dataset->Describe());
  std::vector<int64_t> images(dataset->samples().size());
  std::iota(images.begin(), images.end(), 0);
  std::unordered_set<int64_t> unusable;
  const auto stop = [] { return StopSignal() != 0; };
  const auto scanned = ScanImages(*dataset, images, config, /*decode=*/true, stop);
  if (scanned.status().code() == StatusCode::kCancelled) return kExitSignalBase + StopSignal();
  RT_RETURN_IF_ERROR(Status(scanned.status()));
  for (const BadImage& bad : *scanned) {
    LogWarning(fmt::format("left out: {} {}", bad.key, bad.reason));
    unusable.insert(bad.sample);
  }
  std::erase_if(images, [&](int64_t i) { return unusable.contains(i); });
  const Status status =
      WritePackedFile(*dataset, images, flags.options, out,
                      [](int64_t /*done*/, int64_t /*total*/) { return StopSignal() == 0; });
  if (status.code() == StatusCode::kCancelled) return kExitSignalBase + StopSignal();
  RT_RETURN_IF_ERROR(Status(status));
  Print("{} images in {}, {} left out\n", images.size(), flags.out, unusable.size());
  return kExitSuccess;
}

}  // namespace

void AddPrepareCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<PrepareFlags>();
  CLI::App* verb = app->add_subcommand(
      "prepare", "Pack images into one file, for network disks and quick starts");
  verb->add_option("--data", flags->data, "Folder or list file with the images")
      ->type_name("PATH")
      ->required();
  verb->add_option("--out", flags->out, "Packed file to write; - is standard output")
      ->type_name("FILE")
      ->required();
  constexpr int kLongestSide = 65535;
  verb->add_option("--short-side", flags->options.short_side,
                   "Make larger images smaller, to this many pixels (default: leave them)")
      ->check(CLI::Range(1, kLongestSide));
  constexpr int kBestQuality = 100;
  verb->add_option("--quality", flags->options.jpeg_quality, "JPEG quality of images made smaller")
      ->check(CLI::Range(1, kBestQuality))
      ->capture_default_str();
  verb->footer(Examples({"prepare --data ~/pets --out pets.pack --short-side 256"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunPrepare(*flags); }; });
}

}  // namespace ringtail
