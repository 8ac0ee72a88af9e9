#include "apps/emulator/clock/virtual_exchange.h"

#include <algorithm>
#include <utility>

namespace ringtail {

VirtualExchange::VirtualExchange(VirtualNetwork* network, const std::vector<ExchangeItem>& items,
                                 const std::vector<int>& workers, Ended ended,
                                 EndOfCoding end_of_coding)
    : network_(network),
      workers_(workers),
      ended_(std::move(ended)),
      end_of_coding_(std::move(end_of_coding)),
      members_(workers.size()) {
  for (size_t item = 0; item < items.size(); ++item) {
    coding_s_.push_back(items[item].coding_s);
    runs_.push_back(
        network->Run(items[item].plans, workers, [this, item = static_cast<int>(item)](int member) {
          ++members_[static_cast<size_t>(member)].ended;
          EnterNext(member);
          return ended_(member, item);
        }));
  }
}

void VirtualExchange::Ready(int member, int item) {
  Member& m = members_[static_cast<size_t>(member)];
  m.ready = std::max(m.ready, item + 1);
  EnterNext(member);
}

void VirtualExchange::EnterNext(int member) {
  Member& m = members_[static_cast<size_t>(member)];
  if (m.entered > m.ended || m.entered >= m.ready) return;
  const auto item = static_cast<size_t>(m.entered++);
  if (coding_s_[item] == 0) return runs_[item]->Enter(member);
  const int worker = workers_[static_cast<size_t>(member)];
  const int64_t alone_ns = end_of_coding_(worker, coding_s_[item]) - network_->queue()->now_ns();
  network_->cores()->WorkBeside(worker, alone_ns, [run = runs_[item], member] {
    run->Enter(member);
    return OkStatus();
  });
}

void VirtualExchange::Cancel() {
  for (const std::shared_ptr<PlanRun>& run : runs_) run->Cancel();
}

}  // namespace ringtail
