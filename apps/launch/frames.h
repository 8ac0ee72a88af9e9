// What the launcher and its agents say to one another over an agent's standard input and output,
// which may be an ssh connection:
//
//   launcher                          agent (one per host)
//     |   <----- greeting, kHello -----  |   its version, a free port
//     |   ------ kJob -------------->    |   who the ranks are, program, environment, token
//     |   <----- kStarted, kOutput, -----|
//     |          kErrors, kExited        |
//     |   ------ kSignal ----------->    |   for all ranks of this host
//     |   ------ (end of input) ---->    |   the launcher is gone: end them
//
// The greeting is a line of text that is looked for in all that a login shell may print before.
// Then frames: one byte kind, rank or number (u32), length (u32), bytes. Little-endian. A length
// above the limit ends the conversation. Nothing here is secret from the two hosts' user; the
// token goes this way because command lines can be read by everybody on a host.
// Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_FRAMES_H_
#define RINGTAIL_APPS_LAUNCH_FRAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace ringtail {

inline constexpr char kAgentGreeting[] = "ringtail-agent-1\n";
inline constexpr size_t kMaxFrameBytes = 16 << 20;  // an environment and a command line

enum class AgentFrameKind : uint8_t {
  kHello = 1,  // number: a port that was free on the agent's host
  kJob,        // bytes: Job (job.h)
  kStarted,    // number: rank; bytes: process id
  kOutput,     // number: rank; bytes: of its standard output
  kErrors,     // number: rank; bytes: of its standard error
  kExited,     // number: rank; bytes: "wait status, peak KiB, processes ended for lack of memory"
  kFailure,    // bytes: why the agent cannot do its job
  kSignal,     // number: the signal to send to all ranks
};

struct Frame {
  AgentFrameKind kind = AgentFrameKind::kHello;
  uint32_t number = 0;
  std::string bytes;
};

std::string EncodeFrame(AgentFrameKind kind, uint32_t number, std::string_view bytes = "");

class FrameReader {
 public:
  void Add(std::string_view bytes) { bytes_ += bytes; }
  // The next whole frame; nothing if more bytes are needed; an error if this is no conversation.
  StatusOr<std::optional<Frame>> Next();
  // What comes before the greeting, taken away with it; nothing while there is no greeting.
  std::optional<std::string> TakeGreeting();
  size_t size() const { return bytes_.size(); }
  std::string TakeAll() { return std::exchange(bytes_, ""); }

 private:
  std::string bytes_;
};

// Texts one after the other, each closed by a zero byte (which none of them has).
std::string JoinTexts(const std::vector<std::string>& texts);
std::vector<std::string> SplitTexts(std::string_view joined);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_FRAMES_H_
