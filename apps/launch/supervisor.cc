#include "apps/launch/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "apps/exit_code.h"
#include "apps/launch/go_on.h"
#include "apps/launch/signals.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr std::chrono::seconds kStartLimit{30};  // for all agents to greet
constexpr std::chrono::seconds kKillLimit{10};   // from SIGKILL to the end of an agent
constexpr std::chrono::seconds kHurry{2};        // for last words, if the user has told us twice
constexpr int kReapSeconds = 5;
constexpr char kSelf[] = "ringtail_launch";

}  // namespace

Supervisor::Supervisor(LaunchOptions options)
    : options_(std::move(options)),
      timeout_kill_(std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(options_.timeout_kill_s))),
      output_(&loop_, options_.world()),
      ends_(options_.world()) {
  int first_rank = 0;
  for (const HostSlots& slots : options_.hosts) {
    for (int rank = first_rank; rank < first_rank + slots.slots; ++rank) {
      ends_[rank].host = slots.host;
    }
    hosts_.push_back({.slots = slots, .first_rank = first_rank});
    first_rank += slots.slots;
  }
}

int Supervisor::Run() {
  UnbindThread();  // agents inherit our cores, and OMP_PROC_BIND may have bound us to one
  const std::set<pid_t> not_ours = Children();  // of the program that we were before an exec
  signals_ = ReceiveSignals({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU});
  AdoptOrphans();
  loop_.Watch(signals_, POLLIN, [this] { OnSignals(); });
  const int exit_code = Supervise();
  for (Host& host : hosts_) host.agent.reset();
  EndAllChildren(not_ours, kReapSeconds);
  return exit_code;
}

int Supervisor::Supervise() {
  if (!options_.output_dir.empty()) {
    const Status opened = output_.OpenFiles(options_.output_dir);
    if (!opened.ok()) FailToStart(opened.message());
  }
  if (!start_failure_) {
    const Status started = StartAgents();
    if (!started.ok()) FailToStart(started.message());
  }
  EnterPhase(Phase::kStarting, kStartLimit);
  StepUntil([this] { return AllGreeted() || start_failure_ || !asked_.empty(); });
  if (!start_failure_ && asked_.empty()) {
    SendJobs();
    StepUntil([this] { return RanksEnded() || start_failure_; });
  }
  return FinishAndReport();
}

Status Supervisor::StartAgents() {
  for (Host& host : hosts_) {
    AgentConnection::Callbacks callbacks = {
        .on_frame = [this, &host](const Frame& frame) { OnFrame(&host, frame); },
        .on_noise = [this, &host](std::string_view line) { output_.Say(host.slots.host, line); },
        .on_end = [this, &host](const std::string& why) { OnHostEnd(&host, why); }};
    auto agent = AgentConnection::Start(&loop_, AgentCommand(host), std::move(callbacks));
    if (!agent.ok()) return agent.status();
    host.agent = *std::move(agent);
  }
  return OkStatus();
}

std::vector<std::string> Supervisor::AgentCommand(const Host& host) const {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  if (!options_.over_ssh) return {self, "agent"};
  std::vector<std::string> command = options_.ssh;
  command.push_back(host.slots.host);
  command.push_back(fmt::format("exec {} agent", ShellWord(self)));  // ssh hands it to a shell
  return command;
}

void Supervisor::SendJobs() {
  const auto token = NewToken();
  if (!token.ok()) return FailToStart(token.status().message());
  Job job = {.world = options_.world(),
             .master_address = options_.over_ssh ? hosts_[0].slots.host : "127.0.0.1",
             .master_port = options_.port == 0 ? hosts_[0].port : options_.port,
             .token = *token,
             .folder = std::filesystem::current_path().string(),
             .bind = options_.bind,
             .remote = options_.over_ssh,
             .environment = options_.environment,
             .program = options_.program};
  if (!job.remote) job.environment = MergeEnvironments(OwnEnvironment(), options_.environment);
  running_ = job.world;
  for (RankEnd& end : ends_) end.kind = RankEnd::Kind::kRunning;
  phase_ = Phase::kRunning;
  deadline_.reset();
  for (Host& host : hosts_) {
    job.first_rank = host.first_rank;
    job.local_world = host.slots.slots;
    host.agent->Send(AgentFrameKind::kJob, 0, EncodeJob(job));
  }
}

void Supervisor::Step() {
  for (Host& host : hosts_) {
    if (host.agent) host.agent->PauseReading(output_.full());
  }
  loop_.RunOnce(deadline_);
  if (deadline_ && Clock::now() >= *deadline_) OnDeadline();
}

template <typename Done>
void Supervisor::StepUntil(const Done& done) {
  while (!done()) Step();
}

bool Supervisor::AllGreeted() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.port >= 0; });
}

void Supervisor::OnFrame(Host* host, const Frame& frame) {
  const int rank = static_cast<int>(frame.number);
  const bool of_rank = rank >= host->first_rank && rank < host->first_rank + host->slots.slots &&
                       ends_[rank].kind == RankEnd::Kind::kRunning;
  if (frame.kind == AgentFrameKind::kHello) {
    host->port = rank;
  } else if (frame.kind == AgentFrameKind::kFailure) {
    FailToStart(fmt::format("host {}: {}", host->slots.host, frame.bytes));
  } else if (!of_rank) {
    return;  // of a rank that is counted as lost already
  } else if (frame.kind == AgentFrameKind::kStarted) {
    ends_[rank].pid = std::atoll(frame.bytes.c_str());
  } else if (frame.kind == AgentFrameKind::kExited) {
    OnExited(rank, frame.bytes);
  } else {
    output_.Add(rank, frame.kind == AgentFrameKind::kErrors, frame.bytes);
  }
}

