// One agent as the launcher sees it: started here or over ssh, told its job, listened to.
// Thread-safety: none; callbacks come from the poll loop.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/launch/child_process.h"
#include "apps/launch/frames.h"
#include "apps/launch/line_splitter.h"
#include "apps/launch/out_queue.h"
#include "apps/launch/poll_loop.h"

namespace ringtail {

class AgentConnection {
 public:
  struct Callbacks {
    std::function<void(const Frame& frame)> on_frame;
    std::function<void(std::string_view line)> on_noise;  // of login shells and ssh
    std::function<void(const std::string& why)> on_end;   // once; nothing comes after it
  };

  // `command` starts an agent and connects to it: "ringtail_launch agent", "ssh HOST ...".
  static StatusOr<std::unique_ptr<AgentConnection>> Start(PollLoop* loop,
                                                          const std::vector<std::string>& command,
                                                          Callbacks callbacks);
  ~AgentConnection();
  AgentConnection(const AgentConnection&) = delete;
  AgentConnection& operator=(const AgentConnection&) = delete;

  void Send(AgentFrameKind kind, uint32_t number, std::string_view bytes = "");
  void PauseReading(bool pause);
  bool ended() const { return process_.output < 0; }
  void Kill();  // the agent or ssh: ranks end with it

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
  std::unique_ptr<OutQueue> input_;
  FrameReader reader_;
  bool greeted_ = false, paused_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_CONNECTION_H_
