// Strangers by the thousand at the ports of a world: what they cost, how soon they are gone, and
// that no rank has to go because of them. Prints what README.md says was measured.
//
// RINGTAIL_FLOOD_PER_SECOND: garbage at each port (default: as much as goes).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "dist/membership/join.h"
#include "dist/transport/door/socket_address.h"
#include "dist/transport/owned_descriptor.h"
#include "tests/dist/membership/certificates.h"
#include "tests/dist/membership/join_ranks.h"
#include "tests/dist/test_world.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

// With sanitizers memory that has been freed stays for a while.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryTells = false;
constexpr int kStrangers = 1'000;  // to each port
#else
constexpr bool kMemoryTells = true;
constexpr int kStrangers = 10'000;
#endif

double Seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// True once the other end has hung up, or did before `deadline`.
bool HasHungUp(int socket, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, std::max<int>(static_cast<int>(left.count()), 0)) <= 0) return false;
    std::array<char, 4096> bytes;
    if (recv(socket, bytes.data(), bytes.size(), 0) <= 0) return true;  // else HTTP/2's settings
  }
}

// ---- ranks that work, in processes of their own -------------------------------------------------

struct Step {
  int64_t end_us, lasted_us;
};

struct WorkingRank {
  WorkingRank(int rank, int world_size, int master_port)
      : process({std::string(RT_BINARY_DIR) + "/tests/dist_flooded_rank_main", std::to_string(rank),
                 std::to_string(world_size), std::to_string(master_port)},
                {}, std::chrono::minutes(8)) {}

  // In KiB: "VmRSS" now, "VmHWM" at most so far.
  int64_t Memory(const std::string& what) const {
    std::ifstream status("/proc/" + std::to_string(process.pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(what)) return std::stoll(line.substr(what.size() + 1));
    }
    return -1;
  }
  int64_t Descriptors() const {
    const std::filesystem::directory_iterator open("/proc/" + std::to_string(process.pid()) +
                                                   "/fd");
    return std::distance(begin(open), end(open));
  }

  // CPU time of its doorkeepers.
  double DoorSeconds() const {
    int64_t ticks = 0;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process.pid()) + "/task")) {
      std::ifstream file(task.path() / "stat");
      std::string stat;
      std::getline(file, stat);
      if (stat.find("(rt-door)") == std::string::npos) continue;
      std::istringstream fields(stat.substr(stat.rfind(')') + 2));
      std::string skipped;
      for (int i = 0; i < 11; ++i) fields >> skipped;  // utime is field 14, stime 15
      int64_t user = 0, system = 0;
      fields >> user >> system;
      ticks += user + system;
    }
    return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  ChildProcess process;
  int port = 0;
};

std::vector<std::unique_ptr<WorkingRank>> StartRanks(int world_size, int master_port) {
  std::vector<std::unique_ptr<WorkingRank>> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<WorkingRank>(rank, world_size, master_port));
  }
  for (const auto& rank : ranks) {
    const auto line = rank->process.ReadLine();
    EXPECT_TRUE(line && line->starts_with("listens at ")) << rank->process.Wait().err;
    if (line) rank->port = PortOf(*line);
  }
  return ranks;
}

std::vector<Step> StepsOf(const std::string& out) {
  std::vector<Step> steps;
  std::istringstream lines(out);
  for (std::string word; lines >> word;) {
    Step step{};
    if (word == "step" && lines >> step.end_us >> step.lasted_us) steps.push_back(step);
  }
  return steps;
}

double MedianMs(const std::vector<Step>& steps, Clock::time_point from, Clock::time_point to) {
  const auto us = [](Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  };
  std::vector<int64_t> lasted;
  for (const Step& step : steps) {
    if (step.end_us >= us(from) && step.end_us <= us(to)) lasted.push_back(step.lasted_us);
  }
  if (lasted.empty()) return 0;
  std::nth_element(lasted.begin(), lasted.begin() + lasted.size() / 2, lasted.end());
  return static_cast<double>(lasted[lasted.size() / 2]) / 1000;
}

void Pour(int port) {
  const char* const text = std::getenv("RINGTAIL_FLOOD_PER_SECOND");
  if (text == nullptr) return PourGarbage(port, kStrangers);
  constexpr int kTogether = 10;
  const std::chrono::duration<double> pause(kTogether / std::atof(text));
  auto next = Clock::now();
  for (int i = 0; i < kStrangers; i += kTogether) {
    PourGarbage(port, kTogether);
    next += std::chrono::duration_cast<Clock::duration>(pause);
    std::this_thread::sleep_until(next);
  }
}

