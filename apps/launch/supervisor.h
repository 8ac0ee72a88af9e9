// Supervisor: launches the ranks of a job and watches over them until all have ended. One agent per
// host runs the ranks; one thread here waits for messages, signals and deadlines.
//
//   starting ──all agents greet──> running ──a rank fails──> grace ──> SIGTERM ──> SIGKILL ──> gone
//                                                     each after --timeout-kill; at once, by a
//                                                     second SIGINT, SIGTERM or SIGHUP: SIGKILL
//
// The other ranks get a period of grace because they detect the failure by themselves, report it,
// and exit with 75. rank_end.h finds the first cause.
//
// With --no-kill only the end of rank 0 leads to that, also a good one: ranks that are still there
// when the job is done are stopped or hang.
//
// A program that uses Supervisor calls RunOwnVerb first thing in main, because agents are processes
// of the same program. Thread-safety: none; for processes with one thread.
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
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Returns the exit code for this program, after it has printed why if that is not 0. Once only.
  int Run();

 private:
  enum class Phase { kStarting, kRunning, kGrace, kTerminating, kKilling, kGivenUp };
  using Clock = PollLoop::Clock;

  struct Host {
    HostSlots slots;
    int first_rank = 0;
    int port = -1;  // a free one; -1: the agent has not sent its greeting yet
    std::unique_ptr<AgentConnection> agent;
  };

  int Supervise();
  Status StartAgents();
  std::vector<std::string> AgentCommand(const Host& host) const;
  void Step();
  template <typename Done>
  void StepUntil(const Done& done);

  void OnMessage(Host* host, const AgentMessage& message);
  void OnRankMessage(int rank, const AgentMessage& message);
  void OnHostEnd(Host* host, const std::string& why);
  void OnExited(int rank, const RankExited& exited);
  void OnRankEnd(int rank);
  void SayFailure(int rank, const std::string& consequence);
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
  std::vector<int> asked_;     // signals from the user
  StopRule stop_rule_;         // the meaning of another SIGINT, SIGTERM or SIGHUP
  int running_ = 0, ended_ = 0, stops_ = 0, signals_ = -1;
  Phase phase_ = Phase::kStarting;
  std::optional<Clock::time_point> deadline_;
  std::optional<std::string> start_failure_;
  std::vector<Host> hosts_;  // last: their agents end first
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_SUPERVISOR_H_
