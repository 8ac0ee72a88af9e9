// RoundSums: what this rank has done in a round, from its first step until it is exchanged.
// Thread-safety: a value.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_ROUND_SUMS_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_ROUND_SUMS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "apps/trainer/local/round_exchange.h"

namespace ringtail {

struct RoundSums {
  // As a checkpoint has it (own_state.h): images, loss, correct, left out, expected.
  using Saved = std::array<float, 5>;

  double expected = 0;  // images, if ranks had equal shares and all could be read
  RankRound own;
  double step_seconds = 0;  // of its steps, without waiting for other ranks
  int64_t steps = 0;
  std::string not_finite;  // where

  // Its weight in the mean of the ranks (c_i of local_round.h). Of what a checkpoint keeps, so that
  // it has the same bits in a run that continues from one: equal shares may have a fraction.
  double Weight() const {
    const Saved saved = Save();
    const double images = saved[0], share = saved[4];
    return share > 0 ? images / share : 0;
  }
  double MeanStepSeconds() const {
    return step_seconds / static_cast<double>(std::max<int64_t>(steps, 1));
  }

  Saved Save() const {
    return {static_cast<float>(own.images), static_cast<float>(own.loss),
            static_cast<float>(own.correct), static_cast<float>(own.left_out),
            static_cast<float>(expected)};
  }
  // In a world of another size these are means over the ranks: a step that one of them has left out
  // is still one.
  static RoundSums Restored(const Saved& saved, int64_t steps) {
    const auto& [images, loss, correct, left_out, expected] = saved;
    return {.expected = expected,
            .own = {.loss = loss,
                    .correct = correct,
                    .images = images,
                    .left_out = static_cast<int64_t>(std::ceil(left_out))},
            .steps = steps};
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_ROUND_SUMS_H_
