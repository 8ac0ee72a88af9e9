#include "tests/optim/test_arena.h"

#include <algorithm>
#include <cmath>

#include "apps/run.pb.h"
#include "core/check.h"
#include "core/config/text_config.h"
#include "core/random.h"
#include "optim/schedule.h"
#include "optim/schedule_validation.h"
#include "tests/optim/double_matrix.h"
#include "tests/testing/parse_config.h"

namespace ringtail {
namespace {

void Draw(std::string_view what, uint64_t number, std::span<float> values) {
  Rng rng(RngKey(1).With(kTestStream).With(what).With(number));
  for (float& value : values) value = rng.Normal();
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace

std::unique_ptr<ParameterArena> MakeTestArena() {
  auto arena =
      ParameterArena::Create({{"fc.weight", {300, 301}, ParameterKind::kLinearWeight},
                              {"norm.bias", {7}, ParameterKind::kVector},
                              {"conv.weight", {5, 3, 3, 3}, ParameterKind::kConvolutionWeight}},
                             {{"norm.running_mean", {9}, ParameterKind::kVector}});
  for (const Parameter& p : (*arena)->parameters()) Draw("weights", p.offset, p.value());
  for (const Parameter& p : (*arena)->buffers()) Draw("buffers", p.offset, p.value());
  return *std::move(arena);
}

void DrawGradients(int64_t step, ParameterArena* arena) {
  for (const Parameter& p : arena->parameters()) {
    Draw("gradients", (static_cast<uint64_t>(step) << 32) + p.offset, p.grad());
  }
}

std::vector<float> Copy(std::span<const float> values) { return {values.begin(), values.end()}; }

OptimConfig ParseOptim(const std::string& text) { return ParseConfig<OptimConfig>(text); }

std::unique_ptr<Optimizer> MakeOptimizer(const std::string& text, ParameterArena* arena) {
  return *Optimizer::Create(ParseOptim(text), arena);
}

std::string ValidationMessage(const std::string& text) {
  RunConfig config;
  ConfigSource source;
  const Status parsed =
      ParseTextConfig("optim {\n" + text + "\n}\n", "run.textproto", &config, &source);
  RT_CHECK(parsed.ok(), parsed.ToString());
  const auto arena = MakeTestArena();
  const auto optimizer = Optimizer::Create(config.optim(), arena.get(), {.source = &source});
  if (!optimizer.ok()) return optimizer.status().ToString();
  const Status schedule = ValidateSchedule(config.optim(), &source);
  return schedule.ok() ? "" : schedule.ToString();
}

ReferenceTensor::ReferenceTensor(std::span<const float> values)
    : weight(values.begin(), values.end()), first(values.size()), second(values.size()) {}

void ReferenceTensor::SgdStep(std::span<const float> grad, double grad_scale, double rate,
                              double momentum, bool nesterov, double coupled, double decoupled) {
  for (size_t i = 0; i < weight.size(); ++i) {
    const double g = grad_scale * grad[i] + coupled * weight[i];
    first[i] = momentum * first[i] + g;
    const double update = nesterov ? g + momentum * first[i] : first[i];
    weight[i] -= rate * decoupled * weight[i];
    weight[i] -= rate * update;
  }
}

void ReferenceTensor::AdamStep(std::span<const float> grad, double grad_scale, int64_t step,
                               double rate, double beta1, double beta2, double epsilon,
                               double coupled, double decoupled) {
  for (size_t i = 0; i < weight.size(); ++i) {
    const double g = grad_scale * grad[i] + coupled * weight[i];
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const double first_hat = first[i] / (1 - std::pow(beta1, step + 1));
    const double second_hat = second[i] / (1 - std::pow(beta2, step + 1));
    weight[i] -= rate * decoupled * weight[i];
    weight[i] -= rate * first_hat / (std::sqrt(second_hat) + epsilon);
  }
}

void ReferenceTensor::LarsStep(std::span<const float> grad, double grad_scale, double rate,
                               double momentum, double trust, double epsilon, double decay,
                               bool adapts) {
  std::vector<double> g(grad.begin(), grad.end());
  for (double& value : g) value *= grad_scale;
  const double bound = Norm(g) + decay * Norm(weight) + epsilon;
  const double ratio = adapts ? trust * Norm(weight) / bound : 1;
  for (size_t i = 0; i < g.size(); ++i) {
    first[i] = momentum * first[i] + ratio * (g[i] + decay * weight[i]);
    weight[i] -= rate * first[i];
  }
}

void ReferenceTensor::LambStep(std::span<const float> grad, double grad_scale, int64_t step,
                               double rate, double beta1, double beta2, double epsilon,
                               double max_weight_norm, double decay, bool adapts) {
  std::vector<double> u(weight.size());
  for (size_t i = 0; i < u.size(); ++i) {
    const double g = grad_scale * grad[i];
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const double first_hat = first[i] / (1 - std::pow(beta1, step + 1));
    const double second_hat = second[i] / (1 - std::pow(beta2, step + 1));
    u[i] = first_hat / (std::sqrt(second_hat) + epsilon) + decay * weight[i];
  }
  const double ratio = adapts ? std::min(Norm(weight), max_weight_norm) / Norm(u) : 1;
  for (size_t i = 0; i < u.size(); ++i) weight[i] -= rate * ratio * u[i];
}

void ReferenceTensor::MuonStep(std::span<const float> grad, double grad_scale, double rate,
                               double momentum, double trust, double decay, bool matrix,
                               int64_t rows) {
  std::vector<double> u(weight.size());
  for (size_t i = 0; i < u.size(); ++i) {
    first[i] = momentum * first[i] + grad_scale * grad[i];
    u[i] = grad_scale * grad[i] + momentum * first[i];
  }
  double ratio = 1;
  if (matrix) {
    u = OrthogonalizedInDouble(rows, u);
    ratio = trust * Norm(weight) / Norm(u);
  }
  for (size_t i = 0; i < u.size(); ++i) {
    weight[i] = weight[i] * (1 - rate * decay) - rate * ratio * u[i];
  }
}

}  // namespace ringtail
