#include "apps/bench_compress/bench_compress.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/bench_compress/exchange.h"
#include "apps/bench_compress/tensor_set.h"
#include "core/kernel_isa.h"
#include "core/machine/processor_time.h"
#include "core/median.h"
#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

constexpr int kFewestRounds = 5;

double MedianSeconds(double at_least, const std::function<void()>& round) {
  round();  // the first round touches the memory
  std::vector<double> times;
  for (double spent = 0; spent < at_least || times.size() < kFewestRounds;) {
    const double start = ThreadSeconds();
    round();
    times.push_back(ThreadSeconds() - start);
    spent += times.back();
  }
  return Median(std::move(times));
}

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const SchemePreset& preset : CodecPresets()) names.emplace_back(preset.name);
  for (const SchemePreset& preset : SketchPresets()) names.emplace_back(preset.name);
  return names;
}

}  // namespace

StatusOr<std::vector<CompressRate>> BenchmarkCompression(const CompressBenchmarkOptions& options) {
  std::vector<TensorSet> sets;
  if (options.file.empty()) {
    for (const int64_t bytes : options.bytes) sets.push_back(RandomSet(bytes));
  } else {
    RT_ASSIGN_OR_RETURN(sets, ReadSets(options.file, options.samples, options.per_tensor));
  }
  std::vector<CompressRate> rates;
  for (const std::string& name : options.codecs.empty() ? AllNames() : options.codecs) {
    for (const TensorSet& set : sets) {
      RT_ASSIGN_OR_RETURN(const auto exchange, MakeExchange(name, options.samples, &set));
      CompressRate rate = {.codec = name, .gradient = set.name};
      const double encode_s = MedianSeconds(options.seconds, [&] { exchange->Encode(); });
      const double decode_s = MedianSeconds(options.seconds, [&] { exchange->Decode(); });
      exchange->Compare(&rate);
      rate.encode_gb_per_s = static_cast<double>(rate.bytes) * 1e-9 / encode_s;
      rate.decode_gb_per_s = static_cast<double>(rate.bytes) * 1e-9 / decode_s;
      rates.push_back(rate);
    }
  }
  return rates;
}

std::string CompressionTable(const std::vector<CompressRate>& rates) {
  size_t width = 8;
  for (const CompressRate& rate : rates) width = std::max(width, rate.gradient.size());
  std::string text = fmt::format("{} instructions; GB/s of float32, per core\n",
                                 KernelIsaName(SelectedKernelIsa()));
  text += fmt::format("{:<14} {:<{}} {:>11} {:>11} {:>7} {:>9} {:>8}\n", "codec", "gradient", width,
                      "encode GB/s", "decode GB/s", "ratio", "L2 error", "cosine");
  for (const CompressRate& rate : rates) {
    text += fmt::format("{:<14} {:<{}} {:>11.2f} {:>11.2f} {:>7.2f} {:>9.2e} {:>8.5f}\n",
                        rate.codec, rate.gradient, width, rate.encode_gb_per_s,
                        rate.decode_gb_per_s, rate.ratio, rate.relative_error, rate.cosine);
  }
  return text;
}

std::string CompressionJson(const std::vector<CompressRate>& rates) {
  nlohmann::ordered_json json = {{"instruction_set", KernelIsaName(SelectedKernelIsa())},
                                 {"rates", nlohmann::json::array()}};
  for (const CompressRate& rate : rates) {
    json["rates"].push_back({{"codec", rate.codec},
                             {"gradient", rate.gradient},
                             {"bytes", rate.bytes},
                             {"payload_bytes", rate.payload_bytes},
                             {"encode_gb_per_s", rate.encode_gb_per_s},
                             {"decode_gb_per_s", rate.decode_gb_per_s},
                             {"ratio", rate.ratio},
                             {"relative_error", rate.relative_error},
                             {"cosine", rate.cosine}});
  }
  // File names need not be UTF-8, JSON must be.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ringtail
