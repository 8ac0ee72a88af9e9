// VirtualNetwork: messages between virtual workers, and whole plans of messages.
//
//      sender    |== bytes * beta ==|
//                 `- alpha -.
//      receiver              |== bytes * beta ==|+ bytes * gamma +|  if it adds
//
// The rules are those of dist/collectives/plan_cost.h: messages between two workers of one host
// leave and arrive at ports of the two workers, messages between hosts at ports of the two hosts,
// which their workers share; a port carries one message at a time in each direction, first come,
// first served. But here workers begin when they are ready, everything under way shares the ports,
// and times are whole nanoseconds. Plans that all workers begin at time 0 on an idle network take
// what CostOfPlans says, except for rounding, and for messages of the same instant that pass a host's
// port in another order.
// Thread-safety: one thread. Cost: some 300 ns per message.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_NETWORK_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/emulator/clock/event_queue.h"
#include "apps/emulator/clock/wake_delays.h"
#include "apps/emulator/clock/worker_cores.h"
#include "dist/collectives/link_model.h"
#include "dist/collectives/plan.h"
#include "dist/collectives/topology.h"

namespace ringtail {

// By member of the group that executes them; they must fit each other.
using Plans = std::vector<Plan>;

// Plans that a group of workers executes.
class PlanRun {
 public:
  virtual ~PlanRun() = default;
  // Member `member` is ready for its first round, now. Once per member.
  virtual void Enter(int member) = 0;
  // Nothing of it happens from now on. What has left keeps its place at the ports.
  virtual void Cancel() = 0;
};

class VirtualNetwork {
 public:
  // Worker w is on host w / workers_per_host. What messages between hosts cost the processor, as
  // `model` has it, makes the sender's step longer. `queue` must outlive the network.
  VirtualNetwork(const NetworkModel& model, int workers_per_host, EventQueue* queue);

  // `arrived` runs when `to` has the message. From a worker to itself it takes no time.
  void Send(int from, int to, int64_t bytes, EventQueue::Action arrived);
  // workers[i] executes plans[i]; `finished` runs when it has finished its last round.
  using Finished = std::function<Status(int member)>;
  std::shared_ptr<PlanRun> Run(std::shared_ptr<const Plans> plans, std::vector<int> workers,
                               Finished finished);

  // What workers compute meanwhile: the processor time of what a worker sends and adds up is missing
  // there, and its plans continue later.
  WorkerCores* cores() { return &cores_; }
  // By how much later, at most until it has computed.
  void set_wake_delays(WakeDelays delays) { wake_delays_ = std::move(delays); }

  // Of these workers as ranks 0, 1, ...
  Topology TopologyOf(const std::vector<int>& workers) const;
  const NetworkModel& model() const { return model_; }
  EventQueue* queue() const { return queue_; }
  int64_t sent_bytes() const { return sent_bytes_; }  // by all workers

 private:
  friend class PlanRunOnNetwork;
  struct Port {
    int64_t out_free_ns = 0, in_free_ns = 0;  // when the messages before have passed
  };
  struct Passage {
    int64_t begin_ns = 0, end_ns = 0;
  };

  int HostOf(int worker) const { return worker / workers_per_host_; }
  const LinkModel& Link(int from, int to) const;
  Port* PortOf(int worker, int peer);
  // A message that is ready now: when it passes the sender's port.
  Passage Leave(int from, int to, double bytes);
  // A message whose first byte is there now: when it has passed the port of the receiver, who can
  // take it from `not_before_ns` on.
  int64_t Arrive(int from, int to, double bytes, int64_t not_before_ns);
  // When a thread of the worker's that waits until `time_ns` continues.
  int64_t WakesAt(int worker, int64_t time_ns);

  const NetworkModel model_;
  const int workers_per_host_;
  EventQueue* const queue_;
  WorkerCores cores_;
  WakeDelays wake_delays_;
  std::vector<Port> worker_ports_, host_ports_;
  std::vector<int64_t> adding_until_ns_;  // by worker
  int64_t sent_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_NETWORK_H_
