#include "dist/planner/host_choice.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/round.h"
#include "dist/planner/shares_by_speed.h"

namespace ringtail {
namespace {

void Multiply(double factor, google::protobuf::RepeatedField<double>* seconds) {
  for (double& s : *seconds) s *= factor;
}

void Multiply(double factor, google::protobuf::RepeatedPtrField<StepFacts>* steps) {
  for (StepFacts& step : *steps) {
    step.set_forward_s(step.forward_s() * factor);
    step.set_backward_s(step.backward_s() * factor);
    Multiply(factor, step.mutable_finish_s());
  }
}

// What a machine that takes `factor` times as long would have measured.
PlannerFacts SlowedDown(PlannerFacts facts, double factor) {
  facts.set_update_s(facts.update_s() * factor);
  Multiply(factor, facts.mutable_prepare_s());
  facts.set_norm_s(facts.norm_s() * factor);
  facts.set_average_s(facts.average_s() * factor);
  facts.set_preparing_s(facts.preparing_s() * factor);
  facts.set_accumulate_s(facts.accumulate_s() * factor);
  facts.set_merge_s(facts.merge_s() * factor);
  facts.set_load_cpu_s(facts.load_cpu_s() * factor);
  facts.set_decode_cpu_s(facts.decode_cpu_s() * factor);
  Multiply(factor, facts.mutable_step());
  for (SizeFacts& size : *facts.mutable_further_size()) {
    size.set_load_cpu_s(size.load_cpu_s() * factor);
    size.set_decode_cpu_s(size.decode_cpu_s() * factor);
    Multiply(factor, size.mutable_step());
  }
  for (SchemeFacts& scheme : *facts.mutable_scheme()) {
    Multiply(factor, scheme.mutable_encode_s());
    Multiply(factor, scheme.mutable_decode_s());
    Multiply(factor, scheme.mutable_clear_s());
  }
  return facts;
}

// Host 0, then the others, fastest first.
std::vector<int> ByRank(std::span<const double> slowness) {
  std::vector<int> hosts(slowness.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  std::ranges::stable_sort(hosts.begin() + 1, hosts.end(), {},
                           [&](int host) { return slowness[host]; });
  return hosts;
}

// Whether every rank has the memory for its part of a step, and batch norm enough images.
bool PartsFit(const PlannerFacts& facts, const SharesBySpeed& shares, const Prediction& p) {
  const int64_t even = CeilDivide(p.choice.global_batch, static_cast<int64_t>(p.ranks));
  const int64_t largest = facts.step(facts.step_size() - 1).batch();
  if (ImagesOfFastest(shares, even, p.parts) > largest * p.parts) return false;
  const bool own_statistics =
      facts.buffer_elements() > 0 && facts.synchronized_channels_size() == 0;
  return !own_statistics ||
         ImagesOfSlowest(shares, even, p.parts) >= kFewestForStatistics * p.parts;
}

// What has been found for each number of hosts.
struct Candidates {
  std::vector<Prediction> even, by_speed;
};

// The best choices of space.hosts, a number above 1.
Status AddBest(const PlannerFacts& facts, const SharesBySpeed& shares, const SearchSpace& space,
               ShareRule rule, StepSimulator* simulator, Candidates* candidates) {
  const int n = space.hosts.front();
  if (rule != ShareRule::kBySpeed) {
    RT_ASSIGN_OR_RETURN(SearchResult found, Search(simulator, space));
    candidates->even.push_back(std::move(found.recommended));
  }
  if (rule == ShareRule::kEven || (rule == ShareRule::kFaster && !shares.differ())) {
    return OkStatus();
  }
  SearchSpace by_speed = space;
  by_speed.by_speed = true;
  RT_ASSIGN_OR_RETURN(SearchResult found, Search(simulator, by_speed));
  const Prediction& best = found.recommended;
  if (best.choice.hosts < n) return OkStatus();
  if (rule == ShareRule::kBySpeed || PartsFit(facts, shares, best)) {
    candidates->by_speed.push_back(std::move(found.recommended));
  }
  return OkStatus();
}

void Choose(Candidates candidates, ShareRule rule, HostChoice* choice) {
  std::vector<Prediction>& even = candidates.even;
  const std::vector<Prediction>& by_speed = candidates.by_speed;
  if (rule == ShareRule::kBySpeed) even.insert(even.end(), by_speed.begin(), by_speed.end());
  choice->best = Gentlest(even);
  if (rule != ShareRule::kFaster || by_speed.empty()) return;
  const Prediction& faster = Gentlest(by_speed);
  if (faster.images_per_s() < kWorthShares * choice->best.images_per_s()) return;
  choice->even = std::exchange(choice->best, faster);
}

}  // namespace

StatusOr<HostChoice> ChooseHosts(const PlannerFacts& facts, const NetworkFacts& network,
                                 std::span<const double> slowness, const SearchSpace& space,
                                 ShareRule rule) {
  RT_CHECK(std::ssize(slowness) == network.hosts, "a number for each host");
  const std::vector<int> hosts = ByRank(slowness);
  HostChoice choice;
  Candidates candidates;
  std::vector<double> taken;  // slowness of the hosts that train
  for (int n = 1; n <= network.hosts; ++n) {
    taken.push_back(slowness[hosts[n - 1]]);
    const auto shares = SharesBySpeed::Of(taken);
    StepSimulator simulator(SlowedDown(facts, std::ranges::max(taken)), network,
                            {.shares = shares});
    SearchSpace of_n = space;
    of_n.hosts = {n};
    of_n.by_speed = false;
    if (n == 1) {
      of_n.global_batches.resize(1);
      RT_ASSIGN_OR_RETURN(SearchResult found, Search(&simulator, of_n));
      choice.one_host = found.one_host;
      candidates.even.push_back(std::move(found.recommended));
    } else {
      RT_RETURN_IF_ERROR(AddBest(facts, shares, of_n, rule, &simulator, &candidates));
    }
    if (n < network.hosts) continue;
    const int64_t batch = space.global_batches[0];
    const int with_images = network.HostsWithImages(batch);
    const bool by_speed = rule == ShareRule::kBySpeed && with_images > 1;
    RT_ASSIGN_OR_RETURN(
        choice.dense,
        simulator.Simulate({.hosts = with_images, .global_batch = batch, .by_speed = by_speed}));
  }
  Choose(std::move(candidates), rule, &choice);
  choice.hosts.assign(hosts.begin(), hosts.begin() + choice.best.choice.hosts);
  std::ranges::sort(choice.hosts);
  return choice;
}

}  // namespace ringtail
