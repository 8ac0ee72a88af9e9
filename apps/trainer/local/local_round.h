// LocalRound: the weights of one rank that takes steps of its own, and the mathematics of a round.
// It exchanges nothing: between Take and Merge the caller adds up what it offers over the ranks.
//
//   w    common weights, the same bits on all ranks        D_i = w - w_i     what rank i has changed
//   w_i  this rank's own weights, in the model's arena     c_i               its weight in the mean
//
//   blocking       steps | Take  sum  Merge | steps             w  <- outer step on sum c_i D_i / sum c_i
//                                                               w_i <- w
//   overlapped     steps | Take  . . . . . . Merge, Take | .    z_i <- w_i when taken
//                          \ steps of the next round /          w_i <- w + (w_i - z_i)
//                            while the sum travels
//
// In an overlapped round a rank keeps what it has done since Take, so that every change is counted
// once. Running statistics follow the same rules; their new common value is the mean.
// Differences that travel through codecs (set_coded_ranks) are divided by the number of ranks, which
// is what c_i add up to unless a rank has left steps out. A codec sends in a later round what it has
// kept of this one: it must count there for as much, however many ranks have anything to add then.
// Thread-safety: the trainer thread, but the sums belong to the communication thread between Take
// and Merge. Memory: three blocks of the model's size (common weights, differences, the optimizer's
// momentum), a fourth if rounds overlap. Cost: Take and Merge are one pass over these blocks each.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_ROUND_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_ROUND_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameter.h"
#include "core/status.h"
#include "optim/outer_optimizer.h"

namespace ringtail {

class LocalRound {
 public:
  // `model`: this rank's own weights, which are those of all ranks now; must outlive the round.
  static StatusOr<std::unique_ptr<LocalRound>> Create(ParameterArena* model, const OuterRule& rule,
                                                      bool overlapped);

  // What this rank has changed since the last Merge, times `weight` (c_i): differences()->grads()
  // and statistics(). Returns |D_i|^2, which is not finite if own weights are not.
  double Take(double weight);
  // Instead of what Take has offered: nothing, with a weight of 0. This rank begins anew from the
  // common weights: 0 times a NaN would be a NaN for all.
  void TakeNothing();
  // Offered by Take, to be replaced by their sums over the ranks. The arena has the model's
  // parameters; its values are the common weights.
  ParameterArena* differences() { return common_.get(); }
  std::span<float> statistics() { return statistics_.floats(); }
  // New common weights from the sums, and this rank's own from them. `weights`: sum of c_i over the
  // ranks; 0, if no rank has anything to add: then common statistics, whose sum is 0, stay. `round`,
  // `inner_rate`: OuterOptimizer::Step. Returns the squares of what the outer step is made of.
  double Merge(int64_t round, double weights, double inner_rate);

  // Exchanges own and common weights in the model's arena, to evaluate or save what is common; the
  // next call exchanges them back. Nothing happens unless rounds overlap: they are the same then.
  void Swap();
  // Own weights become the common ones: what this rank has changed since then is given up.
  void Forget();

  // This rank's own, wherever they are.
  std::span<float> own_weights() { return swapped_ ? hidden_weights_.floats() : model_->values(); }
  std::span<float> own_statistics() {
    return swapped_ ? hidden_statistics_.floats() : model_->buffer_values();
  }
  // The common weights and statistics, the outer optimizer's momentum.
  std::span<float> common_weights() { return common_->values(); }
  std::span<float> common_statistics() { return common_->buffer_values(); }
  std::vector<Optimizer::StateBlock> state() { return outer_.state(); }
  // Differences travel through the codecs of so many ranks from now on.
  void set_coded_ranks(int ranks) { coded_ranks_ = ranks; }
  bool overlapped() const { return overlapped_; }

 private:
  LocalRound(ParameterArena* model, std::unique_ptr<ParameterArena> common, const OuterRule& rule,
             bool overlapped);
  double Divisor(double weights) const;  // of the sum of differences

  ParameterArena* const model_;
  const bool overlapped_;
  bool swapped_ = false;                    // the model holds the common weights
  int coded_ranks_ = 0;                     // 0: no codecs
  std::unique_ptr<ParameterArena> common_;  // values: w; grads: c_i D_i
  OuterOptimizer outer_;
  AlignedBuffer statistics_;                          // c_i times own statistics
  AlignedBuffer taken_weights_, taken_statistics_;    // z_i; empty unless rounds overlap
  AlignedBuffer hidden_weights_, hidden_statistics_;  // own ones, while swapped; as taken_
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_LOCAL_ROUND_H_
