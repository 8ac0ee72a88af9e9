// WeightServer: the parameters that one server holds, and what makes new ones of them.
//
//   shard()       the rule: which gradients make an update     dist/parameter_server/server_shard.h
//   arena()       weights, and the sum of an update's gradients; running statistics on server 0
//   optimizer     of these parameters alone                       optim/
//   average()     of the weights over time, if the run keeps it
//
// Parameters are whole, so that every optimizer finds what it needs of each in one place. The norm
// by which gradients are clipped is that of all servers: one that is alone takes that of the
// update; several take the mean of what the pushes of the update had, which is as large or larger.
// Gradients count less the later they are. Where steps have a length of their own (Muon, LARS, LAMB,
// Adam), what they usually count is a factor of the learning rate instead, and the gradient has the
// rest; with SGD a smaller gradient is a smaller step, and weight decay keeps its rate.
// The weights start as those of the model.
// Thread-safety: none. Memory: four blocks of its parameters with an optimizer of one state block
// and an average, beside what the shard keeps.
#ifndef RINGTAIL_APPS_PARAMETER_SERVER_WEIGHT_SERVER_H_
#define RINGTAIL_APPS_PARAMETER_SERVER_WEIGHT_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "apps/parameter_server/shard_layout.h"
#include "core/fast_bf16_products.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/parameter_server/server_shard.h"
#include "optim/optim.pb.h"
#include "optim/optimizer.h"
#include "optim/weight_average.h"

namespace ringtail {

struct WeightServerOptions {
  OptimConfig optim;
  ShardOptions shard;
  std::vector<size_t> parameters;  // of the model, ascending
  bool alone = true;               // there is no other server
  bool has_statistics = true;      // of the whole model
  // The learning rate once so many images have been applied, and the step that they are.
  std::function<double(int64_t images)> rate;
  std::function<int64_t(int64_t images)> step;
  bool bf16_products = FastBf16Products();  // of OptimizerOptions
};

class WeightServer {
 public:
  // `model` is needed for this call only.
  static StatusOr<std::unique_ptr<WeightServer>> Create(const WeightServerOptions& options,
                                                        const ParameterArena& model);
  WeightServer(const WeightServer&) = delete;
  WeightServer& operator=(const WeightServer&) = delete;

  ServerShard* shard() { return &*shard_; }
  const ServerShard& shard() const { return *shard_; }
  ParameterArena* arena() { return arena_.get(); }
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }
  std::span<const size_t> parameters() const { return options_.parameters; }
  int64_t elements() const { return std::ssize(arena_->values()); }
  int64_t bytes() const { return arena_->num_parameters() * static_cast<int64_t>(sizeof(float)); }
  double rate() const { return rate_; }  // of the last update
  Optimizer* optimizer() { return optimizer_.get(); }

  // Between a block of the model's layout and one of this server's.
  const ShardLayout& layout() const { return layout_; }
  void Gather(std::span<const float> model, std::span<float> own) const {
    layout_.Gather(model, own);
  }
  void Scatter(std::span<const float> own, std::span<float> model) const {
    layout_.Scatter(own, model);
  }

 private:
  WeightServer(const WeightServerOptions& options, ShardLayout layout,
               std::unique_ptr<ParameterArena> arena, std::unique_ptr<Optimizer> optimizer);
  double Apply(const ShardUpdate& update);

  const WeightServerOptions options_;
  const ShardLayout layout_;
  const std::unique_ptr<ParameterArena> arena_;
  const std::unique_ptr<Optimizer> optimizer_;
  std::optional<WeightAverage> average_;
  std::optional<ServerShard> shard_;
  double rate_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PARAMETER_SERVER_WEIGHT_SERVER_H_
