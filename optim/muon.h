// Muon (Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"): momentum
// SGD in which every weight tensor moves along the orthogonal matrix nearest to its momentum
// instead of the momentum itself. The gradient of a large batch has a few strong directions, which
// bound the rate, and many weak ones, which hardly move; here all move equally, so that few large
// steps get as far as many small ones.
//
//   g = grad_scale * grad
//   v = m v + g                                          v starts at 0
//   u = g + m v                                          Nesterov
//   O = the orthogonal matrix nearest to u               u as out_channels x all other dimensions;
//                                                        optim/orthogonalize.h
//   w = w (1 - lr wd) - lr trust ||w|| / ||O|| O         decoupled decay
//
// As in LARS a step of rate 1 moves a weight tensor by `trust` of its norm (1 in place of trust
// ||w|| / ||O|| where a norm is 0); Jordan et al. and Liu et al. 2025 (arXiv 2502.16982) use fixed
// factors of the shape instead, which suit nets whose weights all start and stay at one norm.
// head_norm START: of the last layer, if it is linear, sqrt(OC / 3) stands for ||w||: the norm of rows
// drawn from U(-a, a), a = 1 / sqrt(IC) (PyTorch's start; he_normal begins with 2.4 times as much).
// No batch norm follows it, so its norm is the scale of the logits. In proportion to the norm,
// steps that are mostly noise multiply it, without bound over thousands of steps; steps of one size
// add to it, until the decay takes as much.
// Biases and batch norm follow w = w (1 - lr wd) - lr u, where lr is vector_rate times the rate.
// State: v ("momentum"). Cost: 36 bytes per weight and optim/orthogonalize.h's operations. A matrix
// is one thread's work, unless it is so large a part of all work that the others would wait for it:
// then all threads share it. Memory: for each thread two copies of the largest parameter and 4 k^2
// floats, and as many as the largest parameter has where it is rounded; where O is prepared
// (prepared_step.h) one copy of all parameters. With the half-width
// ResNet-18 of Dogs-vs-Cats a step costs as much as forward and backward of some 15 images: for
// batches of a few hundred and more.
#ifndef RINGTAIL_OPTIM_MUON_H_
#define RINGTAIL_OPTIM_MUON_H_

#include <functional>
#include <vector>

#include "optim/decay.h"
#include "optim/optimizer.h"
#include "optim/orthogonalize.h"

namespace ringtail {

class Muon : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = true;
  static constexpr bool kUpdatesElementwise = false;
  static Status Validate(const MuonConfig& config, const ConfigSource* source);
  // Whether `bf16_products` makes a difference.
  static bool TakesBf16Products(const MuonConfig& config);
  // Requires a valid config. `bf16_products`: as of OptimizerOptions.
  Muon(const MuonConfig& config, Decay decay, ParameterArena* arena, bool bf16_products);

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<double> PreparableWork() const override;
  void Prepare(std::span<const size_t> parameters, PreparedStep* prepared) override;
  void StepPrepared(int64_t step, double learning_rate, PreparedStep* prepared) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  // What a matrix is orthogonalised with, kept between steps because fresh memory in every step
  // costs time.
  struct Scratch {
    std::vector<float> update, direction;
  };
  // Where the direction of a parameter goes; empty: it is used at once.
  using Place = std::function<std::span<float>(size_t parameter)>;
  // Is given each direction, on several threads.
  using Use = std::function<void(size_t parameter, std::span<const float> direction)>;

  // `parameters`: with the most work first.
  void ComputeDirections(std::span<const size_t> parameters, double grad_scale, const Place& place,
                         const Use& use);
  // How many of them all threads share, one after the other.
  size_t NumShared(std::span<const size_t> parameters) const;
  // u, and for a matrix everything up to the products, which `index`'s orthogonalisation runs.
  std::span<const float> StartDirection(size_t parameter, double grad_scale, const Place& place,
                                        size_t index);
  // Whether sqrt(OC / 3) stands for ||w||.
  bool StepsFromStart(const Parameter& p) const;
  void MoveParameter(size_t parameter, double learning_rate, double grad_scale,
                     std::span<const float> direction);

  MuonConfig config_;
  Orthogonalization::Numbers numbers_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer velocity_;
  std::vector<double> work_;             // by parameter
  std::vector<size_t> most_work_first_;  // indices of parameters
  std::vector<Scratch> scratch_;         // one per thread, as are
  std::vector<Orthogonalization> orthogonalizations_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_MUON_H_
