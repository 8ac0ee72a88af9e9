#include "apps/bench_compress/bench_compress_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/byte_text.h"
#include "apps/number_flags.h"
#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

std::string KnownCodecs() {
  std::string text = "\nCodecs\n";
  for (const SchemePreset& codec : CodecPresets()) {
    text += fmt::format("  {:<14} {}\n", codec.name, codec.description);
  }
  text += "\nSketches\n";
  for (const SchemePreset& sketch : SketchPresets()) {
    text += fmt::format("  {:<14} {}\n", sketch.name, sketch.description);
  }
  return text + R"(
Examples
  bench_compress --codec two_bit,one_bit --sizes 1MB,9MB
  dogs_vs_cats replay ... && bench_compress --gradients FILE.safetensors --per-tensor

Columns: ratio = bytes before / after; L2 error = |decoded - gradient| / |gradient|, and the cosine
between them, of one step of one rank without error feedback. For unbiased codecs the error is
noise. For a sketch, encode is the work of a rank in all rounds, decode the work on their sums.)";
}

}  // namespace

void AddCompressFlags(CLI::App* app, CompressFlags* flags) {
  app->footer(KnownCodecs());
  app->add_option("--codec", flags->benchmark.codecs,
                  "Names of codecs or sketches, such as bf16,power_sgd (default: all)")
      ->delimiter(',');
  auto* const sizes =
      app->add_option("--sizes", flags->sizes, "Sizes of random gradients, normally distributed")
          ->delimiter(',')
          ->capture_default_str();
  auto* const file =
      app->add_option("--gradients", flags->benchmark.file,
                      "Safetensors file with tensors grad.<name>, instead of random gradients")
          ->excludes(sizes);
  app->add_flag("--per-tensor", flags->benchmark.per_tensor, "One line per tensor of the file")
      ->needs(file);
  app->add_option("--samples", flags->benchmark.samples,
                  "Samples of a step: a file's gradients are means, which are multiplied by it")
      ->check(NumberIn(CLI::PositiveNumber))
      ->capture_default_str();
  app->add_option("--seconds", flags->benchmark.seconds, "Time for each speed; at least 5 rounds")
      ->check(NumberIn(CLI::Range(0.0, 3600.0)))
      ->capture_default_str();
  app->add_flag("--json", flags->as_json, "Print the result as JSON");
}

StatusOr<CompressBenchmarkOptions> CompressFlags::Benchmark() const {
  CompressBenchmarkOptions options = benchmark;
  for (const std::string& text : sizes) {
    RT_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
    options.bytes.push_back(bytes);
  }
  return options;
}

}  // namespace ringtail
