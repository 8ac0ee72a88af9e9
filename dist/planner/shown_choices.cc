#include "dist/planner/shown_choices.h"

#include <algorithm>
#include <utility>

namespace ringtail {

std::vector<std::string> ShownSchemes(TrainedNet net) {
  if (net.is_default && net.by_muon) return {"linear8", "hylo", "top_k 1%"};
  return {"linear8"};
}

int64_t FewestShownImages(const PlannerFacts& facts) {
  constexpr int64_t kFewestOfBatchNorm = 8;
  const bool own_statistics = facts.buffer_elements() > 0 && facts.synchronized_channels().empty();
  return own_statistics ? kFewestOfBatchNorm : 1;
}

SearchSpace ShownSpace(TrainedNet net, int64_t batch) {
  SearchSpace space{.global_batches = {batch}};
  for (std::string& scheme : ShownSchemes(net)) space.schemes.push_back(std::move(scheme));
  return space;
}

SearchSpace ShownPart(SearchSpace space, TrainedNet net) {
  const SearchSpace shown = ShownSpace(net, 1);
  std::erase_if(space.schemes, [&](const std::string& scheme) {
    return std::ranges::find(shown.schemes, scheme) == shown.schemes.end();
  });
  space.periods = shown.periods;
  return space;
}

}  // namespace ringtail
