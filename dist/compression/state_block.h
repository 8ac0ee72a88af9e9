// StateBlock: numbers that compression keeps between steps, as a checkpoint holds them
// (compression_state.h).
#ifndef RINGTAIL_DIST_COMPRESSION_STATE_BLOCK_H_
#define RINGTAIL_DIST_COMPRESSION_STATE_BLOCK_H_

#include <span>
#include <string>

namespace ringtail {

struct StateBlock {
  // Names of checkpoints: what a rank has not sent of its gradients, and of the sums that it makes
  // for all ranks.
  static constexpr char kResidual[] = "unsent", kResidualOfSums[] = "unsent_sums";

  // Before the parameter's name: what a sketch keeps of it. All other blocks have the gradients'
  // layout.
  static constexpr char kSketch[] = "sketch.";

  std::string name;
  std::span<float> values;
  bool own =
      false;  // differs between ranks, and only the sum over them matters; else the same on all
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_STATE_BLOCK_H_
