#include "dist/planner/host_choice.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace ringtail {
namespace {

void Multiply(double factor, google::protobuf::RepeatedField<double>* seconds) {
  for (double& s : *seconds) s *= factor;
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
  for (StepFacts& step : *facts.mutable_step()) {
    step.set_forward_s(step.forward_s() * factor);
    step.set_backward_s(step.backward_s() * factor);
    Multiply(factor, step.mutable_finish_s());
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

}  // namespace

StatusOr<HostChoice> ChooseHosts(const PlannerFacts& facts, const NetworkFacts& network,
                                 std::span<const double> slowness, const SearchSpace& space) {
  RT_CHECK(std::ssize(slowness) == network.hosts, "a number for each host");
  const std::vector<int> hosts = ByRank(slowness);
  HostChoice choice;
  std::vector<Prediction> by_number;
  double slowest = 0;
  for (int n = 1; n <= network.hosts; ++n) {
    slowest = std::max(slowest, slowness[hosts[n - 1]]);
    StepSimulator simulator(SlowedDown(facts, slowest), network);
    SearchSpace of_n = space;
    of_n.hosts = {n};
    if (n == 1) of_n.global_batches.resize(1);
    RT_ASSIGN_OR_RETURN(SearchResult found, Search(&simulator, of_n));
    if (n == 1) choice.one_host = found.one_host;
    by_number.push_back(std::move(found.recommended));
    if (n < network.hosts) continue;
    const int64_t batch = space.global_batches[0];
    RT_ASSIGN_OR_RETURN(choice.dense, simulator.Simulate({.hosts = network.HostsWithImages(batch),
                                                          .global_batch = batch}));
  }
  choice.best = Gentlest(by_number);
  choice.hosts.assign(hosts.begin(), hosts.begin() + choice.best.choice.hosts);
  std::ranges::sort(choice.hosts);
  return choice;
}

}  // namespace ringtail
