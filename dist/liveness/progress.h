// Progress: how far this rank's training has come, as its own threads say it.
//
//   progress.BeginStep(17);
//   progress.Enter(Phase::kForward);            the training thread, at each change
//   progress.Tick();                            any thread, whenever something has been done
//   { const ScopedPhase exchange(&progress, Phase::kExchange);  communicator.Barrier(); }
//
// That a process answers on its sockets says nothing of its training: the network's own threads do
// that, also while the training thread hangs. So what the other ranks are told is a counter that
// only work moves: each of these calls adds one to it.
//
// kExchange and kBlocked are for whatever waits for other ranks. A rank that waits is never to blame for not
// moving, so that everything else has to be left outside of it; and a wait for others that is not
// inside of it makes the waiting rank look like the one that hangs.
//
// Thread-safety: Tick and Read from any thread, the rest from the training thread.
// Cost: one atomic operation.
#ifndef RINGTAIL_DIST_LIVENESS_PROGRESS_H_
#define RINGTAIL_DIST_LIVENESS_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <string_view>

namespace ringtail {

enum class Phase : uint8_t {
  kSetUp,
  kDataWait,
  kForward,
  kBackward,
  kExchange,  // waits for other ranks
  kUpdate,
  kEvaluation,
  kCheckpoint,
  kBlocked,  // waits for a bound of asynchronous training, or for a server's answer
};
inline constexpr Phase kLastPhase = Phase::kBlocked;

// A rank that waits for others is not to blame for not moving.
inline bool WaitsForOthers(Phase phase) {
  return phase == Phase::kExchange || phase == Phase::kBlocked;
}

std::string_view PhaseName(Phase phase);  // "backward"

class Progress {
 public:
  struct State {
    Phase phase = Phase::kSetUp;
    uint64_t counter = 0;
    uint64_t step = 0;
  };

  void BeginStep(uint64_t step) {
    step_.store(step, std::memory_order_relaxed);
    Tick();
  }
  void Enter(Phase phase) {
    uint64_t old = word_.load(std::memory_order_relaxed);
    uint64_t next = 0;
    do {
      next = ((old >> kPhaseBits) + 1) << kPhaseBits | static_cast<uint64_t>(phase);
    } while (!word_.compare_exchange_weak(old, next, std::memory_order_relaxed));
  }
  void Tick() { word_.fetch_add(uint64_t{1} << kPhaseBits, std::memory_order_relaxed); }

  State Read() const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    return {.phase = static_cast<Phase>(word & ((1 << kPhaseBits) - 1)),
            .counter = word >> kPhaseBits,
            .step = step_.load(std::memory_order_relaxed)};
  }

 private:
  static constexpr int kPhaseBits = 8;
  // Counter and phase in one word: a reader that saw the new phase beside the old counter would
  // charge a long exchange to the phase that follows it.
  std::atomic<uint64_t> word_{0};
  std::atomic<uint64_t> step_{0};
};

// In `phase` for as long as it lives; then again in the one before.
class ScopedPhase {
 public:
  ScopedPhase(Progress* progress, Phase phase)
      : progress_(progress), before_(progress->Read().phase) {
    progress_->Enter(phase);
  }
  ~ScopedPhase() { progress_->Enter(before_); }
  ScopedPhase(const ScopedPhase&) = delete;
  ScopedPhase& operator=(const ScopedPhase&) = delete;

 private:
  Progress* const progress_;
  const Phase before_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_LIVENESS_PROGRESS_H_
