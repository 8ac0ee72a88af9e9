// The state of a run whose ranks hold slices of some parameters, as one whole: what a checkpoint is,
// so that any number of ranks continues from it, divided or not.
//
//   rank 0   rows 0-2  |            checkpoint   classifier.1.weight            rows 0-7
//   rank 1   rows 3-4  | Gather ->               optimizer.momentum.classifier.1.weight
//   rank 2   rows 5-7  | <- Scatter              average.classifier.1.weight
//
// Thread-safety: the trainer thread. Memory: on rank 0 all rows of what is divided, while it is
// written. Errors: those of the world.
#ifndef RINGTAIL_APPS_TRAINER_SHARDING_WHOLE_STATE_H_
#define RINGTAIL_APPS_TRAINER_SHARDING_WHOLE_STATE_H_

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer/checkpoint/training_state.h"
#include "apps/trainer/training_world.h"
#include "core/aligned_buffer.h"
#include "core/status.h"
#include "core/storage/safetensors_writer.h"
#include "core/storage/scratch_file.h"

namespace ringtail {

// Tensors with their memory, which may be a file.
struct OwnedTensors {
  std::vector<TensorView> views;
  std::unique_ptr<ScratchFile> file;
  AlignedBuffer memory;  // where there is no file
};

class WholeTensors {
 public:
  WholeTensors() = default;  // of a state that is not divided
  // All ranks. The sharded tensors of `state` with the rows of all ranks, on rank 0; elsewhere none.
  static StatusOr<WholeTensors> Gather(TrainingWorld* world, const TrainingState& state);

  // What other ranks hold alone, of layers that this one does not have.
  void Add(OwnedTensors others) { others_ = std::move(others); }

  // Whole tensors in place of the views of a rank's own rows, and those of others behind them. This
  // must outlive them.
  void Complete(std::vector<TensorView>* tensors) const;

 private:
  std::map<std::string, std::vector<float>> rows_;
  std::map<std::string, Shape> shapes_;
  OwnedTensors others_;
};

// A whole tensor by name and shape, valid while its source lives; empty: it stays as it is.
using FindWhole =
    std::function<StatusOr<std::span<const float>>(const std::string& name, const Shape& shape)>;

// All ranks: gives each the rows that it holds of what `source_rank` finds. Nothing if `whole` is
// empty there; elsewhere it is not used.
Status ScatterRows(TrainingWorld* world, int source_rank, const FindWhole& whole,
                   TrainingState* state);

// All ranks. DataLoss, the same on all, if a weight or running statistic of any rank is a NaN or
// infinity. Only ranks that hold parts of the network exchange anything.
Status CheckWeightsTogether(TrainingWorld* world, const TrainingState& state);
// All ranks. The same for all of the state (TrainingState::CheckFinite), which may differ between
// them: that of the optimizer does with dist.local.
Status CheckStateTogether(TrainingWorld* world, const TrainingState& state);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_SHARDING_WHOLE_STATE_H_
