#include "apps/emulator/clock/virtual_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/emulator/clock/plan_run.h"
#include "core/check.h"

namespace ringtail {
namespace {

// The entry of `index`; lists grow with the workers that join.
template <typename T>
T* At(std::vector<T>* list, int index) {
  const auto i = static_cast<size_t>(index);
  if (list->size() <= i) list->resize(i + 1);
  return &(*list)[i];
}

}  // namespace

VirtualNetwork::VirtualNetwork(const NetworkModel& model, int workers_per_host, EventQueue* queue)
    : model_(model), workers_per_host_(workers_per_host), queue_(queue), cores_(queue) {
  RT_CHECK(workers_per_host >= 1, "a host has at least one worker");
}

const LinkModel& VirtualNetwork::Link(int from, int to) const {
  return HostOf(from) == HostOf(to) ? model_.within_host : model_.between_hosts;
}

VirtualNetwork::Port* VirtualNetwork::PortOf(int worker, int peer) {
  if (HostOf(worker) == HostOf(peer)) return At(&worker_ports_, worker);
  return At(&host_ports_, HostOf(worker));
}

VirtualNetwork::Passage VirtualNetwork::Leave(int from, int to, double bytes) {
  Port* const port = PortOf(from, to);
  Passage passage;
  passage.begin_ns = std::max(queue_->now_ns(), port->out_free_ns);
  passage.end_ns = After(passage.begin_ns, bytes * Link(from, to).seconds_per_byte);
  port->out_free_ns = passage.end_ns;
  sent_bytes_ += static_cast<int64_t>(bytes);
  if (HostOf(from) != HostOf(to)) {
    cores_.Take(from, bytes * model_.cpu_seconds_per_byte + model_.cpu_seconds_per_message);
  }
  return passage;
}

int64_t VirtualNetwork::Arrive(int from, int to, double bytes, int64_t not_before_ns) {
  Port* const port = PortOf(to, from);
  const int64_t begin_ns = std::max({queue_->now_ns(), port->in_free_ns, not_before_ns});
  port->in_free_ns = After(begin_ns, bytes * Link(from, to).seconds_per_byte);
  return port->in_free_ns;
}

int64_t VirtualNetwork::WakesAt(int worker, int64_t time_ns) {
  const int64_t computes_until_ns = cores_.ComputesUntil(worker);
  if (computes_until_ns <= time_ns) return time_ns;
  return std::min(After(time_ns, wake_delays_.Next(worker)), computes_until_ns);
}

void VirtualNetwork::Send(int from, int to, int64_t bytes, EventQueue::Action arrived) {
  if (from == to) {
    queue_->Schedule(queue_->now_ns(), to, std::move(arrived));
    return;
  }
  const auto size = static_cast<double>(bytes);
  const int64_t first_byte_ns = After(Leave(from, to, size).begin_ns, Link(from, to).latency_s);
  queue_->Schedule(first_byte_ns, to, [this, from, to, size, arrived = std::move(arrived)] {
    queue_->Schedule(Arrive(from, to, size, 0), to, arrived);
    return OkStatus();
  });
}

std::shared_ptr<PlanRun> VirtualNetwork::Run(std::shared_ptr<const Plans> plans,
                                             std::vector<int> workers, Finished finished) {
  for (const int worker : workers) At(&adding_until_ns_, worker);
  return std::make_shared<PlanRunOnNetwork>(this, std::move(plans), std::move(workers),
                                            std::move(finished));
}

Topology VirtualNetwork::TopologyOf(const std::vector<int>& workers) const {
  Topology topology;
  std::vector<int> hosts;  // in the order of their first workers
  for (const int worker : workers) {
    const auto found = std::find(hosts.begin(), hosts.end(), HostOf(worker));
    topology.host_of_rank.push_back(static_cast<int>(found - hosts.begin()));
    if (found == hosts.end()) hosts.push_back(HostOf(worker));
  }
  return topology;
}

}  // namespace ringtail
