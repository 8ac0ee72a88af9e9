// bench_loader: how many images per second the loader gives (apps/bench_loader/bench_loader.h).
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "apps/bench_loader/bench_loader.h"
#include "apps/exit_code.h"
#include "core/printable.h"
#include "core/stop_signal.h"
#include "core/terminate.h"

int main(int argc, char** argv) {
  ringtail::ExplainTermination("bench_loader");
  ringtail::IgnoreBrokenPipes();
  ringtail::LoaderBenchmarkOptions options;
  // Without the cache, every image is read and decoded each time.
  options.data.set_cache_mib(0);
  std::string path;
  int image_size = options.data.image_size();
  float min_area = options.data.augment().min_area();
  int64_t cache_mib = options.data.cache_mib();
  bool as_json = false;

  CLI::App app("Measures how fast images are read, decoded, cropped and normalised.");
  app.add_option("--data", path, "Folder, list or packed file of images")->required();
  app.add_option("--image-size", image_size, "Side of the images in the batch, pixels")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Numbers of threads to try, such as 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 255))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "Images per batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--images", options.images, "Images per round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Rounds per number of workers")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--min-area", min_area, "Smallest crop, as a share of the image")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app.add_option("--cache-mib", cache_mib, "Memory for decoded images, MiB")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--json", as_json, "Print the result as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ringtail::kExitSuccess : ringtail::kExitUsage;
  }

  options.data.set_path(path);
  options.data.set_image_size(image_size);
  options.data.mutable_augment()->set_min_area(min_area);
  options.data.set_cache_mib(cache_mib);
  const auto result = ringtail::BenchmarkLoader(options);
  if (!result.ok()) {
    std::fprintf(stderr, "bench_loader: %s\n",
                 ringtail::Printable(result.status().message()).c_str());
    return ringtail::ExitCodeOf(result.status());
  }
  const std::string text = as_json ? LoaderBenchmarkJson(*result) : LoaderBenchmarkTable(*result);
  std::fputs(text.c_str(), stdout);
  return ringtail::kExitSuccess;
}
