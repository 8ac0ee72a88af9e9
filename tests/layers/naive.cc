#include "tests/layers/naive.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/random.h"

namespace ringtail {
namespace {

double Sigmoid(double t) { return 1 / (1 + std::exp(-t)); }

template <typename Function>
Doubles Map(const Doubles& src, const Function& fn) {
  Doubles dst = src;
  for (double& value : dst) value = fn(value);
  return dst;
}

// Word e of the Philox blocks under `key`; group and position as layers/kernels/dropout.h has them.
bool Dropped(float rate, RngKey key, int64_t position, int64_t channel) {
  const auto words = Philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(channel / 4), 0, 0}, key.bits());
  return words[channel % 4] < rate * 0x1p32;
}

RngKey MaskKey(const NaiveProblem& problem) {
  return RngKey(problem.step.seed).With(kDropoutStream).With(problem.step.step).With(problem.key);
}

Doubles Dropout(const NaiveProblem& problem, const Doubles& src) {
  if (!problem.step.training) return src;
  const float rate = problem.config.dropout().rate();
  const BlobDesc& d = problem.src[0];
  Doubles dst = src;
  for (size_t i = 0; i < dst.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / d.plane(), n = row / d.C;
    const auto sample = static_cast<uint64_t>(problem.step.first_sample + n);
    const int64_t position = static_cast<int64_t>(i) % d.plane();
    const bool dropped = Dropped(rate, MaskKey(problem).With(sample), position, row % d.C);
    dst[i] *= dropped ? 0 : 1 / (1 - static_cast<double>(rate));
  }
  return dst;
}

Doubles Linear(const BlobDesc& d, int64_t outputs, const Doubles& src, const Doubles& weight,
               const Doubles* bias) {
  const int64_t K = d.C * d.plane();
  Doubles dst;
  for (int64_t n = 0; n < d.N; ++n) {
    for (int64_t m = 0; m < outputs; ++m) {
      double sum = bias == nullptr ? 0 : (*bias)[m];
      for (int64_t k = 0; k < K; ++k) sum += src[n * K + k] * weight[m * K + k];
      dst.push_back(sum);
    }
  }
  return dst;
}

Doubles DropConnect(const NaiveProblem& problem, const Doubles& src, const Doubles& weight,
                    const Doubles* bias) {
  const float rate = problem.config.drop_connect().rate();
  Doubles masked = weight;
  for (size_t i = 0; i < masked.size(); ++i) {
    if (!problem.step.training) {
      masked[i] *= 1 - static_cast<double>(rate);
    } else if (Dropped(rate, MaskKey(problem), 0, static_cast<int64_t>(i))) {
      masked[i] = 0;
    }
  }
  return Linear(problem.src[0], problem.dst.C, src, masked, bias);
}

// parameters: weight, bias, running_mean, running_var.
Doubles BatchNorm(const NaiveProblem& problem, const Doubles& src,
                  const std::vector<Doubles>& parameters) {
  const BlobDesc& d = problem.src[0];
  const double epsilon = problem.config.batch_norm().epsilon();
  const auto count = static_cast<double>(d.N * d.plane());
  Doubles dst = src;
  const auto for_channel = [&](int64_t c, const auto& fn) {
    for (int64_t n = 0; n < d.N; ++n) {
      for (int64_t p = 0; p < d.plane(); ++p) fn(dst[(n * d.C + c) * d.plane() + p]);
    }
  };
  for (int64_t c = 0; c < d.C; ++c) {
    double mean = parameters[2][c], variance = parameters[3][c];
    if (problem.step.training) {
      mean = variance = 0;
      for_channel(c, [&](double value) { mean += value / count; });
      for_channel(c, [&](double value) { variance += (value - mean) * (value - mean) / count; });
    }
    const double scale = parameters[0][c] / std::sqrt(variance + epsilon);
    for_channel(c, [&](double& value) { value = (value - mean) * scale + parameters[1][c]; });
  }
  return dst;
}

Doubles Lrn(const NaiveProblem& problem, const Doubles& src) {
  const LrnConfig& config = problem.config.lrn();
  const BlobDesc& d = problem.src[0];
  const int64_t half = config.size() / 2;
  Doubles dst;
  for (size_t i = 0; i < src.size(); ++i) {
    const int64_t c = static_cast<int64_t>(i) / d.plane() % d.C;
    double sum = 0;
    for (int64_t j = std::max<int64_t>(0, c - half); j <= std::min(d.C - 1, c + half); ++j) {
      const double neighbour = src[static_cast<int64_t>(i) + (j - c) * d.plane()];
      sum += neighbour * neighbour;
    }
    const double alpha = config.alpha();
    dst.push_back(src[i] * std::pow(config.k() + alpha / config.size() * sum, -config.beta()));
  }
  return dst;
}

Doubles Concat(const NaiveProblem& problem, const std::vector<Doubles>& src) {
  Doubles dst;
  for (int64_t n = 0; n < problem.dst.N; ++n) {
    for (size_t i = 0; i < src.size(); ++i) {
      const int64_t sample = problem.src[i].C * problem.src[i].plane();
      dst.insert(dst.end(), src[i].begin() + n * sample, src[i].begin() + (n + 1) * sample);
    }
  }
  return dst;
}

