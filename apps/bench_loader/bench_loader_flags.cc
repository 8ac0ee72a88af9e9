#include "apps/bench_loader/bench_loader_flags.h"

#include <CLI/CLI.hpp>

#include "apps/number_flags.h"

namespace ringtail {

LoaderFlags::LoaderFlags()
    : image_size_(options_.data.image_size()), min_area_(options_.data.augment().min_area()) {}

void LoaderFlags::AddTo(CLI::App* app) {
  app->add_option("--data", path_, "Folder, list or packed file of images")->required();
  app->add_option("--image-size", image_size_, "Side of the images in the batch, pixels")
      ->check(CLI::Range(8, 1024))
      ->capture_default_str();
  app->add_option("--workers", options_.workers, "Numbers of threads to try, such as 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 255))
      ->capture_default_str();
  app->add_option("--batch", options_.batch, "Images per batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--images", options_.images, "Images per round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--rounds", options_.rounds, "Rounds per number of workers")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--min-area", min_area_, "Smallest crop, as a share of the image")
      ->check(NumberIn(CLI::Range(0.01, 1.0)))
      ->capture_default_str();
  app->add_option("--cache-mib", cache_mib_, "Memory for decoded images, MiB")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app->add_flag("--json", as_json_, "Print the result as JSON");
}

LoaderBenchmarkOptions LoaderFlags::Benchmark() const {
  LoaderBenchmarkOptions options = options_;
  options.data.set_path(path_);
  options.data.set_image_size(image_size_);
  options.data.mutable_augment()->set_min_area(min_area_);
  options.data.set_cache_mib(cache_mib_);
  return options;
}

}  // namespace ringtail
