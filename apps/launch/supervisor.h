// The launcher at work: agents on all hosts, ranks under them, one thread that waits for whatever
// comes next.
//
//   starting ──all agents greet──> running ──a rank fails──> grace ──> SIGTERM ──> SIGKILL ──> gone
//                                                     each after --timeout-kill; at once, by a
//                                                     second SIGINT, SIGTERM or SIGHUP: SIGKILL
//
// The others get their time of grace because they find out by themselves, say what they know, and
// exit with 75. How the first cause is found: rank_end.h. Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_SUPERVISOR_H_
#define RINGTAIL_APPS_LAUNCH_SUPERVISOR_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/launch/agent_connection.h"
#include "apps/launch/job.h"
#include "apps/launch/launch_options.h"
#include "apps/launch/poll_loop.h"
#include "apps/launch/rank_end.h"
#include "apps/launch/rank_output.h"
#include "core/stop_signal.h"

namespace ringtail {

class Supervisor {
 public:
  explicit Supervisor(LaunchOptions options);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int Run();  // exit code

 private:
  enum class Phase { kStarting, kRunning, kGrace, kTerminating, kKilling, kGivenUp };
  using Clock = PollLoop::Clock;

  struct Host {
    HostSlots slots;
    int first_rank = 0;
    int port = -1;  // that its agent found free; -1: it has not greeted yet
    std::unique_ptr<AgentConnection> agent;
  };

  int Supervise();
  Status StartAgents();
  std::vector<std::string> AgentCommand(const Host& host) const;
  void Step();
  template <typename Done>
  void StepUntil(const Done& done);

  void OnFrame(Host* host, const Frame& frame);
  void OnHostEnd(Host* host, const std::string& why);
  void OnExited(int rank, const std::string& bytes);
  void OnRankEnd(int rank);
  void OnSignals();
  void OnDeadline();

  void SendJobs();
  void SignalAll(int signal);
  void EnterPhase(Phase phase, Clock::duration time);
  void FailToStart(const std::string& why);
  void Say(const std::string& message);
  bool AllGreeted() const;
  bool RanksEnded() const { return running_ == 0; }
  int FinishAndReport();

  const LaunchOptions options_;
  const Clock::duration timeout_kill_;
  PollLoop loop_;
  RankOutput output_;
  std::vector<RankEnd> ends_;  // by rank
  std::vector<int> asked_;     // signals that the user has sent
  StopRule stop_rule_;         // what another SIGINT, SIGTERM or SIGHUP means
  int running_ = 0, ended_ = 0, stops_ = 0, signals_ = -1;
  Phase phase_ = Phase::kStarting;
  std::optional<Clock::time_point> deadline_;
  std::optional<std::string> start_failure_;
  std::vector<Host> hosts_;  // last: their agents end first
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_SUPERVISOR_H_
