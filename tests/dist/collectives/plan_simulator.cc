#include "tests/dist/collectives/plan_simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr size_t kMaxWorld = 64;     // ranks are bits of a word
constexpr size_t kEagerWindow = 24;  // steps that a rank looks ahead, and the whole round

bool Overlap(const ElementRange& a, const ElementRange& b) {
  return a.offset < b.end() && b.offset < a.end();
}

enum class State { kWaiting, kPosted, kDone };

struct Task {
  Step step;
  int round = 0;
  State state = State::kWaiting;

  bool sends() const { return step.kind == StepKind::kSend; }
  bool SharesQueue(const Task& other) const {
    return step.peer == other.step.peer && sends() == other.sends();
  }
};

std::string Describe(int rank, const Task& task) {
  const char* verb = task.sends()                                 ? "sends to"
                     : task.step.kind == StepKind::kReceiveReduce ? "adds from"
                                                                  : "copies from";
  return fmt::format("rank {} in round {} {} rank {} elements [{}, {})", rank, task.round, verb,
                     task.step.peer, task.step.range.offset, task.step.range.end());
}

// What is wrong with a plan in itself.
std::string FindBrokenRule(int rank, int world, int64_t count, const std::vector<Task>& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ElementRange& range = tasks[i].step.range;
    const int peer = tasks[i].step.peer;
    if (peer < 0 || peer >= world || peer == rank) {
      return Describe(rank, tasks[i]) + ": no such peer";
    }
    if (range.offset < 0 || range.end() > count) {
      return Describe(rank, tasks[i]) + ": outside the array";
    }
  }
  return "";
}

template <typename T>
class Simulator {
 public:
  Simulator(const std::vector<Plan>& plans, std::vector<std::vector<T>>* arrays,
            SimulationOptions options)
      : arrays_(*arrays), options_(options), random_(options.seed), ranks_(plans.size()) {
    RT_CHECK(plans.size() == arrays->size() && plans.size() <= kMaxWorld, "an array for each rank");
    result_.sent.resize(plans.size());
    result_.received.resize(plans.size());
    for (size_t rank = 0; rank < plans.size(); ++rank) {
      result_.heard_of.push_back(uint64_t{1} << rank);
      result_.rounds = std::max(result_.rounds, static_cast<int>(plans[rank].rounds.size()));
      int round = 0;
      for (const Round& r : plans[rank].rounds) {
        for (const Step& step : r.steps) {
          if (step.range.count > 0) ranks_[rank].tasks.push_back({.step = step, .round = round});
        }
        ++round;
      }
    }
  }

  Simulation Run() {
    const int world = static_cast<int>(ranks_.size());
    for (int rank = 0; rank < world && result_.error.empty(); ++rank) {
      result_.error =
          FindBrokenRule(rank, world, std::ssize(arrays_[Index(rank)]), ranks_[Index(rank)].tasks);
    }
    for (int rank = 0; rank < world; ++rank) Awake(rank);
    while (!awake_.empty() && result_.error.empty()) TakeTurn(NextAwake());
    if (result_.error.empty()) result_.error = FindStuck();
    return std::move(result_);
  }

 private:
  struct Rank {
    std::vector<Task> tasks;
    size_t first_open = 0;  // all tasks before it are done
    bool awake = false;
  };
  struct Message {
    size_t task;
    std::vector<T> elements;
    uint64_t heard_of = 0;
  };
  struct Channel {  // from one rank to another: what is posted and not yet met
    std::deque<Message> sends;
    std::deque<size_t> receives;
  };

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  void Awake(int rank) {
    if (std::exchange(ranks_[Index(rank)].awake, true)) return;
    awake_.push_back(rank);
  }

  int NextAwake() {
    if (options_.timing == Timing::kEager) {
      std::swap(awake_.front(), awake_[random_() % awake_.size()]);
    }
    const int rank = awake_.front();
    awake_.pop_front();
    ranks_[Index(rank)].awake = false;
    return rank;
  }

  static bool InSight(const Rank& rank, size_t i) {
    return i < rank.tasks.size() && (i < rank.first_open + kEagerWindow ||
                                     rank.tasks[i].round == rank.tasks[rank.first_open].round);
  }

