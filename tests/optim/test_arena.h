// Small arenas for the tests of optim/: a convolution, a linear weight that spans several ranges of
// optim/parameter_walk.h, and a vector, so that counters per tensor, decay on the wrong parameter
// and parts that are skipped or done twice are detected.
#ifndef RINGTAIL_TESTS_OPTIM_TEST_ARENA_H_
#define RINGTAIL_TESTS_OPTIM_TEST_ARENA_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "optim/optimizer.h"

namespace ringtail {

// Weights drawn from N(0, 1) with a fixed seed; one buffer "norm.running_mean", also drawn.
std::unique_ptr<ParameterArena> MakeTestArena();

// Draws the gradients of `step`, from N(0, 1).
void DrawGradients(int64_t step, ParameterArena* arena);

std::vector<float> Copy(std::span<const float> values);

// Parses `text` as the `optim` of a run's config.
OptimConfig ParseOptim(const std::string& text);

// Create() for a config that must be valid.
std::unique_ptr<Optimizer> MakeOptimizer(const std::string& text, ParameterArena* arena);

// The message of Create() and ValidateSchedule() for "optim { <text> }" in a file named
// run.textproto; empty if both accept it.
std::string ValidationMessage(const std::string& text);

// One parameter in double precision, one line per formula of the papers. `adapts`: false sets the
// ratio to 1.
struct ReferenceTensor {
  explicit ReferenceTensor(std::span<const float> values);
  void SgdStep(std::span<const float> grad, double grad_scale, double rate, double momentum,
               bool nesterov, double coupled, double decoupled);
  void AdamStep(std::span<const float> grad, double grad_scale, int64_t step, double rate,
                double beta1, double beta2, double epsilon, double coupled, double decoupled);
  void LarsStep(std::span<const float> grad, double grad_scale, double rate, double momentum,
                double trust, double epsilon, double decay, bool adapts);
  void LambStep(std::span<const float> grad, double grad_scale, int64_t step, double rate,
                double beta1, double beta2, double epsilon, double max_weight_norm, double decay,
                bool adapts);
  // `matrix`: weights as matrices of shape[0] rows; false: Nesterov's momentum.
  void MuonStep(std::span<const float> grad, double grad_scale, double rate, double momentum,
                double trust, double decay, bool matrix, int64_t rows);
  std::vector<double> weight, first, second;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_OPTIM_TEST_ARENA_H_
