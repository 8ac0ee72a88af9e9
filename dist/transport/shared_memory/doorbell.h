// Doorbell: how ranks of one host wake each other. A rank has one, in memory that its peers map;
// a peer that has put something into one of its rings rings it.
//
//   peer                                   this rank
//   bytes into the ring                    seen = Rung(bell)
//   RingBell: rung += 1                    looks into all rings: nothing
//             does a thread sleep?         SleepAtBell(seen): I sleep; is rung still `seen`?
//             then wake it (futex)                             then sleep (futex)
//
// Each first says what it has done, and then looks at what the other has: in whatever order the
// steps fall, either the sleeper sees the ring or the ringer sees the sleeper. If no thread sleeps
// it costs no system call.
//
// Two may sleep at the same bell: a thread of the caller's that waits for completions anyway
// (kCaller), and the transport's own (kOwnThread). One is woken, the caller's first: it wants the
// bytes, and one change of threads is less than two. Hence a rule: a thread that has slept looks
// into all rings once more before it does anything else.
//
// While the caller's thread adds up what has come, it is awake and does not look; but it will be
// back in a moment. Waking the other thread for that moment costs more than it gains (two ranks on
// two cores: a third of the throughput), so kBack says "I will be back", and then no thread is
// woken. The thread that is not woken sees to it that the word is kept (shared_memory.cc).
//
// Thread-safety: any thread of any process. A peer that writes nonsense here can wake us for
// nothing or leave us asleep (until the next look, see the caller), and no more.
// Source: futex(2); eventcounts as in D. Vyukov's notes on lock-free algorithms.
#ifndef RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_DOORBELL_H_
#define RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "dist/transport/completion_queue.h"

namespace ringtail {

// Lies in shared memory, zero at first.
struct Doorbell {
  alignas(64) std::atomic<uint32_t> rung;
  std::atomic<uint32_t> state;  // bits of BellState: which thread sleeps
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

enum BellState : uint32_t { kCaller = 1, kOwnThread = 2, kBack = 4 };

inline uint32_t Rung(const Doorbell& bell) { return bell.rung.load(); }

// There is something in a ring.
void RingBell(Doorbell* bell);
// Wakes `who`, whichever other thread sleeps.
void WakeAtBell(Doorbell* bell, BellState who);

// Sleeps until the bell has been rung since `seen`, or `deadline`, or for no reason. One thread at
// a time as each kind of sleeper.
void SleepAtBell(Doorbell* bell, BellState who, uint32_t seen, Deadline deadline);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_SHARED_MEMORY_DOORBELL_H_