TEST(Flood, OfGarbageCostsAWorkingWorldLittle) {
  const ReservedPort port;
  const auto ranks = StartRanks(2, port.number());
  PourGarbage(port.number(), 10);  // what the first of its kind costs
  for (const auto& rank : ranks) PourGarbage(rank->port, 10);
  const auto calm = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // steps to compare with
  std::vector<int64_t> memory;
  for (const auto& rank : ranks) memory.push_back(rank->Memory("VmRSS:"));

  const auto flood = Clock::now();
  {
    std::vector<std::jthread> strangers;
    strangers.emplace_back(Pour, port.number());
    for (const auto& rank : ranks) strangers.emplace_back(Pour, rank->port);
  }
  const auto over = Clock::now();
  std::vector<double> doors;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    memory[rank] = ranks[rank]->Memory("VmHWM:") - memory[rank];
    doors.push_back(ranks[rank]->DoorSeconds());
  }
  ranks[0]->process.Signal(SIGTERM);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const ProcessResult result = ranks[rank]->process.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto steps = StepsOf(result.out);
    EXPECT_FALSE(steps.empty());
    if (kMemoryTells) {
      EXPECT_LT(memory[rank], 50 << 10) << "KiB, of rank " << rank;
    }
    std::printf(
        "rank %zu: %d strangers at each of %zu ports within %.1f s: memory +%.1f MB, doorkeepers "
        "%.2f s, a step %.2f ms, %.2f before\n",
        rank, kStrangers, ranks.size() + 1, Seconds(over - flood),
        static_cast<double>(memory[rank]) / 1024, doors[rank], MedianMs(steps, flood, over),
        MedianMs(steps, calm, flood));
  }
}

