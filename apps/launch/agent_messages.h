// The conversation of the launcher and an agent over the agent's standard input and output, which
// may be an ssh connection:
//
//   launcher                          agent (one per host)
//     |   <--- greeting, free_port ----  |
//     |   ------ job -------------->     |   the ranks, their program, environment and token
//     |   <----- started, printed, ------|
//     |          exited                  |
//     |   ------ signal ----------->     |   for all ranks of this host
//     |   ------ (end of input) --->     |   the launcher has ended: end the ranks
//
// The greeting is a line of text; the launcher skips everything that a login shell prints before
// it. Messages (launch.proto) follow, each behind its length in bytes (u32, little-endian). A
// length above kMaxMessageBytes ends the conversation. The token travels this way because every
// user of a host can read command lines. Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_AGENT_MESSAGES_H_
#define RINGTAIL_APPS_LAUNCH_AGENT_MESSAGES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/launch/launch.pb.h"
#include "core/status.h"

namespace ringtail {

// The number grows when launchers and agents of different versions would misunderstand each other.
inline constexpr char kAgentGreeting[] = "ringtail-agent-2\n";
inline constexpr size_t kMaxMessageBytes = 16 << 20;  // an environment and a command line

std::string EncodeAgentMessage(const AgentMessage& message);

class AgentMessageReader {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // The next complete message, or nothing if more bytes are needed. DataLoss if the bytes are not
  // messages of a launcher or an agent.
  StatusOr<std::optional<AgentMessage>> Next();
  // Removes the greeting and returns the bytes before it; nothing while there is no greeting.
  std::optional<std::string> TakeGreeting();
  size_t size() const { return bytes_.size(); }
  std::string TakeAll() { return std::exchange(bytes_, ""); }

 private:
  std::string bytes_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_AGENT_MESSAGES_H_
