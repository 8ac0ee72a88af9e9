// Pairs of ranks that differ in exactly one property: both refuse before the first step, and name
// both ranks, the property and both values. Rank 0 is always the program as a user starts it. So is
// rank 1, except where no flag can make the difference (it would be another build): there it is a
// JoinWorld of this process that sends what the program sends, with one difference.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "apps/config/config_fields.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/version.h"
#include "dist/membership/identity/host_identity.h"
#include "dist/membership/join.h"
#include "dist/transport/owned_descriptor.h"
#include "tests/apps/job.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ContainsRegex;

// The same version, built from other sources.
const std::string kOtherBuild = fmt::format("{}-0123456789ab", kRingtailVersion);
constexpr char kToken[] = "token-0123456789abcdef-of-this-test";

// The difference of rank 1: one of these.
struct Case {
  std::string name;
  std::function<void(RunConfig*)> config;
  std::vector<std::string> environment;
  bool other_images = false, other_file = false;
  std::function<void(JoinOptions*)> join;
  // The message; {0} and {1} are the ranks, "rank 1 (node7, pid 11)", # is any word.
  std::string sentence;
};
void PrintTo(const Case& changed, std::ostream* out) { *out << changed.name; }

std::string Disagree(const std::string& field, const std::string& zero, const std::string& one) {
  return "{0} and {1} disagree about " + field + ": rank 0 has " + zero + ", rank 1 has " + one;
}

Case Config(const std::string& name, std::function<void(RunConfig*)> change,
            const std::string& field, const std::string& zero, const std::string& one) {
  return {.name = name, .config = std::move(change), .sentence = Disagree(field, zero, one)};
}

