#include "data/row_work.h"

#include <utility>

#include "core/random.h"

namespace ringtail {
namespace {

float WeightOf(int32_t label, std::span<const float> class_weights) {
  return class_weights.empty() ? 1 : class_weights[label];
}

}  // namespace

std::vector<RowWork> PlanRows(const AugmentConfig& config, int32_t image_size,
                              const EpochRows& place) {
  std::vector<RowWork> plan;
  if (!MixesImages(config)) {
    for (int64_t row = 0; row < place.rows; ++row) plan.push_back({.row = row});
    return plan;
  }
  const RngKey key = RngKey(place.seed).With(kMixStream).With(static_cast<uint64_t>(place.epoch));
  for (int64_t row = 0; row < place.rows; ++row) {
    const int64_t position = place.first + row, partner = position ^ 1;
    const bool exists = partner < place.images;
    const int64_t partner_row = partner - place.first;
    if (position % 2 == 1 && partner_row >= 0) continue;  // done with its partner
    RowWork work{.row = row};
    if (exists)
      work.mix = DrawMix(config, key.With(static_cast<uint64_t>(position / 2)), image_size);
    if (exists && partner_row >= 0 && partner_row < place.rows) {
      work.second = partner_row;
    } else if (exists) {
      work.partner_position = partner;
    }
    plan.push_back(work);
  }
  return plan;
}

RowLabels MixLabels(const ImageMix& mix, int32_t own, int32_t partner,
                    std::span<const float> class_weights) {
  constexpr float kHalf = 0.5F;
  RowLabels labels{.label = own, .other_label = partner};
  float share = mix.share;
  if (share < kHalf) {
    std::swap(labels.label, labels.other_label);
    share = 1 - share;
  }
  labels.weights = {share * WeightOf(labels.label, class_weights),
                    (1 - share) * WeightOf(labels.other_label, class_weights)};
  return labels;
}

RowLabels PlainLabels(int32_t own, std::span<const float> class_weights) {
  return {.label = own, .weights = {own < 0 ? 0 : WeightOf(own, class_weights), 0}};
}

}  // namespace ringtail
