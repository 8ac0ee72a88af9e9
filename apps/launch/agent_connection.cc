#include "apps/launch/agent_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/stop_signal.h"

namespace ringtail {
namespace {

constexpr size_t kReadBytes = 1 << 16;
constexpr size_t kMaxNoiseBytes = 1 << 20;  // before the greeting
constexpr int kEndMilliseconds = 5000;      // from the end of its output to the end of its process

}  // namespace

StatusOr<std::unique_ptr<AgentConnection>> AgentConnection::Start(
    PollLoop* loop, const std::vector<std::string>& command, Callbacks callbacks) {
  RT_ASSIGN_OR_RETURN(const ChildPipes process, StartChild(command, OwnEnvironment(), true));
  return std::unique_ptr<AgentConnection>(new AgentConnection(loop, process, std::move(callbacks)));
}

AgentConnection::AgentConnection(PollLoop* loop, ChildPipes process, Callbacks callbacks)
    : loop_(loop),
      process_(process),
      callbacks_(std::move(callbacks)),
      noise_(callbacks_.on_noise),
      to_agent_(std::make_unique<OutQueue>(loop, process.input)) {
  WatchOutput();
  loop_->Watch(process_.errors, POLLIN, [this] { OnErrors(); });
}

AgentConnection::~AgentConnection() {
  if (!ended()) {
    Kill();
    End("the launcher has ended");
  }
}

void AgentConnection::Send(const AgentMessage& message) {
  if (!ended()) to_agent_->Append(EncodeAgentMessage(message));
}

void AgentConnection::PauseReading(bool pause) {
  if (ended() || pause == std::exchange(paused_, pause)) return;
  if (pause) {
    loop_->Unwatch(process_.output);
  } else {
    WatchOutput();
  }
}

void AgentConnection::WatchOutput() {
  loop_->Watch(process_.output, POLLIN, [this] { OnOutput(); });
}

void AgentConnection::Kill() {
  if (process_.pid > 0) kill(process_.pid, SIGKILL);
}

void AgentConnection::OnErrors() {
  bool ended = false;
  noise_.Add(ReadAvailable(process_.errors, kReadBytes, &ended));
  if (ended) CloseErrors();
}

void AgentConnection::CloseErrors() {
  if (process_.errors < 0) return;
  loop_->Unwatch(process_.errors);
  close(std::exchange(process_.errors, -1));
}

void AgentConnection::OnOutput() {
  bool over = false;
  reader_.Add(ReadAvailable(process_.output, kReadBytes, &over));
  if (!greeted_) {
    const auto before = reader_.TakeGreeting();
    if (before) noise_.Add(*before);
    greeted_ = before.has_value();
    if (reader_.size() > kMaxNoiseBytes && !greeted_) {
      Kill();
      return End("printed more than 1 MiB without the greeting of an agent");
    }
  }
  while (greeted_ && !ended()) {
    const auto message = reader_.Next();
    if (!message.ok()) {
      Kill();
      return End(message.status().message());
    }
    if (!*message) break;
    callbacks_.on_message(**message);
  }
  if (over && !ended()) End("");
}

// Collects the process and reports its end: `why`, or how the process ended if that is empty.
void AgentConnection::End(const std::string& why) {
  loop_->Unwatch(process_.output);
  close(std::exchange(process_.output, -1));
  to_agent_.reset();
  close(std::exchange(process_.input, -1));
  if (!WaitForEnd(process_.pid, kEndMilliseconds)) Kill();
  int status = 0;
  while (waitpid(process_.pid, &status, 0) < 0 && errno == EINTR) {
  }
  process_.pid = -1;
  if (!greeted_) noise_.Add(reader_.TakeAll());
  if (process_.errors >= 0) OnErrors();
  CloseErrors();
  noise_.End();
  if (!why.empty()) return callbacks_.on_end(why);
  callbacks_.on_end(WIFSIGNALED(status)
                        ? fmt::format("was ended by {}", SignalName(WTERMSIG(status)))
                        : fmt::format("exited with {}", WEXITSTATUS(status)));
}

}  // namespace ringtail
