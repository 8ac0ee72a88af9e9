#include "apps/launch/agent/agent.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "apps/launch/agent/agent_ranks.h"
#include "apps/launch/agent_messages.h"
#include "apps/launch/child_process.h"
#include "apps/launch/free_port.h"
#include "apps/launch/signals.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

using Clock = PollLoop::Clock;
constexpr size_t kInputBytes = 1 << 16;
constexpr int kReapSeconds = 5;
constexpr std::chrono::seconds kFlushLimit{10};  // for the launcher to read the last messages

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
    AgentMessage hello;
    hello.set_free_port(port.ok() ? *port : 0);
    launcher_.Append(EncodeAgentMessage(hello));
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

  // Ends the ranks that still run, first by SIGTERM and then by SIGKILL, and the processes that
  // ranks have left behind.
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
    StepUntil(kFlushLimit, [this] { return launcher_.empty(); });
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
        // A signal to every process of a job is meant for its ranks. The launcher decides when they
        // have had enough time.
        ranks_.Signal(signal);
      } else {
        winding_up_ = true;
      }
    }
  }

  void OnInput() {
    bool ended = false;
    input_.Add(ReadAvailable(STDIN_FILENO, kInputBytes, &ended));
    while (!winding_up_) {
      const auto message = input_.Next();
      if (!message.ok()) return Fail(message.status());
      if (!*message) break;
      OnMessage(**message);
    }
    if (ended) winding_up_ = true;
  }

  void OnMessage(const AgentMessage& message) {
    if (message.has_signal()) return ranks_.Signal(message.signal());
    if (!message.has_job() || started_) {
      return Fail(DataLoss(fmt::format("unexpected message from the launcher (field {})",
                                       static_cast<int>(message.kind_case()))));
    }
    const Status valid = CheckJob(message.job());
    const Status started = valid.ok() ? ranks_.Start(message.job()) : valid;
    started_ = true;
    if (!started.ok()) Fail(started);
  }

  void Fail(const Status& status) {
    AgentMessage message;
    message.set_failure(status.message());
    launcher_.Append(EncodeAgentMessage(message));
    failed_ = winding_up_ = true;
  }

  PollLoop loop_;
  OutQueue launcher_;
  AgentRanks ranks_;
  AgentMessageReader input_;
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
