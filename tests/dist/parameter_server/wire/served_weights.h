// ServedWeights: a shard of a few weights whose optimizer is plain SGD at rate 1, with the tickets
// of a run, behind a ShardService.
#ifndef RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SERVED_WEIGHTS_H_
#define RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SERVED_WEIGHTS_H_

#include <algorithm>
#include <vector>

#include "dist/parameter_server/wire/shard_service.h"

namespace ringtail {

struct ServedOptions {
  size_t statistics = 1;               // of the first server
  const PushCoding* coding = nullptr;  // as ShardService::Options, as the next one
  PullEncoder* pulls = nullptr;
};

class ServedWeights {
 public:
  // `rows` in the run, which is one round.
  ServedWeights(const AsynchronousRule& rule, size_t weights, int64_t rows, bool first = true,
                const ServedOptions& options = {})
      : weights_(weights, 1.0F),
        gradients_(weights),
        statistics_(options.statistics, 0.0F),
        shard_({.rule = rule}, weights_, gradients_,
               [this](const ShardUpdate& update) { return Apply(update); }),
        desk_(Tickets(rows, rows), rule.synchronous()),
        mean_(statistics_),
        service_({.shard = &shard_,
                  .desk = first ? &desk_ : nullptr,
                  .statistics = first ? &mean_ : nullptr,
                  .shares_statistics = rule.synchronous(),
                  .state = {weights_},
                  .coding = options.coding,
                  .pulls = options.pulls}) {
    if (first) service_.Open(rows);
  }

  ShardService* service() { return &service_; }
  const std::vector<float>& weights() const { return weights_; }
  const TicketDesk& desk() const { return desk_; }
  int64_t version() const { return shard_.version(); }

 private:
  double Apply(const ShardUpdate& update) {
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i] -= static_cast<float>(update.scale()) * gradients_[i];
    }
    return 1;
  }

  std::vector<float> weights_, gradients_, statistics_;
  ServerShard shard_;
  TicketDesk desk_;
  WorkerStatistics mean_;
  ShardService service_;
};

inline SharedBuffer BufferOf(const std::vector<float>& values) {
  auto buffer = std::make_shared<AlignedBuffer>(values.size() * sizeof(float));
  std::ranges::copy(values, buffer->floats().begin());
  return buffer;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SERVED_WEIGHTS_H_
