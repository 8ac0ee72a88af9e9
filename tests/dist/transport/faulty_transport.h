// FaultyTransport: a transport that misbehaves, by seed, around one that does not.
//
// Every Send and Receive is held back for a random time of up to `delay`, so that operations begin
// and end in an order that is not the callers'. A message may get lost (its Send completes, and
// nothing is sent), or be sent with another check. After `dies_after` sends the rank dies: its
// transport is aborted.
#ifndef RINGTAIL_TESTS_DIST_TRANSPORT_FAULTY_TRANSPORT_H_
#define RINGTAIL_TESTS_DIST_TRANSPORT_FAULTY_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#include "core/mutex.h"
#include "core/random.h"
#include "dist/transport/transport.h"
#include "tests/dist/test_world.h"

namespace ringtail {

struct Faults {
  uint64_t seed = 1;
  std::chrono::microseconds delay{0};  // 0: nothing is held back
  double loss = 0, corruption = 0;     // probability for each message
  int64_t dies_after = std::numeric_limits<int64_t>::max();
};

class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> transport, const Faults& faults);
  ~FaultyTransport() override;

  int rank() const override { return transport_->rank(); }
  int world_size() const override { return transport_->world_size(); }
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override;
  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override;
  Traffic TrafficWith(int peer) const override { return transport_->traffic(peer); }
  void Abort(const Status& cause) override;
  Status EndCause() const override { return transport_->EndCause(); }

 private:
  using Clock = std::chrono::steady_clock;

  void Delay(std::function<void()> call) RT_EXCLUDES(mutex_);
  void MakeDelayedCalls() RT_EXCLUDES(mutex_);  // body of thread_

  const std::unique_ptr<Transport> transport_;
  const Faults faults_;
  Mutex mutex_;
  ConditionVariable changed_;
  Rng random_ RT_GUARDED_BY(mutex_);
  int64_t sends_ RT_GUARDED_BY(mutex_) = 0;
  std::multimap<Clock::time_point, std::function<void()>> delayed_ RT_GUARDED_BY(mutex_);
  bool stopping_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Every rank of `world` with the same faults, each with a seed of its own.
World MakeFaulty(World world, const Faults& faults);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TRANSPORT_FAULTY_TRANSPORT_H_
