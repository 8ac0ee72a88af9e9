// Prediction: how long a choice takes, and why.
//
//   data | forward | activations, batch norm | backward ..contention.. | waiting | coding | wire | ...
//                                                                      `-- exposed: nothing hides it
//   ... | update | merge | roll call
//
// Of a round: `period` steps and one exchange. All ranks are equally fast but for chance.
// Thread-safety: values; functions without state.
#ifndef RINGTAIL_DIST_PLANNER_PREDICTION_H_
#define RINGTAIL_DIST_PLANNER_PREDICTION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dist/planner/choice.h"

namespace ringtail {

struct PredictedSeconds {
  double data_wait = 0;
  double forward = 0, backward = 0;
  double update = 0;       // all of it, also what is computed while communication is under way
  double contention = 0;   // by which communication slows computation on shared cores
  double waiting = 0;      // for the slowest rank
  double coding = 0;       // encoding and decoding, as far as exposed
  double wire = 0;         // collectives of gradients, as far as exposed
  double activations = 0;  // on their way between ranks that divide layers
  double batch_norm = 0;   // sums over the images of all ranks (dist.sync_batch_norm)
  double merge = 0;        // taking and merging what the ranks of a round have changed
  double roll_call = 0;    // of a step: what its update does not hide

  double sum() const {
    return data_wait + forward + backward + update + contention + waiting + coding + wire +
           activations + batch_norm + merge + roll_call;
  }
};

struct Prediction {
  Choice choice;
  PredictedSeconds seconds;  // of a round
  double communication = 0;  // seconds of coding and collectives, hidden ones included
  double images = 0;         // of all ranks in a round
  double sent_bytes = 0;     // of the rank with the most, in a round
  double ranks = 1;
  int64_t parts = 1;  // of a rank's images in a step (train.accumulation)

  double step_seconds() const { return seconds.sum() / choice.period; }
  double images_per_s() const { return images / seconds.sum(); }
  double bytes_per_image() const { return sent_bytes * ranks / images; }
};

// The mean of predictions of the same choice and parts, not empty, each of so large a share of all steps.
Prediction MeanOf(std::span<const Prediction> predictions, std::span<const double> shares);

// The longest part of the critical path in words: "the wire is exposed for 138 of 165 ms".
std::string Reason(const Prediction& prediction);
// "data 0.0, forward 12.1, backward 24.0, ... = 191.2 ms per step": the parts that are not zero.
std::string CriticalPath(const Prediction& prediction);
// What a run should be told before its first step, if several hosts are predicted to be slower than one:
// "8 hosts, dense, every step: predicted 35 images/s, 0.15 times one host alone (239), because it waits for
// the wire for 6502.1 of 7310.6 ms per step".
std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_PREDICTION_H_
