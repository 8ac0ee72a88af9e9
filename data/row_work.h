// RowWork: which rows of a batch are loaded together, because their images are mixed, and what
// becomes of their labels.
//
//   epoch's order    0 1 | 2 3 | 4 5 | 6 7 | 8     pairs: positions 2 k and 2 k + 1
//   rank 0's rows    [0 1   2]                     a pair, and one whose partner is elsewhere
//   rank 1's rows              [3   4 5]           the rank loads the partner, too, and drops it
//
// What is drawn for a pair is a function of (seed, epoch, k), so a row has the same bits
// on every rank, and wherever a batch begins. An image without a partner (the last of an odd number), or
// whose partner is bad or has no label, is not mixed. Thread-safety: pure functions.
#ifndef RINGTAIL_DATA_ROW_WORK_H_
#define RINGTAIL_DATA_ROW_WORK_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/augmentation/image_mix.h"
#include "data/data.pb.h"

namespace ringtail {

struct RowWork {
  int64_t row = 0;                // of the batch
  int64_t second = -1;            // the partner's row; -1: it is not in the batch, or there is none
  int64_t partner_position = -1;  // in the epoch's order, of a partner that is not in the batch
  ImageMix mix;                   // kNone: there is no partner
};

// Positions of an epoch's order: rows [first, first + rows) of `images`.
struct EpochRows {
  uint64_t seed = 1;
  int64_t epoch = 0, first = 0, rows = 0, images = 0;
};

// Each row once. Without mixup and cutmix one row each.
std::vector<RowWork> PlanRows(const AugmentConfig& config, int32_t image_size,
                              const EpochRows& place);

// What a row is to be. `other_label` -1: not mixed.
struct RowLabels {
  int32_t label = -1, other_label = -1;
  std::array<float, 2> weights = {1, 0};  // share of the class times the weight of the class
};

// Of an image of class `own` whose partner is of class `partner`; the larger share comes first.
// `class_weights`: by class; empty: all 1.
RowLabels MixLabels(const ImageMix& mix, int32_t own, int32_t partner,
                    std::span<const float> class_weights);
// Of one that is not mixed; own -1: no sample.
RowLabels PlainLabels(int32_t own, std::span<const float> class_weights);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_ROW_WORK_H_
