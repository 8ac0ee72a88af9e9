// VirtualExchange: a sequence of plans that a group of workers executes one after the other, as each
// rank's communication thread does: an item begins when it is ready and the one before has ended.
//
//   Ready(1)  Ready(2)            what this member offers
//   |--item 0--|--item 1--|..|--item 2--|
//                                       Ended(member, 2)
//
// Thread-safety: one thread. Must outlive its events, unless it is cancelled.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_EXCHANGE_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_EXCHANGE_H_

#include <functional>
#include <memory>
#include <vector>

#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/clock/virtual_network.h"
#include "core/status.h"

namespace ringtail {

class VirtualExchange {
 public:
  // Called when item `item` has ended at a member.
  using Ended = std::function<Status(int member, int item)>;
  // When coding of so many seconds ends that `worker` begins now and that nothing slows down; what the
  // worker computes beside it does (WorkerCores). Only items with coding need it.
  using EndOfCoding = std::function<int64_t(int worker, double seconds)>;
  VirtualExchange(VirtualNetwork* network, const std::vector<ExchangeItem>& items,
                  const std::vector<int>& workers, Ended ended, EndOfCoding end_of_coding = {});
  ~VirtualExchange() { Cancel(); }
  VirtualExchange(const VirtualExchange&) = delete;
  VirtualExchange& operator=(const VirtualExchange&) = delete;

  int items() const { return static_cast<int>(runs_.size()); }
  // Items up to `item` are ready at `member` from now on.
  void Ready(int member, int item);
  void Cancel();

 private:
  struct Member {
    int ready = 0, entered = 0, ended = 0;  // numbers of items
  };
  void EnterNext(int member);

  VirtualNetwork* const network_;
  const std::vector<int> workers_;
  const Ended ended_;
  const EndOfCoding end_of_coding_;
  std::vector<Member> members_;
  std::vector<double> coding_s_;                // by item
  std::vector<std::shared_ptr<PlanRun>> runs_;  // by item
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_VIRTUAL_EXCHANGE_H_
