// TrainingState: everything that a run carries from step to step, and how a checkpoint holds it.
//
//   tensors    <parameter>, <buffer>        weights and running statistics, by name
//              optimizer.<block>.<parameter>  momentum and the like
//              average.<parameter or buffer>  averaged weights, if optim.ema_decay > 0
//              (both not of frozen layers, which have neither)
//   metadata   progress (resume_point.h)
//
// Order, crops and dropout are functions of (seed, step), so there is no random state, and a run
// that restores this continues to the same bits. Thread-safety: the trainer thread only.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_STATE_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/training_progress.h"
#include "core/status.h"
#include "core/storage/safetensors_writer.h"
#include "layers/net/model.h"
#include "optim/optimizer.h"
#include "optim/weight_average.h"

namespace ringtail {

// One checksum for each kind of state; equal on all ranks unless one of them is wrong.
struct StateChecksums {
  uint32_t weights = 0, statistics = 0, optimizer = 0, average = 0, progress = 0;
  bool operator==(const StateChecksums&) const = default;
};

// The rows that this rank holds of a tensor that ranks divide among them, by its name in a
// checkpoint.
struct ShardedTensor {
  std::string name;
  const ParameterSpec* spec = nullptr;
  std::span<float> values;
};

// Any tensor of the state, by its name in a checkpoint.
struct StateSlot {
  std::string name;
  const ParameterSpec* spec = nullptr;
  std::span<float> values;
};

class TrainingState {
 public:
  // At step 0: weights initialised from `seed`, and changed by `start`, if that is given.
  using Start = std::function<Status(Model*)>;
  static StatusOr<TrainingState> Create(std::unique_ptr<Model> model, const OptimConfig& config,
                                        uint64_t seed, const Start& start = {},
                                        const OptimizerOptions& optimizer = {});

  Model* model() const { return model_.get(); }
  Optimizer* optimizer() const { return optimizer_.get(); }
  WeightAverage* average() const { return average_.get(); }  // null: off

  std::vector<TensorView> Tensors() const;  // views of the live state, of own rows where divided
  // The same as whole blocks, gaps included, to be overwritten; of the same sizes on every rank, and
  // without what ranks divide.
  std::vector<std::span<float>> Blocks() const;
  std::vector<StateSlot> Slots() const;        // all of Tensors(), to be overwritten
  std::vector<ShardedTensor> Sharded() const;  // what ranks divide; empty: nothing
  // All but the progress; of what is divided, the own rows. After an error the state must be thrown
  // away: part of it may have been overwritten.
  Status Restore(const SafetensorsFile& file);
  // Everything of a state of the same network with other layers frozen: what only this one has of
  // the optimizer's starts at zero, `thaw_step` being its first step, and averages at the weights.
  void Adopt(const TrainingState& other, int64_t thaw_step);

  // CRC-32C of Tensors(), without what ranks divide, and of the progress.
  StateChecksums Checksums() const;

  // DataLoss, naming the tensor, if Restore would refuse what Tensors() has: for a NaN or infinity.
  Status CheckFinite() const;

  TrainingProgress progress;

 private:
  TrainingState() = default;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WeightAverage> average_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_TRAINING_STATE_H_
