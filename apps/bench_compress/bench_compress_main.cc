// bench_compress: speed, size and error of the gradient codecs and sketches (bench_compress.h).
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/bench_allreduce/byte_text.h"
#include "apps/bench_compress/bench_compress.h"
#include "apps/exit_code.h"
#include "core/printable.h"
#include "core/stop_signal.h"
#include "core/terminate.h"
#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

struct Flags {
  std::vector<std::string> sizes = {"1MB", "9MB"};
  bool as_json = false;
  CompressBenchmarkOptions benchmark;
};

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

void AddFlags(CLI::App* app, Flags* flags) {
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
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--seconds", flags->benchmark.seconds, "Time for each speed; at least 5 rounds")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app->add_flag("--json", flags->as_json, "Print the result as JSON");
}

Status Run(Flags* flags) {
  for (const std::string& text : flags->sizes) {
    RT_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
    flags->benchmark.bytes.push_back(bytes);
  }
  RT_ASSIGN_OR_RETURN(const std::vector<CompressRate> rates,
                      BenchmarkCompression(flags->benchmark));
  const std::string text = flags->as_json ? CompressionJson(rates) : CompressionTable(rates);
  std::fputs(text.c_str(), stdout);
  return OkStatus();
}

}  // namespace
}  // namespace ringtail

int main(int argc, char** argv) {
  ringtail::ExplainTermination("bench_compress");
  ringtail::IgnoreBrokenPipes();
  ringtail::Flags flags;
  CLI::App app("Measures gradient compression: speed, size and error of each codec and sketch.");
  ringtail::AddFlags(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ringtail::kExitSuccess : ringtail::kExitUsage;
  }
  const ringtail::Status status = ringtail::Run(&flags);
  if (!status.ok())
    std::fprintf(stderr, "bench_compress: %s\n", ringtail::Printable(status.message()).c_str());
  return ringtail::ExitCodeOf(status);
}