  bool MayStart(const Rank& rank, size_t i) const {
    const Task& task = rank.tasks[i];
    for (size_t j = rank.first_open; j < rank.tasks.size(); ++j) {
      const Task& other = rank.tasks[j];
      if (other.round > task.round) break;
      if (j == i || other.state == State::kDone) continue;
      const bool waits = other.state == State::kWaiting;
      if (waits && j < i && task.SharesQueue(other)) return false;  // the k-th meets the k-th
      const bool touch = Overlap(task.step.range, other.step.range);
      if (other.round < task.round) {
        if (options_.timing == Timing::kLockstep) return false;
        if (touch && !(task.sends() && other.sends())) return false;
      } else if (touch && !task.sends()) {
        if (other.sends() && waits) return false;   // sends take what was there before the round
        if (!other.sends() && j < i) return false;  // receives follow the order of steps
      }
    }
    return true;
  }

  // Posts what may start, until nothing more may. What is met by its partner is carried out.
  void TakeTurn(int me) {
    Rank& rank = ranks_[Index(me)];
    for (bool posted = true; posted && result_.error.empty();) {
      posted = false;
      for (size_t i = rank.first_open; InSight(rank, i) && result_.error.empty(); ++i) {
        if (rank.tasks[i].state != State::kWaiting || !MayStart(rank, i)) continue;
        Post(me, i);
        posted = true;
      }
    }
  }

  void Post(int me, size_t i) {
    Task& task = ranks_[Index(me)].tasks[i];
    task.state = State::kPosted;
    const int peer = task.step.peer;
    const std::pair<int, int> from_to = task.sends() ? std::pair(me, peer) : std::pair(peer, me);
    Channel& channel = channels_[from_to];
    if (task.sends()) {
      const auto begin = arrays_[Index(me)].begin() + task.step.range.offset;
      channel.sends.push_back({.task = i,
                               .elements = {begin, begin + task.step.range.count},
                               .heard_of = result_.heard_of[Index(me)]});
    } else {
      channel.receives.push_back(i);
    }
    if (!channel.sends.empty() && !channel.receives.empty()) {
      const Message message = std::move(channel.sends.front());
      const size_t receive = channel.receives.front();
      channel.sends.pop_front();
      channel.receives.pop_front();
      Deliver(from_to.first, from_to.second, message, receive);
    }
  }

  void Deliver(int from, int to, const Message& message, size_t receive) {
    const Task& sent = ranks_[Index(from)].tasks[message.task];
    const Task& received = ranks_[Index(to)].tasks[receive];
    if (sent.step.range.count != received.step.range.count) {
      result_.error = Describe(from, sent) + ", but " + Describe(to, received);
      return;
    }
    T* const target = arrays_[Index(to)].data() + received.step.range.offset;
    for (size_t i = 0; i < message.elements.size(); ++i) {
      const bool add = received.step.kind == StepKind::kReceiveReduce;
      target[i] = add ? target[i] + message.elements[i] : message.elements[i];
    }
    result_.sent[Index(from)] += sent.step.range.count;
    result_.received[Index(to)] += sent.step.range.count;
    result_.heard_of[Index(to)] |= message.heard_of;
    Finish(from, message.task);
    Finish(to, receive);
  }

  void Finish(int me, size_t i) {
    Rank& rank = ranks_[Index(me)];
    rank.tasks[i].state = State::kDone;
    while (rank.first_open < rank.tasks.size() &&
           rank.tasks[rank.first_open].state == State::kDone) {
      ++rank.first_open;
    }
    Awake(me);
  }

  std::string FindStuck() const {
    std::string stuck;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const Rank& r = ranks_[rank];
      if (r.first_open == r.tasks.size()) continue;
      stuck += stuck.empty() ? "stuck: " : "; ";
      stuck += Describe(static_cast<int>(rank), r.tasks[r.first_open]);
    }
    return stuck;
  }

  std::vector<std::vector<T>>& arrays_;
  const SimulationOptions options_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Channel> channels_;
  std::deque<int> awake_;  // ranks for which something has changed
  Simulation result_;
};

int64_t Max(const std::vector<int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

int64_t Simulation::max_sent() const { return Max(sent); }
int64_t Simulation::max_received() const { return Max(received); }

int64_t Simulation::max_through() const {
  int64_t through = 0;
  for (size_t i = 0; i < sent.size(); ++i) through = std::max(through, sent[i] + received[i]);
  return through;
}

template <typename T>
Simulation Simulate(const std::vector<Plan>& plans, std::vector<std::vector<T>>* arrays,
                    SimulationOptions options) {
  return Simulator<T>(plans, arrays, options).Run();
}

template Simulation Simulate(const std::vector<Plan>& plans,
                             std::vector<std::vector<float>>* arrays, SimulationOptions options);
template Simulation Simulate(const std::vector<Plan>& plans,
                             std::vector<std::vector<double>>* arrays, SimulationOptions options);

}  // namespace ringtail
