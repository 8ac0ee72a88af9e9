#include "apps/bench_compress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "apps/bench_allreduce/byte_text.h"
#include "core/kernel_isa.h"
#include "core/random.h"
#include "core/safetensors.h"
#include "dist/compression/codecs.h"

namespace ringtail {
namespace {

constexpr int kFewestRounds = 5;

struct Tensor {
  GradientShape shape;
  std::vector<float> gradient;
};

struct TensorSet {
  std::string name;
  std::vector<Tensor> tensors;
};

// A matrix, so that codecs that look at rows have some.
TensorSet RandomSet(int64_t bytes) {
  constexpr int64_t kRows = 64;
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
  const int64_t rows = elements % kRows == 0 ? kRows : 1;
  Tensor tensor = {.shape = {ParameterKind::kLinearWeight, rows, elements / rows},
                   .gradient = std::vector<float>(static_cast<size_t>(elements))};
  Rng rng(RngKey(1).With(kTestStream));
  for (float& element : tensor.gradient) element = rng.Normal();
  TensorSet set = {.name = "normal " + FormatBytes(bytes), .tensors = {}};
  set.tensors.push_back(std::move(tensor));
  return set;
}

ParameterSpec SpecOf(const SafetensorsFile::Entry& entry) {
  ParameterSpec spec = {.name = {}, .shape = entry.shape, .kind = ParameterKind::kVector};
  if (entry.shape.size() == 4) spec.kind = ParameterKind::kConvolutionWeight;
  if (entry.shape.size() == 2) spec.kind = ParameterKind::kLinearWeight;
  return spec;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

StatusOr<std::vector<TensorSet>> ReadSets(const CompressBenchmarkOptions& options) {
  constexpr std::string_view kPrefix = "grad.";
  RT_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Read(options.file));
  std::vector<TensorSet> sets;
  for (const auto& [name, entry] : file.entries()) {
    if (!name.starts_with(kPrefix) || NumElements(entry.shape) == 0) continue;
    RT_ASSIGN_OR_RETURN(const std::span<const float> gradient, file.F32(name, {}));
    if (options.per_tensor || sets.empty()) {
      const std::string in_file = name.substr(kPrefix.size());
      sets.push_back(
          {.name = options.per_tensor ? in_file : FileName(options.file), .tensors = {}});
    }
    std::vector<Tensor>& tensors = sets.back().tensors;
    tensors.push_back(
        {.shape = GradientShapeOf(SpecOf(entry)), .gradient = {gradient.begin(), gradient.end()}});
    for (float& element : tensors.back().gradient) {
      element = static_cast<float>(element * options.samples);
    }
  }
  if (sets.empty()) return InvalidArgument(options.file + ": no tensor is called grad.<name>");
  return sets;
}

// Of this thread.
double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double MedianSeconds(double at_least, const std::function<void()>& round) {
  round();  // the first touches the memory
  std::vector<double> times;
  for (double spent = 0; spent < at_least || times.size() < kFewestRounds;) {
    const double start = ProcessorSeconds();
    round();
    times.push_back(ProcessorSeconds() - start);
    spent += times.back();
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// The tensors of a set with their payloads and what those decode to.
class Exchange {
 public:
  Exchange(const Codec* codec, const TensorSet* set) : codec_(codec), set_(set) {
    for (const Tensor& tensor : set->tensors) {
      payloads_.emplace_back(codec->PayloadBytes(tensor.shape, moment_));
      sums_.emplace_back(tensor.gradient.size());
    }
  }

  void Encode() {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      const Tensor& tensor = set_->tensors[i];
      codec_->Encode(tensor.shape, moment_, tensor.gradient, payloads_[i]);
    }
  }

  void DecodeAdd() {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      const Status status =
          codec_->DecodeAdd(set_->tensors[i].shape, moment_, payloads_[i], 1, sums_[i]);
      RT_CHECK(status.ok(), status.ToString());  // of our own payload
    }
  }

  void Compare(CompressRate* rate) {
    for (std::vector<float>& sum : sums_) std::ranges::fill(sum, 0.0F);
    DecodeAdd();
    double error = 0, product = 0, gradient = 0, decoded = 0;
    for (size_t i = 0; i < sums_.size(); ++i) {
      rate->bytes += std::ssize(sums_[i]) * static_cast<int64_t>(sizeof(float));
      rate->payload_bytes += std::ssize(payloads_[i]);
      for (size_t j = 0; j < sums_[i].size(); ++j) {
        const double a = set_->tensors[i].gradient[j], b = sums_[i][j];
        error += (b - a) * (b - a);
        product += a * b;
        gradient += a * a;
        decoded += b * b;
      }
    }
    rate->ratio = static_cast<double>(rate->bytes) / static_cast<double>(rate->payload_bytes);
    // A gradient of zeros has no direction, and nothing that could be lost.
    rate->relative_error = gradient > 0 ? std::sqrt(error / gradient) : 0;
    const double lengths = std::sqrt(gradient * decoded);
    rate->cosine = lengths > 0 ? product / lengths : 0;
  }

 private:
  const Codec* const codec_;
  const TensorSet* const set_;
  const CodecMoment moment_ = {.seed = 1};
  std::vector<std::vector<std::byte>> payloads_;
  std::vector<std::vector<float>> sums_;
};

}  // namespace

StatusOr<std::vector<CompressRate>> BenchmarkCompression(const CompressBenchmarkOptions& options) {
  std::vector<TensorSet> sets;
  if (options.file.empty()) {
    for (const int64_t bytes : options.bytes) sets.push_back(RandomSet(bytes));
  } else {
    RT_ASSIGN_OR_RETURN(sets, ReadSets(options));
  }
  std::vector<std::string> names = options.codecs;
  if (names.empty()) {
    for (const NamedCodec& known : NamedCodecs()) names.emplace_back(known.name);
  }
  std::vector<CompressRate> rates;
  for (const std::string& name : names) {
    RT_ASSIGN_OR_RETURN(const std::unique_ptr<Codec> codec,
                        MakeCodec(name, {.samples = options.samples}));
    for (const TensorSet& set : sets) {
      Exchange exchange(codec.get(), &set);
      CompressRate rate = {.codec = name, .gradient = set.name};
      const double encode_s = MedianSeconds(options.seconds, [&] { exchange.Encode(); });
      const double decode_s = MedianSeconds(options.seconds, [&] { exchange.DecodeAdd(); });
      exchange.Compare(&rate);
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
