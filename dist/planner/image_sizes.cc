#include "dist/planner/image_sizes.h"

#include <utility>

namespace ringtail {
namespace {

PlannerFacts WithSize(PlannerFacts facts, const SizeFacts& size) {
  *facts.mutable_step() = size.step();
  facts.set_image_size(size.image_size());
  facts.set_load_cpu_s(size.load_cpu_s());
  facts.set_decode_cpu_s(size.decode_cpu_s());
  facts.clear_further_size();
  return facts;
}

double ShareOfFirstSize(const PlannerFacts& facts) {
  double share = 1;
  for (const SizeFacts& size : facts.further_size()) share -= size.share();
  return share;
}

}  // namespace

std::vector<FactsOfSize> SizesOf(const PlannerFacts& facts) {
  std::vector<FactsOfSize> sizes;
  sizes.reserve(1 + facts.further_size_size());
  PlannerFacts first = facts;
  first.clear_further_size();
  for (const SizeFacts& size : facts.further_size()) {
    sizes.push_back({size.share(), WithSize(first, size)});
  }
  sizes.insert(sizes.begin(), {ShareOfFirstSize(facts), std::move(first)});
  return sizes;
}

std::optional<PlannerFacts> OfImageSize(const PlannerFacts& facts, int64_t image_size) {
  for (FactsOfSize& size : SizesOf(facts)) {
    if (size.facts.image_size() == image_size) return std::move(size.facts);
  }
  return std::nullopt;
}

std::vector<TimetableOfSize> TimetablesOf(const PlannerFacts& facts, double cores) {
  std::vector<TimetableOfSize> timetables;
  timetables.reserve(1 + facts.further_size_size());
  for (const auto& [share, of_size] : SizesOf(facts)) {
    timetables.push_back({share, StepTimetable(of_size, cores)});
  }
  return timetables;
}

}  // namespace ringtail
