#include "apps/launch/agent.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "apps/launch/agent_ranks.h"
#include "apps/launch/child_process.h"
#include "apps/launch/frames.h"
#include "apps/launch/signals.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

using Clock = PollLoop::Clock;
constexpr size_t kReadBytes = 1 << 16;
constexpr int kReapSeconds = 5;
constexpr std::chrono::seconds kLastWords{10};  // for the launcher to take what it was told

class Agent {
 public:
  Agent() : launcher_(&loop_, STDOUT_FILENO), ranks_(&loop_, &launcher_) {}

  int Run() {
    signals_ = ReceiveSignals({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU});
    AdoptOrphans();
    loop_.Watch(signals_, POLLIN, [this] { OnSignal(); });
    loop_.Watch(STDIN_FILENO, POLLIN, [this] { OnInput(); });
    const auto port = FindFreePort();
    launcher_.Append(kAgentGreeting);
    launcher_.Append(EncodeFrame(AgentFrameKind::kHello, port.ok() ? *port : 0));
    while (!winding_up_ && !(started_ && ranks_.AllEnded())) Step(std::nullopt);
    WindUp();
    return failed_ ? 1 : 0;
  }

 private:
  void Step(std::optional<Clock::time_point> deadline) {
    ranks_.PauseReading(launcher_.full());
    loop_.RunOnce(deadline);
    if (launcher_.broken()) winding_up_ = true;
  }

  // First asks, then kills; without ranks that run, only collects what they have left behind.
  void WindUp() {
    if (winding_up_) {
      loop_.Unwatch(STDIN_FILENO);
      ranks_.Signal(SIGTERM);
      ranks_.Signal(SIGCONT);  // a stopped process does not see the first one
      StepUntil(std::chrono::seconds(kWindUpSeconds), [this] { return ranks_.AllEnded(); });
      ranks_.Signal(SIGKILL);
      StepUntil(std::chrono::seconds(kReapSeconds), [this] { return ranks_.AllEnded(); });
    }
    EndAllChildren({}, kReapSeconds);
    StepUntil(kLastWords, [this] { return launcher_.empty(); });
  }

  template <typename Done>
  void StepUntil(Clock::duration limit, const Done& done) {
    const Clock::time_point deadline = Clock::now() + limit;
    while (!done() && Clock::now() < deadline) Step(deadline);
  }

  void OnSignal() {
    while (const int signal = NextSignal(signals_)) {
      if (signal == SIGCHLD) {
        ranks_.CollectEnded();
      } else if (started_) {
        // Whoever signals every process of a job means its ranks. When it has waited for them long
        // enough says the launcher.
        ranks_.Signal(signal);
      } else {
        winding_up_ = true;
      }
    }
  }

  void OnInput() {
    bool ended = false;
    input_.Add(ReadAvailable(STDIN_FILENO, kReadBytes, &ended));
    while (!winding_up_) {
      auto frame = input_.Next();
      if (!frame.ok()) return Fail(frame.status());
      if (!*frame) break;
      OnFrame(**frame);
    }
    if (ended) winding_up_ = true;
  }

  void OnFrame(const Frame& frame) {
    if (frame.kind == AgentFrameKind::kSignal) return ranks_.Signal(static_cast<int>(frame.number));
    if (frame.kind != AgentFrameKind::kJob || started_) {
      return Fail(DataLoss("the launcher said what it may not say"));
    }
    const auto job = DecodeJob(frame.bytes);
    const Status started = job.ok() ? ranks_.Start(*job) : job.status();
    started_ = true;
    if (!started.ok()) Fail(started);
  }

  void Fail(const Status& status) {
    launcher_.Append(EncodeFrame(AgentFrameKind::kFailure, 0, status.message()));
    failed_ = winding_up_ = true;
  }

  PollLoop loop_;
  OutQueue launcher_;
  AgentRanks ranks_;
  FrameReader input_;
  int signals_ = -1;
  bool started_ = false, winding_up_ = false, failed_ = false;
};

}  // namespace

int RunAgent() {
  OpenStandardFiles();
  SetThreadName("agent");
  return Agent().Run();
}

}  // namespace ringtail