// They stay, and say nothing: they are as many as this process can hold.
TEST(Flood, OfSilenceTakesABoundedNumberOfDescriptors) {
  const ReservedPort port;
  const auto ranks = StartRanks(2, port.number());
  constexpr int64_t kBound = 2 * (128 + 1);  // rank 0 has two doors
  std::vector<int64_t> before;
  for (const auto& rank : ranks) before.push_back(rank->Descriptors());
  std::vector<OwnedDescriptor> silent;
  for (const int at : {port.number(), ranks[0]->port, ranks[1]->port}) {
    for (int i = 0; i < 3000; ++i) {
      silent.emplace_back(ConnectStranger(at));
      ASSERT_GE(silent.back().number(), 0);
      if (i % 100 != 0) continue;
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        ASSERT_LE(ranks[rank]->Descriptors(), before[rank] + kBound);
      }
    }
  }
  for (const OwnedDescriptor& socket : silent) {
    EXPECT_TRUE(HasHungUp(socket.number(), Clock::now() + std::chrono::minutes(3)));
  }
  ranks[0]->process.Signal(SIGTERM);
  for (const auto& rank : ranks) {
    const ProcessResult result = rank->process.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

// ---- ranks as threads ---------------------------------------------------------------------------

constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

// Half of them silent, half of them say a byte of HTTP/2's preface in every second.
class SlowStrangers {
 public:
  void Dial(int port, int number) {
    for (int i = 0; i < number; ++i) {
      int socket = -1;
      while ((socket = ConnectStranger(port)) < 0) std::this_thread::yield();
      strangers_.push_back(
          {.socket = OwnedDescriptor(socket), .slow = i % 2 == 0, .came = Clock::now()});
    }
  }
  // Talks until all have been hung up on. The longest that one could stay.
  Clock::duration TalkToTheEnd() {
    Clock::duration longest{};
    for (auto next = Clock::now(); !strangers_.empty();) {
      if (Clock::now() >= next) {
        for (Stranger& stranger : strangers_) stranger.Say();
        next += std::chrono::seconds(1);
      }
      WaitForSomeEnd(next);
      std::erase_if(strangers_, [&](const Stranger& stranger) {
        if (!HasHungUp(stranger.socket.number(), Clock::now())) return false;
        longest = std::max(longest, Clock::now() - stranger.came);
        return true;
      });
    }
    return longest;
  }

 private:
  struct Stranger {
    void Say() {
      if (!slow || said == kPreface.size()) return;
      static_cast<void>(send(socket.number(), &kPreface[said++], 1, MSG_NOSIGNAL));
    }
    OwnedDescriptor socket;
    bool slow = false;
    Clock::time_point came;
    size_t said = 0;
  };
  void WaitForSomeEnd(Clock::time_point deadline) const {
    std::vector<pollfd> polled;
    for (const Stranger& stranger : strangers_) {
      polled.push_back({.fd = stranger.socket.number(), .events = POLLIN, .revents = 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    poll(polled.data(), polled.size(), std::max<int>(static_cast<int>(left.count()), 0));
  }

  std::vector<Stranger> strangers_;
};

TEST(Flood, OfSlowOnesIsOverSoonAndARankComesInMeanwhile) {
  const ReservedPort port;
  std::vector<std::optional<StatusOr<JoinedWorld>>> joined(2);
  Clock::duration longest{}, joining{};
  {
    const auto join = [&](int rank) {
      joined[rank] = JoinWorld(TestJoinOptions(rank, 2, port.number()));
    };
    const std::jthread zero(join, 0);
    SlowStrangers strangers;
    strangers.Dial(port.number(), 500);
    const std::jthread talk([&] { longest = strangers.TalkToTheEnd(); });
    const auto start = Clock::now();
    join(1);
    joining = Clock::now() - start;
  }
  std::vector<StatusOr<JoinedWorld>> ranks;
  for (auto& rank : joined) ranks.push_back(std::move(*rank));
  SlowStrangers strangers;
  strangers.Dial(PortOf(ranks[1]->ranks[0].address), 500);
  ExpectWorldWorks(ranks);
  longest = std::max(longest, strangers.TalkToTheEnd());
  ExpectWorldWorks(ranks);
  std::printf("1000 slow strangers: the longest stayed %.2f s; a rank came in within %.2f s\n",
              Seconds(longest), Seconds(joining));
}

// More strangers that begin as ranks do than there is room for. Ranks were there before them, and
// would have to go first, if it were not known that they are ranks: by the names of connections.
struct Way {
  std::string name, master, opening;
  bool tls;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

// The first record of a ClientHello that says that more of it comes.
std::string HalfTlsHello() {
  return std::string("\x16\x03\x01\x00\xC8\x01\x00\x10\x00\x03\x03", 11) + std::string(194, 'x');
}

class FloodOfRanks : public testing::TestWithParam<Way> {};

OwnedDescriptor DialStranger(const std::string& address, std::string_view opening) {
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto to = ResolveHost(host, PortOf(address), deadline);
  auto socket = ConnectSocket(to->front(), deadline);
  EXPECT_TRUE(socket.ok()) << socket.status().ToString();
  static_cast<void>(send(socket->number(), opening.data(), opening.size(), MSG_NOSIGNAL));
  return std::move(*socket);
}

TEST_P(FloodOfRanks, DrivesNoRankOut) {
  const Way& way = GetParam();
  const ReservedPort port;
  const TestAuthority authority("the job's authority");
  const auto ranks = JoinAll(3, port.number(), [&](JoinOptions* options) {
    options->identity.master_address = way.master;
    options->shared_memory = false;
    if (way.tls) options->security = authority.Issue("rank");
  });
  if (!ranks[0].ok() && way.name == "IPv6" &&
      ranks[0].status().message().find("none of this host") != std::string::npos) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  ExpectWorldWorks(ranks);
  std::vector<OwnedDescriptor> strangers;
  const std::string master = JoinHostPort(way.master, port.number());
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(DialStranger(master, way.opening));
    for (const JoinedRank& rank : ranks[0]->ranks) {
      strangers.push_back(DialStranger(rank.address, way.opening));
    }
  }
  for (const OwnedDescriptor& socket : strangers) {
    EXPECT_TRUE(HasHungUp(socket.number(), Clock::now() + std::chrono::minutes(3)));
  }
  ExpectWorldWorks(ranks);
}

INSTANTIATE_TEST_SUITE_P(All, FloodOfRanks,
                         testing::Values(Way{"IPv4", "127.0.0.1", std::string(kPreface), false},
                                         Way{"IPv6", "::1", std::string(kPreface), false},
                                         Way{"TLS", "127.0.0.1", HalfTlsHello(), true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringtail
