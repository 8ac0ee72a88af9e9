#include "apps/emulator/clock/virtual_exchange.h"

#include <algorithm>
#include <utility>

namespace ringtail {

VirtualExchange::VirtualExchange(VirtualNetwork* network, const std::vector<ExchangeItem>& items,
                                 const std::vector<int>& workers, Ended ended)
    : ended_(std::move(ended)), members_(workers.size()) {
  for (size_t item = 0; item < items.size(); ++item) {
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
  runs_[static_cast<size_t>(m.entered++)]->Enter(member);
}

void VirtualExchange::Cancel() {
  for (const std::shared_ptr<PlanRun>& run : runs_) run->Cancel();
}

}  // namespace ringtail
