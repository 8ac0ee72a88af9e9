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
// Biases and batch norm follow w = w (1 - lr wd) - lr u.
// State: v ("momentum"). Cost: 40 bytes per weight and optim/orthogonalize.h's operations, one
// parameter per thread, which holds two copies of the largest parameter and 4 k^2 floats. With the
// half-width ResNet-18 of Dogs-vs-Cats this costs as much as forward and backward of some 15
// images: for batches of a few hundred and more.
#ifndef RINGTAIL_OPTIM_MUON_H_
#define RINGTAIL_OPTIM_MUON_H_

#include <vector>

#include "optim/decay.h"
#include "optim/optimizer.h"

namespace ringtail {

class Muon : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = true;
  static Status Validate(const MuonConfig& config, const ConfigSource* source);
  Muon(const MuonConfig& config, Decay decay, ParameterArena* arena);  // requires a valid config

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  // A thread's working memory, kept between steps because fresh memory in every step costs time.
  struct Scratch {
    std::vector<float> update, products;
  };
  void UpdateParameter(size_t parameter, double learning_rate, double grad_scale, Scratch* scratch);
  MuonConfig config_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer velocity_;
  std::vector<size_t> most_work_first_;  // indices of parameters
  std::vector<Scratch> scratch_;         // one per thread
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_MUON_H_
