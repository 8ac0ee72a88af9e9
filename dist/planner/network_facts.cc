#include "dist/planner/network_facts.h"

namespace ringtail {
namespace {

LinkModel LinkOf(const LinkFacts& link) {
  return {.latency_s = link.latency_s(),
          .seconds_per_byte = link.seconds_per_byte(),
          .reduce_seconds_per_byte = link.reduce_seconds_per_byte()};
}

void CopyLink(const LinkModel& link, LinkFacts* facts) {
  facts->set_latency_s(link.latency_s);
  facts->set_seconds_per_byte(link.seconds_per_byte);
  facts->set_reduce_seconds_per_byte(link.reduce_seconds_per_byte);
}

}  // namespace

NetworkFacts NetworkFacts::Of(const PlannerFacts& facts) {
  const ClusterFacts& cluster = facts.cluster();
  return {.links = {.within_host = LinkOf(cluster.within_host()),
                    .between_hosts = LinkOf(cluster.between_hosts())},
          .hosts = cluster.hosts(),
          .ranks_per_host = cluster.ranks_per_host(),
          .cores_per_host = cluster.has_cores_per_host() ? cluster.cores_per_host() : facts.cores(),
          .sending = {.per_byte = cluster.cpu_seconds_per_byte(),
                      .per_message = cluster.cpu_seconds_per_message()}};
}

void NetworkFacts::CopyTo(ClusterFacts* cluster) const {
  cluster->set_hosts(hosts);
  cluster->set_ranks_per_host(ranks_per_host);
  cluster->set_cores_per_host(cores_per_host);
  CopyLink(links.within_host, cluster->mutable_within_host());
  CopyLink(links.between_hosts, cluster->mutable_between_hosts());
  cluster->set_cpu_seconds_per_byte(sending.per_byte);
  cluster->set_cpu_seconds_per_message(sending.per_message);
}

NetworkFacts NetworkFacts::Probed(const NetworkModel& links, int hosts, int ranks_per_host,
                                  double cores_per_host) {
  return {.links = links,
          .hosts = hosts,
          .ranks_per_host = ranks_per_host,
          .cores_per_host = cores_per_host,
          .sending = links.cpu_seconds_per_byte > 0
                         ? SendingCost{.per_byte = links.cpu_seconds_per_byte,
                                       .per_message = links.cpu_seconds_per_message}
                         : kTypicalSending};
}

}  // namespace ringtail
