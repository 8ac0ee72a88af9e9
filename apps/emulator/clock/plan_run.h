// PlanRunOnNetwork: executes plans on a VirtualNetwork, as dist/collectives/plan_cost.h describes:
// rounds follow each other on each member, a sender need not wait for its receiver, and a member
// adds one message before it takes the next. Its events are those of the workers.
// Thread-safety: one thread. Lives as long as one of its events is scheduled.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_PLAN_RUN_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_PLAN_RUN_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "apps/emulator/clock/virtual_network.h"

namespace ringtail {

class PlanRunOnNetwork : public PlanRun, public std::enable_shared_from_this<PlanRunOnNetwork> {
 public:
  PlanRunOnNetwork(VirtualNetwork* network, std::shared_ptr<const Plans> plans,
                   std::vector<int> workers, VirtualNetwork::Finished finished);

  void Enter(int member) override;
  void Cancel() override { cancelled_ = true; }

 private:
  struct Member {
    size_t entered = 0;        // rounds
    size_t open = 0;           // steps of this round
    int64_t round_end_ns = 0;  // of the steps that have finished
    bool received = false;     // in this round: it has waited for a message
  };
  struct Posted {  // a receive without its message
    int64_t time_ns = 0;
    bool adds = false;
  };
  struct Channel {                       // from one member to another: what has not met its partner
    std::deque<int64_t> first_bytes_ns;  // of messages: when they arrive
    std::deque<Posted> receives;
  };

  void ScheduleRound(int member, int64_t time_ns);
  Status EnterRound(int member);
  void Start(int member, const Step& step);
  void Meet(int from, int to, double bytes, Channel* channel);
  void Receive(int from, int to, double bytes, bool adds);
  void FinishStep(int member, int64_t time_ns);
  int worker(int member) const { return workers_[static_cast<size_t>(member)]; }

  VirtualNetwork* const network_;
  EventQueue* const queue_;
  const std::shared_ptr<const Plans> plans_;
  const std::vector<int> workers_;
  const VirtualNetwork::Finished finished_;
  std::vector<Member> members_;
  std::map<std::pair<int, int>, Channel> channels_;
  bool cancelled_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_PLAN_RUN_H_
