#include "dist/collectives/allgather_choice.h"

#include <fmt/format.h>

#include <vector>

#include "dist/collectives/algorithms/bruck.h"
#include "dist/collectives/algorithms/ring.h"

namespace ringtail {
namespace {

constexpr AllgatherAlgorithm kAllgathers[] = {{"ring", RingAllgather}, {"bruck", BruckAllgather}};
constexpr const AllgatherAlgorithm &kRing = kAllgathers[0], &kBruck = kAllgathers[1];

// Bruck's has to be cheaper than the ring by so much of the ring's price.
constexpr double kWorthIt = 0.05;

constexpr NetworkModel kTypical = {
    .within_host = {.latency_s = 20e-6, .seconds_per_byte = 1 / 2e9},
    .between_hosts = {.latency_s = 150e-6, .seconds_per_byte = 1 / 117e6}};

bool Known(const LinkModel& links) { return links.latency_s > 0 || links.seconds_per_byte > 0; }

// plan_cost.h takes elements for 4 bytes.
NetworkModel PerElement(NetworkModel network, size_t element_bytes) {
  const double share = static_cast<double>(element_bytes) / kElementBytes;
  network.within_host.seconds_per_byte *= share;
  network.between_hosts.seconds_per_byte *= share;
  return network;
}

}  // namespace

std::span<const AllgatherAlgorithm> AllgatherAlgorithms() { return kAllgathers; }

StatusOr<const AllgatherAlgorithm*> FindAllgather(std::string_view name) {
  if (name == "auto") return static_cast<const AllgatherAlgorithm*>(nullptr);
  for (const AllgatherAlgorithm& algorithm : kAllgathers) {
    if (algorithm.name == name) return &algorithm;
  }
  return InvalidArgument(fmt::format("unknown allgather algorithm '{}'; known are auto, {}, {}",
                                     name, kRing.name, kBruck.name));
}

const AllgatherAlgorithm& CheaperAllgather(const Topology& topology, int64_t count,
                                           size_t element_bytes, const NetworkModel& network) {
  const bool known = Known(network.within_host) || Known(network.between_hosts);
  const NetworkModel links = PerElement(known ? network : kTypical, element_bytes);
  const auto price = [&](const AllgatherAlgorithm& algorithm) {
    std::vector<Plan> plans;
    plans.reserve(topology.world());
    for (int rank = 0; rank < topology.world(); ++rank) {
      plans.push_back(algorithm.plan(rank, topology.world(), count));
    }
    return CostOfPlans(plans, topology, links).seconds;
  };
  return price(kBruck) < (1 - kWorthIt) * price(kRing) ? kBruck : kRing;
}

}  // namespace ringtail
