// bench_allreduce as a user starts it: the cost model's table, ranks as threads and as processes,
// and the end of these processes when one of them is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "apps/bench_allreduce/allreduce_timing.h"
#include "apps/bench_allreduce/measure_world.h"
#include "apps/bench_allreduce/test_sums.h"
#include "apps/byte_text.h"
#include "dist/transport/in_process.h"
#include "tests/testing/mpirun.h"
#include "tests/testing/process.h"

namespace ringtail {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

std::vector<std::string> Program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RT_BINARY_DIR "/bin/bench_allreduce");
  return arguments;
}
ProcessResult RunBench(std::vector<std::string> arguments) {
  return RunProcess(Program(std::move(arguments)));
}

TEST(ByteTextTest, ReadsAndWritesUnits) {
  const std::map<std::string, int64_t> known = {{"4096", 4096},
                                                {"1KiB", 1024},
                                                {"25MB", 25'000'000},
                                                {"1.2GB", 1'200'000'000},
                                                {"256MiB", 256 << 20},
                                                {"1.5KiB", 1536},
                                                {"5B", 8},
                                                {"1e3", 1000}};
  for (const auto& [text, bytes] : known) EXPECT_EQ(ParseBytes(text).value(), bytes) << text;
  for (const char* wrong :
       {"", "KiB", "1 KiB", "1kib", "-4", "0", "3", "nan", "inf", "1e30", "4x"}) {
    EXPECT_THAT(ParseBytes(wrong).status().message(), HasSubstr("\"" + std::string(wrong) + "\""));
  }
  EXPECT_EQ(FormatBytes(1024), "1 KiB");
  EXPECT_EQ(FormatBytes(1'200'000'000), "1.2 GB");
  EXPECT_EQ(FormatBytes(1234567892), "1234567892 B");
  EXPECT_EQ(FormatBytes(1000), "1 kB");
}

TEST(TestSumsTest, FindsTheFirstWrongElement) {
  const TestSums first(0, 3), second(1, 3), third(2, 3);
  std::vector<float> sum(5000), other(5000);
  first.Fill(sum);
  for (const TestSums* sums : {&second, &third}) {
    sums->Fill(other);
    std::transform(sum.begin(), sum.end(), other.begin(), sum.begin(), std::plus<>());
  }
  EXPECT_TRUE(first.Check(sum).ok());
  sum[4096] += 1;
  EXPECT_THAT(first.Check(sum).message(), HasSubstr("element 4096 of 5000"));
  EXPECT_FALSE(
      first.Check(std::span(sum).subspan(1024)).ok());  // a segment in the place of another
}

// Adds one to the first element of every long message; headers and flags of the measurement are
// short.
class WrongAdder : public Transport {
 public:
  explicit WrongAdder(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
  int rank() const override { return transport_->rank(); }
  int world_size() const override { return transport_->world_size(); }
  void StartSend(int peer, const MessageLabel& label, std::span<const std::byte> bytes,
                 CompletionTarget done) override {
    if (bytes.size() >= kLong) {
      auto* first = reinterpret_cast<float*>(const_cast<std::byte*>(bytes.data()));
      *first += 1;
    }
    transport_->Send(peer, label, bytes, done);
  }
  void StartReceive(int peer, const MessageLabel& label, ReceiveBuffer buffer,
                    CompletionTarget done) override {
    transport_->Receive(peer, label, std::move(buffer), done);
  }
  Traffic TrafficWith(int peer) const override { return transport_->traffic(peer); }
  void Abort(const Status& cause) override { transport_->Abort(cause); }
  Status EndCause() const override { return transport_->EndCause(); }

 private:
  static constexpr size_t kLong = 10000;
  const std::unique_ptr<Transport> transport_;
};

TEST(MeasureWorldTest, AWrongSumIsAFailure) {
  auto transports = MakeInProcessWorld(2);
  transports[1] = std::make_unique<WrongAdder>(std::move(transports[1]));
  MeasureOptions options;
  options.algorithms = {"ring"};
  options.bytes = {1 << 20};
  options.seconds = 0.01;
  const MeasureObserver observer = {.on_network = [](const NetworkModel&) {},
                                    .on_timing = [](const AllreduceTiming&) {}};
  std::vector<Status> ends(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ends[rank] = MeasureWorld(transports[rank].get(), Topology::Blocks(2, 1), options, observer);
    });
  }
  threads.clear();  // joins
  for (const Status& end : ends) EXPECT_FALSE(end.ok());
  EXPECT_EQ(ends[0].code(), StatusCode::kDataLoss) << ends[0].message();
}

TEST(TestSumsTest, FindsAWronglyGatheredElement) {
  std::vector<float> all(3000), part(3000);
  for (int rank = 0; rank < 3; ++rank) {
    TestSums(rank, 3).Fill(part);
    std::copy_n(part.begin() + 1000 * rank, 1000, all.begin() + 1000 * rank);
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(TestSums(rank, 3).CheckGathered(all).ok());
  all[1999] += 1;
  EXPECT_THAT(TestSums(2, 3).CheckGathered(all).message(), HasSubstr("element 1999 of 3000"));
}

TEST(AllreduceTimingTest, HasTheBandwidthsOfItsMedian) {
  AllreduceTiming timing{.algorithm = "auto", .chosen = "ring", .world = 4, .bytes = 1'000'000};
  std::vector<double> runs_ms(100);
  std::iota(runs_ms.begin(), runs_ms.end(), 1);
  std::ranges::reverse(runs_ms);
  SetPercentiles(runs_ms, &timing);
  EXPECT_EQ(timing.time_ms, 50);
  EXPECT_EQ(timing.p10_ms, 10);
  EXPECT_EQ(timing.p90_ms, 90);
  EXPECT_EQ(timing.p99_ms, 99);
  EXPECT_DOUBLE_EQ(timing.AlgbwGbPerS(), 0.02);
  EXPECT_DOUBLE_EQ(timing.BusbwGbPerS(), 0.03);
  const NetworkModel network = {.within_host = {.seconds_per_byte = 1e-9},
                                .between_hosts = {.seconds_per_byte = 8e-9}};
  EXPECT_DOUBLE_EQ(IdealMilliseconds(Topology::Blocks(4, 4), network, 1'000'000), 1.5);
  EXPECT_DOUBLE_EQ(IdealMilliseconds(Topology::Blocks(4, 2), network, 1'000'000), 8);
  const auto again = TimingFromJson(ToJson(timing).dump());
  EXPECT_EQ(ToJson(again.value()), ToJson(timing));
  EXPECT_FALSE(TimingFromJson("{\"algorithm\": 1}").ok());
  EXPECT_FALSE(TimingFromJson("[").ok());
}

// The numbers of Baidu's "Bringing HPC techniques to deep learning", 2017, by the command in
// --help.
TEST(BenchAllreduceModelTest, ReproducesAPublishedExample) {
  EXPECT_THAT(RunBench({"--help"}).out,
              HasSubstr("bench_allreduce --model --world 2,10 --bytes 1.2GB"));
  const ProcessResult result =
      RunBench({"--model", "--world", "2,10", "--bytes", "1.2GB", "--gb-per-s", "1", "--latency-us",
                "0", "--algorithm", "single_reducer,ring", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<std::pair<std::string, int>, double> busiest_link_s;
  const auto json = nlohmann::json::parse(result.out);
  for (const auto& row : json["results"]) {
    busiest_link_s[{row["algorithm"], row["world"]}] = row["busiest_link_ms"].get<double>() / 1e3;
    if (row["algorithm"] == "ring") {
      const double workers = row["world"];
      EXPECT_DOUBLE_EQ(row["sent_bytes"], 2 * (workers - 1) / workers * 1.2e9);
    }
  }
  ASSERT_EQ(busiest_link_s.size(), 4U);
  constexpr double kRounding = 1e-9;
  EXPECT_THAT((busiest_link_s[{"single_reducer", 2}]), DoubleNear(1.2, kRounding));
  EXPECT_THAT((busiest_link_s[{"single_reducer", 10}]), DoubleNear(10.8, kRounding));
  EXPECT_THAT((busiest_link_s[{"ring", 2}]), DoubleNear(1.2, kRounding));
  EXPECT_THAT((busiest_link_s[{"ring", 10}]), DoubleNear(2.16, kRounding));
  const ProcessResult table = RunBench({"--model", "--world", "10", "--bytes", "1.2GB"});
  EXPECT_THAT(table.out, HasSubstr("single_reducer"));
}

void ExpectResults(const nlohmann::json& json, size_t lines) {
  ASSERT_EQ(json["results"].size(), lines);
  for (const auto& row : json["results"]) {
    EXPECT_GE(row["runs"], 5);
    EXPECT_GT(row["time_ms"], 0);
    EXPECT_LE(row["p10_ms"], row["time_ms"]);
    EXPECT_LE(row["time_ms"], row["p90_ms"]);
    EXPECT_LE(row["p90_ms"], row["p99_ms"]);
    EXPECT_GT(row["cpu_s_per_gb"], 0);
    const double world = row["world"];
    EXPECT_THAT(row["busbw_gb_per_s"].get<double>(),
                DoubleNear(row["algbw_gb_per_s"].get<double>() * 2 * (world - 1) / world, 1e-12));
  }
}

TEST(BenchAllreduceTest, MeasuresEveryAlgorithmWithThreads) {
  const ProcessResult result =
      RunBench({"--world", "2,5", "--transport", "in_process", "--algorithm", "all,auto", "--bytes",
                "4,100KB", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ExpectResults(nlohmann::json::parse(result.out), 2 * 8 * 2);
}

TEST(BenchAllreduceTest, MeasuresAllgatherToo) {
  const ProcessResult result =
      RunBench({"--world", "3", "--operation", "allgather", "--algorithm", "all,auto", "--bytes",
                "1KiB", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["results"].size(), 3U);
  for (const auto& [row, algorithm] : {std::pair(0, "ring"), {1, "bruck"}, {2, "auto"}}) {
    EXPECT_EQ(json["results"][row]["operation"], "allgather");
    EXPECT_EQ(json["results"][row]["algorithm"], algorithm);
    EXPECT_THAT(json["results"][row]["busbw_gb_per_s"].get<double>(),
                DoubleNear(json["results"][row]["algbw_gb_per_s"].get<double>() * 2 / 3, 1e-12));
  }
}

TEST(BenchAllreduceTest, MeasuresWithProcesses) {
  const ProcessResult result =
      RunBench({"--world", "3", "--shared-memory", "false", "--algorithm", "ring", "--bytes",
                "1MiB", "--seconds", "0", "--link-gbit", "8", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ExpectResults(json, 1);
  // The keys of a single result are also at the top.
  EXPECT_EQ(json["algorithm"], "ring");
  EXPECT_EQ(json["world"], 3);
  EXPECT_EQ(json["bytes"], 1 << 20);
  EXPECT_DOUBLE_EQ(json["ideal_ms"], 4.0 / 3 * (1 << 20) / 1e6);
  EXPECT_EQ(json["time_ms"], json["results"][0]["time_ms"]);
}

ChildProcess LongRun() {
  return ChildProcess(Program(
      {"--world", "3", "--shared-memory", "false", "--bytes", "1KiB,64KiB", "--seconds", "3600"}));
}

TEST(BenchAllreduceTest, MeasuresSeveralWorldsOneAfterTheOther) {
  const ProcessResult result =
      RunBench({"--world", "1,2,3", "--bytes", "1KiB", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["results"].size(), 3U);
  for (int world = 1; world <= 3; ++world) EXPECT_EQ(json["results"][world - 1]["world"], world);
}

TEST(BenchAllreduceTest, AStopSignalEndsTheRanks) {
  ChildProcess bench = LongRun();
  ASSERT_THAT(bench.ReadLine().value_or(""), HasSubstr("3 ranks"));
  bench.Signal(SIGTERM);
  const ProcessResult result = bench.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.err, HasSubstr("bench_allreduce: stopped by SIGTERM"));
}

TEST(BenchAllreduceTest, PrintsATableForPeople) {
  const ProcessResult result =
      RunBench({"--world", "2", "--shared-memory", "false", "--bytes", "1KiB", "--seconds", "0"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* said :
       {"2 ranks on 1 host, GRPC;", "latency", "busbw GB/s", "1 KiB", "auto: "}) {
    EXPECT_THAT(result.out, HasSubstr(said));
  }
}

TEST(BenchAllreduceTest, MeasuresOverMpiWithAndWithoutSharedMemory) {
  for (const auto& [shared_memory, said] :
       {std::pair("false", "2 ranks on 1 host, MPI;"), {"true", "MPI and shared memory;"}}) {
    const ProcessResult result =
        RunMpirun(2, Program({"--transport", "MPI", "--shared-memory", shared_memory, "--bytes",
                              "1KiB,1MiB", "--seconds", "0"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr(said));
    EXPECT_THAT(result.out, HasSubstr("1 MiB"));
  }
}

TEST(BenchAllreduceTest, SaysWhoStartsTheRanksOfATransport) {
  const ProcessResult mpi = RunBench({"--transport", "MPI"});
  EXPECT_EQ(mpi.exit_code, 2);
  EXPECT_THAT(mpi.err, HasSubstr("mpirun -np 2 bench_allreduce --transport MPI"));
  const ProcessResult threads = RunBench(
      {"--transport", "in_process", "--rank", "0", "--world", "2", "--master", "127.0.0.1:1"});
  EXPECT_EQ(threads.exit_code, 2);
  EXPECT_THAT(threads.err, HasSubstr("--transport in_process is for one process"));
}

TEST(BenchAllreduceTest, WrongFlagsAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--algorithm", "rings"}, {"--algorithm", "bruck"},  {"--operation", "scan"},
      {"--bytes", "1foo"},      {"--transport", "pigeon"}, {"--world", "0"}};
  for (const auto& flags : wrong) {
    const ProcessResult result = RunBench(flags);
    EXPECT_EQ(result.exit_code, 2) << flags[1];
    EXPECT_THAT(result.err, HasSubstr(flags[1]));
  }
}

TEST(BenchAllreduceTest, NanIsNoNumberOfAnyFlag) {
  for (const std::string flag : {"--seconds", "--link-gbit", "--gb-per-s", "--latency-us"}) {
    const ProcessResult result = RunBench({"--model", flag, "nan"});
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(flag + ": nan is not a number"));
  }
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  const std::string folder = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent);
  std::ifstream file(folder + "/children");
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

// The ranks that `bench` has launched, children of its one agent, in the order of their ranks.
std::vector<pid_t> RanksOf(pid_t bench) {
  const std::vector<pid_t> agents = ChildrenOf(bench);
  return agents.size() == 1 ? ChildrenOf(agents[0]) : std::vector<pid_t>();
}

bool Lives(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z" && state != "X";
}

TEST(BenchAllreduceTest, SaysWhichRankWasKilled) {
  ChildProcess bench = LongRun();
  ASSERT_THAT(bench.ReadLine().value_or(""), HasSubstr("3 ranks"));  // they have joined
  const std::vector<pid_t> ranks = RanksOf(bench.pid());
  ASSERT_EQ(ranks.size(), 3U);
  kill(ranks[1], SIGKILL);
  const ProcessResult result = bench.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err,
              HasSubstr("bench_allreduce: rank 1 (localhost, process " + std::to_string(ranks[1]) +
                        ") ended by SIGKILL: the first to fail"));
  for (const pid_t rank : ranks) EXPECT_FALSE(Lives(rank));
}

TEST(BenchAllreduceTest, SpeaksOfItselfWhereItStartsARank) {
  const ProcessResult result = RunBench({"run-rank"});
  EXPECT_EQ(result.exit_code, 126);
  EXPECT_EQ(result.err, "bench_allreduce: run-rank is for agents, which start ranks by it\n");
}

TEST(BenchAllreduceTest, LeavesNoOrphan) {
  ChildProcess bench = LongRun();
  ASSERT_THAT(bench.ReadLine().value_or(""), HasSubstr("3 ranks"));
  const std::vector<pid_t> ranks = RanksOf(bench.pid());
  ASSERT_EQ(ranks.size(), 3U);
  bench.Signal(SIGKILL);
  bench.Wait();  // until its output is closed
  for (const pid_t rank : ranks) {
    for (int i = 0; Lives(rank) && i < 6000; ++i) usleep(10'000);
    EXPECT_FALSE(Lives(rank));
  }
}

}  // namespace
}  // namespace ringtail