void Supervisor::OnExited(int rank, const std::string& bytes) {
  RankEnd& end = ends_[rank];
  int status = 0;
  std::istringstream(bytes) >> status >> end.peak_kib >> end.memory_kills;
  end.kind = WIFSIGNALED(status) ? RankEnd::Kind::kSignalled : RankEnd::Kind::kExited;
  end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  OnRankEnd(rank);
}

void Supervisor::OnHostEnd(Host* host, const std::string& why) {
  if (phase_ == Phase::kStarting) {
    return FailToStart(
        fmt::format("cannot start an agent on host {}: it {}", host->slots.host, why));
  }
  bool any = false;
  for (int rank = host->first_rank; rank < host->first_rank + host->slots.slots; ++rank) {
    if (ends_[rank].ended()) continue;
    if (!std::exchange(any, true) && !start_failure_) {
      Say(fmt::format("the agent on host {} {}", host->slots.host, why));
    }
    ends_[rank].kind = RankEnd::Kind::kHostLost;
    OnRankEnd(rank);
  }
}

void Supervisor::OnRankEnd(int rank) {
  RankEnd& end = ends_[rank];
  output_.End(rank);
  end.order = ++ended_;
  end.ended_by_launcher = phase_ >= Phase::kTerminating;
  --running_;
  if (end.good() || phase_ != Phase::kRunning) return;
  if (running_ > 0 && !EndedAsAsked(end, asked_)) {
    Say(fmt::format("{} {}; the other ranks get {:g} s to end by themselves",
                    NameOfRank(ends_, rank), DescribeEnd(end), options_.timeout_kill_s));
  }
  EnterPhase(Phase::kGrace, timeout_kill_);
}

void Supervisor::OnDeadline() {
  switch (phase_) {
    case Phase::kStarting: {
      std::string silent;
      for (const Host& host : hosts_) {
        if (host.port < 0) silent += " " + host.slots.host;
      }
      return FailToStart(fmt::format("no answer within {} s from:{}", kStartLimit.count(), silent));
    }
    case Phase::kGrace:
      EnterPhase(Phase::kTerminating, timeout_kill_);
      SignalAll(SIGTERM);
      return SignalAll(SIGCONT);  // a stopped process would not see it
    case Phase::kTerminating:
      EnterPhase(Phase::kKilling, kKillLimit);
      return SignalAll(SIGKILL);
    case Phase::kKilling:  // not even that: the host, or the way to it, is gone
      phase_ = Phase::kGivenUp;
      deadline_.reset();
      for (Host& host : hosts_) host.agent.reset();  // its ranks count as lost
      return;
    case Phase::kRunning:
    case Phase::kGivenUp:
      return;
  }
}

void Supervisor::OnSignals() {
  while (int signal = NextSignal(signals_)) {
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
      const StopRule::Meaning meaning = stop_rule_.Next(signal, Clock::now());
      if (meaning == StopRule::Meaning::kNothingNew) continue;
      ++stops_;
      asked_.push_back(signal);
      if (meaning == StopRule::Meaning::kEndNow && phase_ != Phase::kGivenUp) {
        EnterPhase(Phase::kKilling, kKillLimit);
        signal = SIGKILL;
        output_.DropWhatDoesNotFit();
      }
    } else {
      asked_.push_back(signal);
    }
    SignalAll(signal);
  }
}

void Supervisor::SignalAll(int signal) {
  for (Host& host : hosts_) {
    if (host.agent) host.agent->Send(AgentFrameKind::kSignal, signal);
  }
}

void Supervisor::EnterPhase(Phase phase, Clock::duration time) {
  phase_ = phase;
  deadline_ = Clock::now() + time;
}

void Supervisor::FailToStart(const std::string& why) {
  if (!start_failure_) start_failure_ = why;
}

void Supervisor::Say(const std::string& message) { output_.Say(kSelf, message); }

int Supervisor::FinishAndReport() {
  RankVerdict verdict = Judge(ends_, asked_);
  if (start_failure_) {
    verdict = {kExitFailure, -1, *start_failure_};
    for (Host& host : hosts_) host.agent.reset();  // whoever has begun is ended
  } else if (phase_ == Phase::kStarting) {
    verdict = {kExitSignalBase + asked_.front(), -1, "stopped before the ranks were started"};
    for (Host& host : hosts_) host.agent.reset();
  } else {
    EnterPhase(Phase::kKilling, kKillLimit);  // agents end by themselves, or are made to
    StepUntil([this] {
      return std::all_of(hosts_.begin(), hosts_.end(),
                         [](const Host& host) { return !host.agent || host.agent->ended(); });
    });
    if (!verdict.text.empty()) Say("how the ranks ended:\n" + EndTable(ends_));
  }
  if (!verdict.text.empty()) Say(verdict.text);
  // Not where the same would only fail again: a wrong flag, a full disk, a NaN.
  const bool lost = phase_ != Phase::kStarting && verdict.exit_code >= kExitLostPeer;
  const std::string go_on = CommandToGoOn(options_.own_words, options_.program);
  if (lost && !start_failure_ && !go_on.empty()) Say("go on with: " + go_on);
  // Whoever reads our output takes the time it needs, unless told otherwise.
  const int stops = stops_;
  deadline_.reset();
  if (stops > 1) EnterPhase(Phase::kGivenUp, kHurry);
  StepUntil([&] {
    return output_.empty() || stops_ > stops || (deadline_ && Clock::now() >= *deadline_);
  });
  return output_.file_error() && verdict.exit_code == 0 ? kExitFailure : verdict.exit_code;
}

}  // namespace ringtail
