// Linear layers that ranks divide among them (dist.model_parallel.linear: AUTO): which, and what
// their exchange costs.
//
// A rank with N images, K inputs and M outputs sends in a step, f32 (layers/linear/sharded_linear.h;
// Krizhevsky 2014, "One weird trick", section 4)
//   divided    2 (P - 1) N (K + M / P)      activations and their gradients
//   whole      2 (P - 1) / P (M K + M)      the gradient of the weights, by a ring
// A layer is divided where the first is less: large layers, small batches, few ranks.
// Thread-safety: one thread, because of the prices. Errors: none.
#ifndef RINGTAIL_DIST_PLANNER_DIVIDED_LAYERS_H_
#define RINGTAIL_DIST_PLANNER_DIVIDED_LAYERS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "dist/planner/collective_prices.h"

namespace ringtail {

struct LinearSize {
  int64_t outputs = 0, inputs = 0;
};

// Sent by each rank in a step.
int64_t DividedBytes(const LinearSize& layer, int64_t images, int ranks);
int64_t GradientBytes(const LinearSize& layer, int ranks);
// Whether AUTO divides it.
bool IsWorthDividing(const LinearSize& layer, int64_t images, int ranks);

struct DividedLayers {
  std::vector<size_t> kept;    // the parameters whose gradients are added up over the ranks
  double forward_seconds = 0;  // of the exchange, in which nothing is computed
  double backward_seconds = 0;
  double sent_bytes = 0;  // of a rank
  double share = 0;       // of all elements, that are divided
  bool divides() const { return share > 0; }
};

// For ranks with `images` images each. A weight "x.weight" is divided with its bias "x.bias".
DividedLayers DivideLayers(std::span<const Parameter> parameters, int64_t images, int ranks,
                           CollectivePrices* prices);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_DIVIDED_LAYERS_H_
