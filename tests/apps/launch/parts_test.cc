// The small parts: lines, messages, jobs, counters, the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>

#include "apps/launch/agent/memory_kills.h"
#include "apps/launch/agent_messages.h"
#include "apps/launch/job.h"
#include "apps/launch/launch_options.h"
#include "apps/launch/line_splitter.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Split(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  LineSplitter splitter([&](std::string_view line) { lines.emplace_back(line); });
  for (const std::string& piece : pieces) splitter.Add(piece);
  splitter.End();
  return lines;
}

TEST(LineSplitterTest, MakesLinesWhereverTheBytesAreCut) {
  EXPECT_THAT(Split({"a\nb", "c\n", "\n", "d"}), ElementsAre("a", "bc", "", "d"));
  EXPECT_THAT(Split({}), ElementsAre());
  const std::string full(LineSplitter::kMaxLineBytes, 'x');
  EXPECT_THAT(Split({full + "\nb"}), ElementsAre(full, "b"));
  EXPECT_THAT(Split({full, "\n", "b\n"}), ElementsAre(full, "b"));
  EXPECT_THAT(Split({full, "\n\nb"}), ElementsAre(full, "", "b"));
  EXPECT_THAT(Split({full + full + "y\n"}), ElementsAre(full, full, "y"));
}

AgentMessage Printed(int rank, const std::string& bytes) {
  AgentMessage message;
  message.mutable_printed()->set_rank(rank);
  message.mutable_printed()->set_bytes(bytes);
  return message;
}

TEST(AgentMessagesTest, AreReadBackByteByByte) {
  AgentMessageReader reader;
  AgentMessage hello;
  hello.set_free_port(77);
  const std::string sent = "motd\n" + std::string(kAgentGreeting) +
                           EncodeAgentMessage(Printed(3, std::string("a\0\xff", 3))) +
                           EncodeAgentMessage(hello);
  std::vector<AgentMessage> messages;
  std::optional<std::string> noise;
  for (const char byte : sent) {
    reader.Add(std::string(1, byte));
    if (!noise) noise = reader.TakeGreeting();
    if (!noise) continue;
    const auto message = reader.Next();
    ASSERT_TRUE(message.ok());
    if (*message) messages.push_back(**message);
  }
  EXPECT_EQ(noise, "motd\n");
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].printed().bytes(), std::string("a\0\xff", 3));
  EXPECT_EQ(messages[0].printed().rank(), 3);
  EXPECT_EQ(messages[1].kind_case(), AgentMessage::kFreePort);
  EXPECT_EQ(messages[1].free_port(), 77);
}

TEST(AgentMessagesTest, OtherBytesAreRefused) {
  const std::string cut = EncodeAgentMessage(Printed(3, "text"));
  std::string shorter = cut.substr(0, cut.size() - 2);
  shorter[0] = static_cast<char>(shorter.size() - sizeof(uint32_t));
  for (const std::string& bytes :
       {std::string("Last login: Sunday"), std::string(9, '\0'), std::string(9, '\xff'),
        std::string("\x02\0\0\0\0\xff\xff\xff\xff", 9), shorter}) {
    AgentMessageReader reader;
    reader.Add(bytes);
    EXPECT_EQ(reader.Next().status().code(), StatusCode::kDataLoss);
  }
}

LaunchJob SomeJob() {
  LaunchJob job;
  job.set_first_rank(2);
  job.set_local_world(3);
  job.set_world(8);
  job.set_master_address("n1");
  job.set_master_port(1234);
  job.set_token("secret");
  for (const char* word : {"train", "", "two words"}) job.add_program(word);
  return job;
}

TEST(JobTest, NeedsAProgramAndRanksOfItsWorld) {
  EXPECT_TRUE(CheckJob(SomeJob()).ok());
  LaunchJob job = SomeJob();
  job.clear_program();
  EXPECT_EQ(CheckJob(job).code(), StatusCode::kDataLoss);
  using Ranks = std::array<int, 3>;
  for (const auto& [first, here, world] :
       {Ranks{-1, 3, 8}, Ranks{2, 0, 8}, Ranks{6, 3, 8}, Ranks{2, 1 << 30, 8},
        Ranks{0, 1 << 20, 1 << 20}, Ranks{std::numeric_limits<int>::max(), 1, 8}}) {
    job = SomeJob();
    job.set_first_rank(first);
    job.set_local_world(here);
    job.set_world(world);
    EXPECT_EQ(CheckJob(job).code(), StatusCode::kDataLoss) << first << " " << here << " " << world;
  }
}

TEST(JobTest, EnvironmentOfARank) {
  const std::vector<std::string> base = {"PATH=/bin", "RANK=9", "MASTER_ADDR=old",
                                         "RINGTAIL_RANK=9"};
  const auto environment = EnvironmentOfRank(SomeJob(), 1, 4, base);
  for (const char* variable :
       {"PATH=/bin", "RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=3",
        "MASTER_ADDR=n1", "MASTER_PORT=1234", "RINGTAIL_TOKEN=secret", "OMP_NUM_THREADS=4"}) {
    EXPECT_THAT(environment, Contains(variable));
  }
  for (const char* variable : {"RANK=9", "MASTER_ADDR=old", "RINGTAIL_RANK=9"}) {
    EXPECT_THAT(environment, Not(Contains(variable)));
  }
  EXPECT_THAT(EnvironmentOfRank(SomeJob(), 1, 4, {"OMP_NUM_THREADS=7"}),
              Not(Contains("OMP_NUM_THREADS=4")));
}

