// StopRelay: a stop signal that reaches a rank which does not train, brought to rank 0.
//
//   rank 0, trains                      rank 1, is idle until the others have finished
//   ... steps ...          <--SIGTERM-- SIGTERM
//   as by SIGTERM
//   roll call: SIGTERM                                  (apps/trainer/update/roll_call.h)
//   checkpoint, end        --exit code-->
//
// Ranks that train tell one another in every step which signals they have received; idle ones are not
// asked, and rank 0 may train alone. So each idle rank sends rank 0 one message: its signal as soon as
// it has one, else 0 at the end. Rank 0 stops as if it had been told itself (StopAsBySignal), and all
// happens as usual.
//
// Threads: one, "rt-stop-relay", on idle ranks and on rank 0. Thread-safety: one thread. Cost: one message
// of 8 bytes from each idle rank; an idle one looks for a signal every kLookForStop.
#ifndef RINGTAIL_APPS_SESSION_STOP_RELAY_H_
#define RINGTAIL_APPS_SESSION_STOP_RELAY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dist/channel.h"
#include "dist/collectives/rank_group.h"
#include "dist/transport/transport.h"

namespace ringtail {

class StopRelay {
 public:
  // All ranks of the world; those of `training`, of which rank 0 is one, train. `channel` has no other
  // messages. `describe`: a rank for people.
  StopRelay(Transport* transport, Channel channel, const RankGroup& training,
            std::function<std::string(int rank)> describe);
  // Without Finish, it ends the world.
  ~StopRelay();
  StopRelay(const StopRelay&) = delete;
  StopRelay& operator=(const StopRelay&) = delete;

  // All ranks, once training has ended. Afterwards nothing is pending on the transport. If the world
  // has ended, the next operation says why.
  void Finish();

 private:
  void Listen(const std::vector<int>& idle);  // on rank 0
  void Tell();                                // on an idle rank

  Transport* const transport_;
  const MessageLabel label_;
  const std::function<std::string(int rank)> describe_;
  std::atomic<bool> ended_{false};  // training has
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_SESSION_STOP_RELAY_H_