Doubles HighwayGate(const Doubles& h, const Doubles& t, const Doubles& x) {
  Doubles dst;
  for (size_t i = 0; i < h.size(); ++i) {
    dst.push_back(Sigmoid(t[i]) * h[i] + (1 - Sigmoid(t[i])) * x[i]);
  }
  return dst;
}

// The loss of each row.
Doubles SoftmaxCrossEntropy(const NaiveProblem& problem, const Doubles& src) {
  const double smoothing = problem.config.softmax_cross_entropy().label_smoothing();
  const int64_t C = problem.src[0].C;
  Doubles dst;
  for (int64_t n = 0; n < problem.src[0].N; ++n) {
    const int32_t label = problem.step.labels[n];
    double sum = 0, loss = 0;
    for (int64_t c = 0; c < C; ++c) sum += std::exp(src[n * C + c]);
    for (int64_t c = 0; c < C; ++c) {
      const double q = (c == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(C);
      loss -= q * std::log(std::exp(src[n * C + c]) / sum);
    }
    dst.push_back(label < 0 ? 0 : loss);
  }
  return dst;
}

Doubles Combine(const std::vector<Doubles>& src, double (*fn)(double, double)) {
  Doubles dst = src[0];
  for (size_t i = 1; i < src.size(); ++i) {
    std::ranges::transform(dst, src[i], dst.begin(), fn);
  }
  return dst;
}

double Relu(double x) { return std::max(x, 0.0); }
double Relu6(double x) { return std::min(Relu(x), 6.0); }

Doubles WithoutActivation(const NaiveProblem& problem, const std::vector<Doubles>& src,
                          const std::vector<Doubles>& parameters) {
  const LayerConfig& config = problem.config;
  const Doubles* bias = parameters.size() > 1 ? &parameters[1] : nullptr;
  switch (config.kind_case()) {
    case LayerConfig::kConvolution:
      return NaiveConvolution(config.convolution(), problem.src[0], problem.dst, src[0],
                              parameters);
    case LayerConfig::kLinear:
      return Linear(problem.src[0], problem.dst.C, src[0], parameters[0], bias);
    case LayerConfig::kBatchNorm:
      return BatchNorm(problem, src[0], parameters);
    case LayerConfig::kRelu:
      return Map(src[0], Relu);
    case LayerConfig::kRelu6:
      return Map(src[0], Relu6);
    case LayerConfig::kLeakyRelu:
      return Map(src[0], [&](double x) { return x < 0 ? config.leaky_relu().slope() * x : x; });
    case LayerConfig::kSigmoid:
      return Map(src[0], Sigmoid);
    case LayerConfig::kTanh:
      return Map(src[0], [](double x) { return std::tanh(x); });
    case LayerConfig::kMaxPool:
      return NaiveMaxPool(config.max_pool(), problem.src[0], problem.dst, src[0]);
    case LayerConfig::kAveragePool:
      return NaiveAveragePool(config.average_pool(), problem.src[0], problem.dst, src[0]);
    case LayerConfig::kGlobalAveragePool:
      return NaiveAdaptiveAveragePool(1, problem.src[0], src[0]);
    case LayerConfig::kAdaptiveAveragePool:
      return NaiveAdaptiveAveragePool(config.adaptive_average_pool().output(), problem.src[0],
                                      src[0]);
    case LayerConfig::kDropout:
      return Dropout(problem, src[0]);
    case LayerConfig::kDropConnect:
      return DropConnect(problem, src[0], parameters[0], bias);
    case LayerConfig::kLrn:
      return Lrn(problem, src[0]);
    case LayerConfig::kAdd:
      return Combine(src, [](double a, double b) { return a + b; });
    case LayerConfig::kMultiply:
      return Combine(src, [](double a, double b) { return a * b; });
    case LayerConfig::kConcat:
      return Concat(problem, src);
    case LayerConfig::kFlatten:
      return src[0];
    case LayerConfig::kHighwayGate:
      return HighwayGate(src[0], src[1], src[2]);
    case LayerConfig::kSoftmaxCrossEntropy:
      return SoftmaxCrossEntropy(problem, src[0]);
    case LayerConfig::kResidualStage:
    case LayerConfig::kInvertedResidualStage:
    case LayerConfig::kRepeat:
    case LayerConfig::KIND_NOT_SET:
      break;
  }
  RT_CHECK(false, "no naive reference for this kind of layer: " + config.ShortDebugString());
}

}  // namespace

Doubles NaiveForward(const NaiveProblem& problem, const std::vector<Doubles>& src,
                     const std::vector<Doubles>& parameters) {
  Doubles dst = WithoutActivation(problem, src, parameters);
  switch (problem.fused) {
    case Activation::kRelu:
      return Map(dst, Relu);
    case Activation::kRelu6:
      return Map(dst, Relu6);
    case Activation::kNone:
      break;
  }
  return dst;
}

}  // namespace ringtail