TEST(MemoryKillsTest, AreReadFromAllCounters) {
  const TempDir dir;
  EXPECT_EQ(CountMemoryKills(dir.path()), 0);
  std::filesystem::create_directories(dir.File("proc/self"));
  std::filesystem::create_directories(dir.File("sys/fs/cgroup/a/b"));
  std::filesystem::create_directories(dir.File("sys/fs/cgroup/memory/c"));
  const auto write = [&](const char* name, const char* text) {
    const int64_t before = CountMemoryKills(dir.path());
    std::ofstream(dir.File(name)) << text;
    return CountMemoryKills(dir.path()) - before;
  };
  EXPECT_EQ(write("proc/vmstat", "nr_free_pages 7\noom_kill 2\n"), 2);
  EXPECT_EQ(write("proc/self/cgroup", "0::/a/b\n3:memory:/c\n"), 0);
  EXPECT_EQ(write("sys/fs/cgroup/a/b/memory.events", "oom 3\noom_kill 1\n"), 1);
  EXPECT_GT(write("sys/fs/cgroup/memory/c/memory.oom_control", "under_oom 0\noom_kill 4\n"), 0);
}

CommandLine Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ringtail_launch");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(),
                          {"HOME=/root", "OMP_PLACES=cores", "RINGTAIL_X=1"});
}

std::string Refusal(const std::vector<const char*>& arguments) {
  const CommandLine line = Parse(arguments);
  EXPECT_FALSE(line.options.has_value());
  EXPECT_EQ(line.end.exit_code, 2);
  return line.end.err;
}

TEST(CommandLineTest, ReadsFlagsUpToTheDashes) {
  const CommandLine line = Parse({"-n", "3", "--timeout-kill", "2.5", "--no-bind", "--env", "HOME",
                                  "--env", "A=b", "--", "train", "-n", "9", "--", "--help"});
  ASSERT_TRUE(line.options.has_value()) << line.end.err;
  EXPECT_EQ(line.options->world(), 3);
  EXPECT_EQ(line.options->timeout_kill_s, 2.5);
  EXPECT_FALSE(line.options->bind || line.options->over_ssh);
  EXPECT_THAT(line.options->program, ElementsAre("train", "-n", "9", "--", "--help"));
  EXPECT_THAT(line.options->environment,
              ElementsAre("OMP_PLACES=cores", "RINGTAIL_X=1", "HOME=/root", "A=b"));
}

TEST(CommandLineTest, HostsGiveTheWorld) {
  const CommandLine line = Parse({"--hosts", "a:2,b:2", "--ssh", "ssh -p 22", "--", "x"});
  ASSERT_TRUE(line.options.has_value()) << line.end.err;
  EXPECT_EQ(line.options->world(), 4);
  EXPECT_TRUE(line.options->over_ssh);
  EXPECT_THAT(line.options->ssh, ElementsAre("ssh", "-p", "22"));
}

TEST(CommandLineTest, HelpAndVersion) {
  EXPECT_EQ(Parse({"--help"}).end.exit_code, 0);
  EXPECT_THAT(Parse({"--help"}).end.out, HasSubstr("-- PROGRAM ARGUMENTS..."));
  EXPECT_THAT(Parse({"--help"}).end.out, HasSubstr("--timeout-kill"));
  EXPECT_THAT(Parse({"--version"}).end.out, HasSubstr("ringtail "));
}

TEST(CommandLineTest, RefusesWhatIsWrong) {
  EXPECT_THAT(Refusal({}), HasSubstr("no program: write it after --"));
  EXPECT_THAT(Refusal({"-n", "2"}), HasSubstr("no program"));
  EXPECT_THAT(Refusal({"-n", "2", "--"}), HasSubstr("no program"));
  EXPECT_THAT(Refusal({"--", "x"}), HasSubstr("how many ranks?"));
  EXPECT_THAT(Refusal({"-n", "0", "--", "x"}), HasSubstr("-n"));
  EXPECT_THAT(Refusal({"-n", "x", "--", "x"}), HasSubstr("-n"));
  EXPECT_THAT(Refusal({"-n", "2", "train"}), HasSubstr("train"));
  EXPECT_THAT(Refusal({"-n", "9", "--hosts", "a:2", "--", "x"}), HasSubstr("do not fit"));
  EXPECT_THAT(Refusal({"--hosts", "a", "--hostfile", "f", "--", "x"}), HasSubstr("exclud"));
  EXPECT_THAT(Refusal({"--hostfile", "/no/such", "--", "x"}), HasSubstr("/no/such"));
  EXPECT_THAT(Refusal({"-n", "1", "--port", "70000", "--", "x"}), HasSubstr("--port"));
  EXPECT_THAT(Refusal({"-n", "1", "--timeout-kill", "-1", "--", "x"}), HasSubstr("--timeout-kill"));
  EXPECT_THAT(Refusal({"-n", "1", "--timeout-kill", "nan", "--", "x"}),
              HasSubstr("--timeout-kill: nan is not a number"));
  EXPECT_THAT(Refusal({"-n", "1", "--env", "NO_SUCH", "--", "x"}),
              HasSubstr("NO_SUCH: no such variable"));
  EXPECT_THAT(Refusal({"-n", "1", "--ssh", " ", "--", "x"}), HasSubstr("--ssh is empty"));
}

}  // namespace
}  // namespace ringtail
