#include "dist/planner/shown_choices.h"

namespace ringtail {
namespace {

constexpr char kLinear8[] = "linear8";
constexpr int64_t kLargerBatch = 2;
constexpr int64_t kFewestSteps = 30;  // of an epoch, for the larger batch

}  // namespace

std::vector<std::string> ShownSchemes() { return {kLinear8}; }

SearchSpace ShownSpace(int64_t batch, int64_t images) {
  SearchSpace space{.global_batches = {batch}, .schemes = {kDenseScheme, kLinear8}};
  if (images >= kFewestSteps * kLargerBatch * batch) {
    space.global_batches.push_back(kLargerBatch * batch);
  }
  for (int period = 2; period <= kMostShownPeriod; period *= 2) space.periods.push_back(period);
  return space;
}

}  // namespace ringtail
