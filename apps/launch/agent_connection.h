// The launcher's connection to one agent: starts it, here or over ssh, sends it messages and
// receives its own. Thread-safety: none; callbacks come from the poll loop.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/launch/agent_messages.h"
#include "apps/launch/child_process.h"
#include "apps/launch/line_splitter.h"
#include "apps/launch/out_queue.h"
#include "apps/launch/poll_loop.h"

namespace ringtail {

class AgentConnection {
 public:
  struct Callbacks {
    std::function<void(const AgentMessage& message)> on_message;
    std::function<void(std::string_view line)> on_noise;  // text of login shells and ssh
    std::function<void(const std::string& why)> on_end;   // once; the last callback
  };

  // `command` starts an agent and connects to it: "ringtail_launch agent", "ssh HOST ...".
  static StatusOr<std::unique_ptr<AgentConnection>> Start(PollLoop* loop,
                                                          const std::vector<std::string>& command,
                                                          Callbacks callbacks);
  ~AgentConnection();
  AgentConnection(const AgentConnection&) = delete;
  AgentConnection& operator=(const AgentConnection&) = delete;

  void Send(const AgentMessage& message);
  void PauseReading(bool pause);
  bool ended() const { return process_.output < 0; }
  void Kill();  // the agent or ssh; its ranks end with it

 private:
  AgentConnection(PollLoop* loop, ChildPipes process, Callbacks callbacks);
  void WatchOutput();
  void OnOutput();
  void OnErrors();
  void End(const std::string& why);
  void CloseErrors();

  PollLoop* const loop_;
  ChildPipes process_;
  Callbacks callbacks_;
  LineSplitter noise_;
  std::unique_ptr<OutQueue> to_agent_;
  AgentMessageReader reader_;
  bool greeted_ = false, paused_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_