std::vector<Case> ConfigCases() {
  return {
      Config(
          "net",
          [](RunConfig* c) {
            c->mutable_net()->mutable_layer(3)->mutable_convolution()->set_out_channels(12);
          },
          "net.layer[conv2]",
          "name: \"conv2\" convolution {{ out_channels: 16 kernel: 3 stride: 2 padding: 1 }}",
          "name: \"conv2\" convolution {{ out_channels: 12 kernel: 3 stride: 2 padding: 1 }}"),
      Config(
          "layer", [](RunConfig* c) { c->mutable_net()->mutable_layer()->DeleteSubrange(6, 1); },
          "net.layer[dropout]", "name: \"dropout\" dropout {{ rate: 0.2 }}", "(none)"),
      Config(
          "batch", [](RunConfig* c) { c->mutable_train()->set_batch(4); }, "train.batch", "8", "4"),
      Config(
          "accumulation", [](RunConfig* c) { c->mutable_train()->set_accumulation(2); },
          "train.accumulation", "1", "2"),
      Config(
          "precision", [](RunConfig* c) { c->mutable_train()->set_precision(BFLOAT16); },
          "train.precision", "FLOAT32", "BFLOAT16"),
      Config(
          "seed", [](RunConfig* c) { c->mutable_train()->set_seed(2); }, "train.seed", "1", "2"),
      Config(
          "epochs", [](RunConfig* c) { c->mutable_train()->set_epochs(5); }, "train.epochs", "4",
          "5"),
      Config(
          "learning_rate", [](RunConfig* c) { c->mutable_optim()->set_learning_rate(0.1); },
          "optim.learning_rate", "0.05", "0.1"),
      Config(
          "weight_decay", [](RunConfig* c) { c->mutable_optim()->set_weight_decay(0.25); },
          "optim.weight_decay", "0.0005", "0.25"),
      Config(
          "momentum", [](RunConfig* c) { c->mutable_optim()->mutable_sgd()->set_momentum(0.5); },
          "optim.sgd.momentum", "0.9", "0.5"),
      Config(
          "image_size", [](RunConfig* c) { c->mutable_data()->set_image_size(32); },
          "data.image_size", "16", "32"),
      Config(
          "split", [](RunConfig* c) { c->mutable_data()->mutable_split()->set_seed(2); },
          "data.split.seed", "1", "2"),
      Config(
          "augmentation",
          [](RunConfig* c) { c->mutable_data()->mutable_augment()->set_flip_probability(0.25F); },
          "data.augment.flip_probability", "0.5", "0.25"),
      Config(
          "algorithm", [](RunConfig* c) { c->mutable_dist()->set_algorithm("ring"); },
          "dist.algorithm", "\"auto\"", "\"ring\""),
      Config(
          "buckets", [](RunConfig* c) { c->mutable_dist()->set_bucket_kib(4); }, "dist.bucket_kib",
          "8192", "4"),
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> cases = ConfigCases();
  cases.push_back({.name = "instruction_set",
                   .environment = {"DNNL_MAX_CPU_ISA=SSE41"},
                   .sentence = Disagree("instruction set", CurrentNumerics().isa, "#")});
  cases.push_back({.name = "images",
                   .other_images = true,
                   .sentence = "the list of images of {0} is #, of {1} #; give every rank the "
                               "same"});
  cases.push_back({.name = "files",
                   .other_file = true,
                   .sentence = "the images are not the same on every rank: cat.0.jpg has # bytes "
                               "on {0} and has # bytes on {1}; give every rank the same files"});
  cases.push_back({.name = "world_size",
                   .environment = {"WORLD_SIZE=3"},
                   .sentence = "{0} was started for a world of 2 and {1} for a world of 3"});
  cases.push_back({.name = "build",
                   .join = [](JoinOptions* options) { options->build = kOtherBuild; },
                   .sentence = Disagree("build version", BuildVersionOfRank(), kOtherBuild)});
  const auto says_more = [](const std::string& field, const std::string& value) {
    return [=](JoinOptions* options) { options->fingerprint.push_back({field, value}); };
  };
  cases.push_back({.name = "data_type",
                   .join = says_more("data type", "bf16"),
                   .sentence = Disagree("data type", "(none)", "bf16")});
  cases.push_back({.name = "checkpoint_step",
                   .join = says_more("checkpoint step", "100"),
                   .sentence = Disagree("checkpoint step", "(none)", "100")});
  return cases;
}

// A port of this host that is reserved as long as the object lives
// (tests/dist/membership/join_ranks.h).
struct FreePort {
  FreePort() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_in at{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof(at);
    EXPECT_EQ(bind(socket.number(), reinterpret_cast<sockaddr*>(&at), bytes), 0);
    getsockname(socket.number(), reinterpret_cast<sockaddr*>(&at), &bytes);
    number = ntohs(at.sin_port);
  }
  OwnedDescriptor socket;
  int number = 0;
};

class RankDisagreement : public testing::TestWithParam<Case> {
 protected:
  RunConfig ConfigOf(int rank) const {
    RunConfig config =
        TinyConfig({"dist.join_timeout_s=180", "data.augment.flip_probability=0.5"}).config;
    if (rank == 1 && GetParam().config) GetParam().config(&config);
    return config;
  }

  std::string ImagesOf(int rank) const {
    if (rank == 0 || !(GetParam().other_images || GetParam().other_file)) return TinyImages();
    const std::string fewer = folder_.File("fewer");
    std::filesystem::copy(TinyImages(), fewer, std::filesystem::copy_options::recursive);
    if (GetParam().other_file) {
      std::ofstream(fewer + "/train/cat.0.jpg", std::ios::app) << "more";
      return fewer;
    }
    for (const auto& file : std::filesystem::recursive_directory_iterator(fewer)) {
      if (file.path().extension() != ".jpg") continue;
      std::filesystem::remove(file.path());
      break;
    }
    return fewer;
  }

  std::unique_ptr<ChildProcess> Start(int rank) const {
    const std::string config = folder_.File(fmt::format("config{}.textproto", rank));
    std::ofstream(config) << PrintTextConfig(ConfigOf(rank));
    std::vector<std::string> environment;  // the first variable of a name counts
    if (rank == 1) environment = GetParam().environment;
    for (const std::string& more :
         {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank),
          std::string("WORLD_SIZE=2"), std::string("LOCAL_WORLD_SIZE=2"),
          std::string("MASTER_ADDR=127.0.0.1"), fmt::format("MASTER_PORT={}", port_.number),
          fmt::format("RINGTAIL_TOKEN={}", kToken)}) {
      environment.push_back(more);
    }
    return std::make_unique<ChildProcess>(
        DogsVsCats({"train", "--config", config, "--data", ImagesOf(rank), "--output",
                    folder_.File("run")}),
        environment);
  }

  Status Join() const {
    JoinOptions options;
    options.identity = {.rank = 1,
                        .world_size = 2,
                        .master_address = "127.0.0.1",
                        .master_port = port_.number,
                        .source = "test"};
    options.token = kToken;
    options.join_timeout = std::chrono::minutes(2);
    for (auto& [name, value] : SharedConfigFields(ConfigOf(1))) {
      options.fingerprint.push_back({name, value});
    }
    options.fingerprint.push_back({"instruction set", CurrentNumerics().isa});
    options.build = BuildVersionOfRank();
    GetParam().join(&options);
    return JoinWorld(options).status();
  }

  static std::string Rank(int rank, pid_t pid) {
    return fmt::format("rank {} ({}, pid {})", rank, HostName(), pid);
  }
  // As an extended regular expression.
  static std::string Sentence(pid_t zero, pid_t one) {
    const std::string text =
        fmt::format(fmt::runtime(GetParam().sentence), Rank(0, zero), Rank(1, one));
    std::string expression;
    for (const char c : text) {
      constexpr std::string_view kSpecial = "(){}[]\\.*+?|^$";
      if (kSpecial.find(c) != std::string_view::npos) expression += '\\';
      if (c == '}') {
        expression += "} ?";  // a message's text may end with a space
        continue;
      }
      expression += c == '#' ? "[a-z0-9_]+" : std::string(1, c);
    }
    return expression;
  }

  void ExpectRefused(const ProcessResult& result, const std::string& sentence) const {
    EXPECT_GT(result.exit_code, 0);
    EXPECT_THAT(result.err, ContainsRegex(sentence));
  }

  const TempDir folder_;
  const FreePort port_;
};

TEST_P(RankDisagreement, IsRefusedBeforeTheFirstStepByBoth) {
  const auto zero = Start(0);
  if (GetParam().join) {
    const Status status = Join();
    EXPECT_THAT(status.message(), ContainsRegex(Sentence(zero->pid(), getpid())));
    ExpectRefused(zero->Wait(), Sentence(zero->pid(), getpid()));
  } else {
    const auto one = Start(1);
    const std::string sentence = Sentence(zero->pid(), one->pid());
    ExpectRefused(one->Wait(), sentence);
    ExpectRefused(zero->Wait(), sentence);
  }
  EXPECT_TRUE(ReadMetrics(folder_.File("run/metrics.jsonl"), "step").empty());
}

INSTANTIATE_TEST_SUITE_P(All, RankDisagreement, testing::ValuesIn(AllCases()),
                         [](const auto& info) { return info.param.name; });

TEST(RankDisagreements, AreTwentyTwo) { EXPECT_EQ(AllCases().size(), 22U); }

}  // namespace
}  // namespace ringtail
