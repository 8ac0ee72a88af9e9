// OwnState: what each rank holds of its own between two rounds, for checkpoints: the state of its
// optimizer, its weights if they are ahead of the common ones, and the sums of the round that is
// not exchanged yet. A checkpoint has it as one part per rank (checkpoint/part_exchange.h):
//
//   local.<rank>.optimizer.momentum   local.<rank>.weights   local.<rank>.statistics   local.<rank>.round
//
// As many ranks as wrote it read their own parts, so that the run continues with the same bits. In
// a world of another size every rank takes the mean of all parts, by the images that each rank has
// trained in the round that is not exchanged yet (RoundSums::Weight), as the exchange would have
// taken it. What the round itself has, sums over images, is the plain mean.
// Thread-safety: the trainer thread. The blocks must outlive it.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_OWN_STATE_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_OWN_STATE_H_

#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/safetensors.h"
#include "core/storage/safetensors_writer.h"

namespace ringtail {

class OwnState {
 public:
  void Add(std::string name, std::span<float> block) {
    blocks_.emplace_back(std::move(name), block);
  }

  std::vector<TensorView> Tensors(int rank) const;
  // All ranks; the `saved` of `source_rank` counts. Overwrites the blocks that parts have; nothing
  // if there are no parts. Returns whether there were any. DataLoss, naming part and tensor, if one
  // has another size or is not finite.
  StatusOr<bool> Restore(TrainingWorld* world, const SavedParts& saved, int source_rank);

  // Keeps a copy of all blocks; TakeBack gives them the values of the last copy.
  void Keep();
  void TakeBack();

 private:
  // Of a part in the mean of all that were read so far, this one included.
  struct Shares {
    double of_rank = 1, of_round = 1;
  };
  Status Take(const SafetensorsFile& part, int from, const Shares& shares);

  std::vector<std::pair<std::string, std::span<float>>> blocks_;
  std::vector<std::vector<float>> kept_;  // as blocks_; empty: none
  std::set<std::string> taken_;           // blocks that hold the mean of the parts so far
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_OWN_STATE_H_
