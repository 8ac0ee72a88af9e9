#include "apps/launch/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/exit_code.h"
#include "apps/launch/resume_command.h"
#include "apps/launch/signals.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr std::chrono::seconds kStartLimit{30};  // for all agents to greet
constexpr std::chrono::seconds kKillLimit{10};   // from SIGKILL to the end of an agent
constexpr std::chrono::seconds kFlushLimit{2};   // for the last output, after a second signal
constexpr int kReapSeconds = 5;

// The number of the rank that `message` is about; -1: of no rank.
int RankOf(const AgentMessage& message) {
  switch (message.kind_case()) {
    case AgentMessage::kStarted:
      return message.started().rank();
    case AgentMessage::kPrinted:
      return message.printed().rank();
    case AgentMessage::kExited:
      return message.exited().rank();
    default:
      return -1;
  }
}

}  // namespace

Supervisor::Supervisor(LaunchOptions options)
    : options_(std::move(options)),
      timeout_kill_(std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(options_.timeout_kill_s))),
      output_(&loop_, options_.world(), options_.own_name, options_.on_line_of_rank_0),
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

Supervisor::~Supervisor() {
  if (signals_ >= 0) close(signals_);
}

int Supervisor::Run() {
  UnbindThread();  // agents inherit our cores, and OMP_PROC_BIND may have bound us to one
  const std::set<pid_t> not_ours =
      Children();  // of the program that this process was before an exec
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
        .on_message = [this, &host](const AgentMessage& message) { OnMessage(&host, message); },
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
  AgentMessage message;
  LaunchJob& job = *message.mutable_job();
  job.set_world(options_.world());
  job.set_master_address(options_.over_ssh ? hosts_[0].slots.host : "127.0.0.1");
  job.set_master_port(options_.port == 0 ? hosts_[0].port : options_.port);
  job.set_token(*token);
  job.set_folder(std::filesystem::current_path().string());
  job.set_bind(options_.bind);
  job.set_remote(options_.over_ssh);
  std::vector<std::string> environment = options_.environment;
  if (!job.remote()) environment = MergeEnvironments(OwnEnvironment(), environment);
  job.mutable_environment()->Assign(environment.begin(), environment.end());
  job.mutable_program()->Assign(options_.program.begin(), options_.program.end());
  running_ = job.world();
  for (RankEnd& end : ends_) end.kind = RankEnd::Kind::kRunning;
  phase_ = Phase::kRunning;
  deadline_.reset();
  for (Host& host : hosts_) {
    job.set_first_rank(host.first_rank);
    job.set_local_world(host.slots.slots);
    host.agent->Send(message);
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

void Supervisor::OnMessage(Host* host, const AgentMessage& message) {
  if (message.has_free_port()) {
    host->port = message.free_port();
  } else if (message.has_failure()) {
    FailToStart(fmt::format("host {}: {}", host->slots.host, message.failure()));
  } else {
    const int rank = RankOf(message);
    const bool runs_here = rank >= host->first_rank &&
                           rank < host->first_rank + host->slots.slots &&
                           ends_[rank].kind == RankEnd::Kind::kRunning;
    if (runs_here) OnRankMessage(rank, message);  // else the rank is counted as lost already
  }
}

void Supervisor::OnRankMessage(int rank, const AgentMessage& message) {
  if (message.has_started()) {
    ends_[rank].pid = message.started().pid();
  } else if (message.has_exited()) {
    OnExited(rank, message.exited());
  } else {
    output_.Add(rank, message.printed().on_standard_error(), message.printed().bytes());
  }
}

void Supervisor::OnExited(int rank, const RankExited& exited) {
  RankEnd& end = ends_[rank];
  const int status = exited.wait_status();
  end.peak_kib = exited.peak_kib();
  end.memory_kills = exited.memory_kills();
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
  const bool job_is_done = options_.no_kill && rank == 0;
  if (phase_ != Phase::kRunning || (end.good() && !job_is_done)) return;
  if (!end.good() && !EndedAsAsked(end, asked_)) {
    if (options_.no_kill && rank != 0) return SayFailure(rank, "the other ranks continue");
    SayFailure(rank, fmt::format("the other ranks get {:g} s to end by themselves",
                                 options_.timeout_kill_s));
  }
  EnterPhase(Phase::kGrace, timeout_kill_);
}

void Supervisor::SayFailure(int rank, const std::string& consequence) {
  if (running_ == 0) return;
  Say(fmt::format("{} {}; {}", NameOfRank(ends_, rank), DescribeEnd(ends_[rank]), consequence));
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
    case Phase::kKilling:  // without effect: the host, or the connection to it, is gone
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
  AgentMessage message;
  message.set_signal(signal);
  for (Host& host : hosts_) {
    if (host.agent) host.agent->Send(message);
  }
}

void Supervisor::EnterPhase(Phase phase, Clock::duration time) {
  phase_ = phase;
  deadline_ = Clock::now() + time;
}

void Supervisor::FailToStart(const std::string& why) {
  if (!start_failure_) start_failure_ = why;
}

void Supervisor::Say(const std::string& message) { output_.Say(options_.own_name, message); }

int Supervisor::FinishAndReport() {
  RankVerdict verdict = options_.no_kill ? JudgeByRankZero(ends_, asked_) : Judge(ends_, asked_);
  if (start_failure_) {
    verdict = {kExitFailure, -1, *start_failure_};
    for (Host& host : hosts_) host.agent.reset();  // ends the ranks that were started
  } else if (phase_ == Phase::kStarting) {
    verdict = {kExitSignalBase + asked_.front(), -1, "stopped before the ranks were started"};
    for (Host& host : hosts_) host.agent.reset();
  } else {
    EnterPhase(Phase::kKilling, kKillLimit);  // for agents that do not end by themselves
    StepUntil([this] {
      return std::all_of(hosts_.begin(), hosts_.end(),
                         [](const Host& host) { return !host.agent || host.agent->ended(); });
    });
    if (!verdict.text.empty()) Say("how the ranks ended:\n" + EndTable(ends_));
  }
  if (!verdict.text.empty()) Say(verdict.text);
  // Not after failures that would only be repeated: a wrong flag, a full disk, a NaN.
  const bool lost = phase_ != Phase::kStarting && verdict.exit_code >= kExitLostPeer;
  const std::string resume = ResumeCommand(options_.own_words, options_.program);
  if (lost && !start_failure_ && !resume.empty()) Say("resume with: " + resume);
  // Waits as long as the reader of our output needs, unless the user has sent a second signal.
  const int stops = stops_;
  deadline_.reset();
  if (stops > 1) EnterPhase(Phase::kGivenUp, kFlushLimit);
  StepUntil([&] {
    return output_.empty() || stops_ > stops || (deadline_ && Clock::now() >= *deadline_);
  });
  return output_.file_error() && verdict.exit_code == 0 ? kExitFailure : verdict.exit_code;
}

}  // namespace ringtail
