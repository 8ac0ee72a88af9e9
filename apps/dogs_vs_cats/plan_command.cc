// dogs_vs_cats plan: how fast several hosts would train, and what to set for it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/config/class_outputs.h"
#include "apps/config/run_precision.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/number_flags.h"
#include "apps/plan/choice_settings.h"
#include "apps/plan/link_rate.h"
#include "apps/plan/measure_together.h"
#include "apps/plan/plan_report.h"
#include "apps/print.h"
#include "apps/rank_flags.h"
#include "apps/session/world_session.h"
#include "apps/trainer/decide_precision.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_world.h"
#include "core/logging.h"
#include "core/storage/file.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "data/config_check.h"
#include "dist/membership/identity/rank_environment.h"
#include "dist/planner/facts_file.h"
#include "dist/planner/search.h"

namespace ringtail {
namespace {

constexpr int64_t kMostFactsBytes = 1 << 20;

struct PlanFlags {
  ConfigFlags config;
  int64_t batch = 0, part_batch = 0, image_size = 0;  // 0: the config's
  bool measure = false;
  std::string from, save, data;
  // Of the cluster; where they are not given, the facts' own.
  std::string hosts, rate;
  double cores = 0, latency_us = -1, cpu_s_per_gb = -1, cpu_us_per_message = -1;
  int ranks_per_host = 0, most_period = 8;
  std::vector<std::string> schemes;  // empty: all of the facts
  std::vector<int> periods;
  std::vector<double> slowness;  // of each host; empty: they are equal
  bool dedicated_cores = false;
  bool json = false;
  RankFlags rank;  // with --measure
  WorldOptions world;
};

constexpr std::string_view kNotes =
    "Facts are measured on this machine (--measure) or read (--from), everything else is asked. "
    "Started\n"
    "on several ranks, as train is (ringtail_launch -n 4 -- dogs_vs_cats plan --measure), all "
    "measure at\n"
    "once, facts are their means, and links are those between them. Predictions are of equal "
    "hosts,\n"
    "but with --slowness what is recommended.\n"
    "Without --data they are of random images in memory; decoding and augmenting real ones may "
    "take as\n"
    "long as a third of a step of small images. Recommended is the fastest of the ways that have "
    "been shown\n"
    "to train as accurately as one host, as train --plan auto chooses. All schemes and up to "
    "--most-period\n"
    "local steps are listed, too, also those that cost accuracy.";

// With the time to load images, if there are any.
StatusOr<PlannerFacts> MeasureAll(const PlanFlags& flags, MeasureFactsOptions options,
                                  TrainingWorld* world, LoadedConfig* loaded) {
  if (flags.data.empty()) return MeasureCluster(*loaded, options, world);
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded->config.data(), world));
  RT_ASSIGN_OR_RETURN(const std::string outputs,
                      FitOutputsToClasses(static_cast<int>(data.dataset->class_names().size()),
                                          flags.config.set, &loaded->config));
  if (!outputs.empty() && world->leads()) LogInfo(outputs);
  options.data = &data;
  return MeasureCluster(*loaded, options, world);
}

Status CheckSource(const PlanFlags& flags) {
  if (flags.measure == !flags.from.empty()) {
    return InvalidArgument("plan needs --measure or --from FACTS, one of them");
  }
  if (!flags.measure && !flags.data.empty()) {
    return InvalidArgument("--data is for --measure; facts that are read (--from) have their own");
  }
  return OkStatus();
}

// The facts are those of host 0.
Status CheckSlowness(const std::vector<double>& slowness, int fewest_hosts, int hosts) {
  if (slowness.empty()) return OkStatus();
  if (fewest_hosts != hosts || std::ssize(slowness) != hosts) {
    return InvalidArgument(fmt::format(
        "--slowness has {}; give one for each of {}", Counted(std::ssize(slowness), "number"),
        fewest_hosts == hosts ? Counted(hosts, "host") : "a single number of --hosts"));
  }
  if (slowness.front() == 1) return OkStatus();
  return InvalidArgument("--slowness begins with 1: the facts are those of the first host");
}

StatusOr<PlannerFacts> ReadFacts(const std::string& path) {
  RT_ASSIGN_OR_RETURN(const std::string text, ReadFileText(path, kMostFactsBytes));
  return ParseFacts(text, path);
}

// Gigabit Ethernet, unless flags say otherwise.
void SetTypicalCluster(ClusterFacts* cluster) {
  LinkFacts* const wire = cluster->mutable_between_hosts();
  wire->set_latency_s(150 * kMicro);
  wire->set_seconds_per_byte(kBitsPerByte / (kWireEfficiency * kGiga));
  LinkFacts* const memory = cluster->mutable_within_host();
  memory->set_latency_s(20 * kMicro);
  memory->set_seconds_per_byte(1 / (2 * kGiga));
  cluster->set_cpu_seconds_per_byte(kTypicalSending.per_byte);
  cluster->set_cpu_seconds_per_message(kTypicalSending.per_message);
}

// Decides what the config leaves open of what is measured.
StatusOr<PlannerFacts> Measure(const PlanFlags& flags, TrainingWorld* world, LoadedConfig* loaded) {
  MeasureFactsOptions options;
  options.largest_batch = flags.part_batch > 0 ? flags.part_batch : PartBatch(loaded->config);
  options.sizes = SizeSharesOf(loaded->config);
  if (flags.image_size > 0) options.sizes = {{.image_size = flags.image_size}};
  options.frozen = loaded->config.train().freeze_epochs() == 0;  // what thaws counts
  const bool open = loaded->config.train().precision() == AUTO;
  RT_RETURN_IF_ERROR(
      DecidePrecision({options.largest_batch, options.sizes.front().image_size}, world, loaded));
  if (open && world->leads()) LogInfo(DescribeTakenPrecision(loaded->config.train()));
  RT_ASSIGN_OR_RETURN(PlannerFacts facts, MeasureAll(flags, options, world, loaded));
  if (!facts.has_cluster()) SetTypicalCluster(facts.mutable_cluster());
  return facts;
}

// Flags that are more than a number.
struct Asked {
  std::pair<int, int> hosts{0, 0};  // 0: the facts'
  double bits_per_s = 0;            // 0: the facts'
};

StatusOr<Asked> ParseAsked(const PlanFlags& flags) {
  Asked asked;
  if (!flags.hosts.empty()) {
    RT_ASSIGN_OR_RETURN(asked.hosts, ParseHosts(flags.hosts));
  }
  if (!flags.rate.empty()) {
    RT_ASSIGN_OR_RETURN(asked.bits_per_s, ParseBitRate(flags.rate));
  }
  return asked;
}

// What the flags say of the cluster.
Status Apply(const PlanFlags& flags, const Asked& asked, PlannerFacts* facts) {
  ClusterFacts* const cluster = facts->mutable_cluster();
  if (asked.hosts.second > 0) cluster->set_hosts(asked.hosts.second);
  if (flags.ranks_per_host > 0) cluster->set_ranks_per_host(flags.ranks_per_host);
  if (flags.cores > 0) cluster->set_cores_per_host(flags.cores);
  LinkFacts* const wire = cluster->mutable_between_hosts();
  if (asked.bits_per_s > 0) {
    wire->set_seconds_per_byte(kBitsPerByte / (kWireEfficiency * asked.bits_per_s));
  }
  if (flags.latency_us >= 0) wire->set_latency_s(flags.latency_us * kMicro);
  if (flags.cpu_s_per_gb >= 0) cluster->set_cpu_seconds_per_byte(flags.cpu_s_per_gb / kGiga);
  if (flags.cpu_us_per_message >= 0) {
    cluster->set_cpu_seconds_per_message(flags.cpu_us_per_message * kMicro);
  }
  return CheckFacts(*facts, nullptr);
}

// The answer for `hosts`, printed.
Status PrintAnswer(const PlanFlags& flags, const LoadedConfig& loaded, const PlannerFacts& facts,
                   int hosts) {
  NetworkFacts network = NetworkFacts::Of(facts);
  network.hosts = hosts;
  const int64_t batch = flags.batch > 0 ? flags.batch : loaded.config.train().batch();
  SearchSpace space = DefaultSpace(facts, network, batch, flags.most_period);
  if (!flags.schemes.empty()) space.schemes = flags.schemes;
  StepSimulator simulator(facts, network, {.shares_cores = !flags.dedicated_cores});
  RT_ASSIGN_OR_RETURN(PlanAnswer answer, AnswerPlan(&simulator, {.facts = &facts,
                                                                 .config = &loaded.config,
                                                                 .space = space,
                                                                 .periods = flags.periods,
                                                                 .slowness = flags.slowness}));
  RT_ASSIGN_OR_RETURN(answer.pipeline, PlanPipeline(loaded, facts, network, batch));
  if (flags.json) {
    std::cout << PlanJson(facts, network, answer) << '\n';
  } else {
    Print("{}\n", PlanTable(facts, network, answer));
  }
  return OkStatus();
}

Status Answer(const PlanFlags& flags, const Asked& asked, const LoadedConfig& loaded,
              PlannerFacts facts) {
  RT_RETURN_IF_ERROR(Apply(flags, asked, &facts));
  if (!flags.save.empty()) RT_RETURN_IF_ERROR(WriteFileAtomic(flags.save, FactsText(facts)));
  const int most = facts.cluster().hosts();
  const int least = asked.hosts.first > 0 ? asked.hosts.first : most;
  RT_RETURN_IF_ERROR(CheckSlowness(flags.slowness, least, most));
  for (int n = least; n <= most; ++n) {
    RT_RETURN_IF_ERROR(PrintAnswer(flags, loaded, facts, n));
  }
  return OkStatus();
}

// All ranks measure, and the first one answers.
StatusOr<int> MeasureAndAnswer(const PlanFlags& flags, const Asked& asked, LoadedConfig loaded,
                               WorldSession* session) {
  TrainingWorld* const world = session->everyone();
  RT_ASSIGN_OR_RETURN(PlannerFacts facts, Measure(flags, world, &loaded));
  if (world->leads()) RT_RETURN_IF_ERROR(Answer(flags, asked, loaded, std::move(facts)));
  return session->EndWith(kExitSuccess);
}

StatusOr<int> RunPlan(const PlanFlags& flags) {
  RT_RETURN_IF_ERROR(CheckSource(flags));
  RT_ASSIGN_OR_RETURN(const Asked asked, ParseAsked(flags));
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags.config.config, flags.config.set));
  if (loaded.config.dist().has_planned()) {  // a run's own: what it was before is planned anew
    RT_ASSIGN_OR_RETURN(loaded.config, WithoutPlan(std::move(loaded.config)));
  }
  if (!flags.from.empty()) {
    RT_ASSIGN_OR_RETURN(PlannerFacts facts, ReadFacts(flags.from));
    RT_RETURN_IF_ERROR(Answer(flags, asked, loaded, std::move(facts)));
    return kExitSuccess;
  }
  if (!flags.data.empty()) loaded.config.mutable_data()->set_path(flags.data);
  RT_ASSIGN_OR_RETURN(const RankIdentity identity, DetectRank(flags.rank, ProcessEnvironment));
  RT_RETURN_IF_ERROR(UseThreads(flags.config, loaded.config, identity.local_world_size,
                                identity.world_size > 1 ? kThreadsOfAWorld : 0)
                         .status());
  auto joined = WorldSession::Join(flags.world, identity, loaded.config);
  if (!joined.ok()) return WorldSession::FailToJoin(joined.status());
  const auto session = *std::move(joined);
  auto exit_code = MeasureAndAnswer(flags, asked, std::move(loaded), session.get());
  if (exit_code.ok() || session->everyone()->alone()) return exit_code;
  return session->Fail(exit_code.status());
}

void AddRanks(CLI::App* verb, PlanFlags* flags) {
  constexpr char kGroup[] = "Several ranks, with --measure (by default as the environment says)";
  AddRankFlags(verb, kGroup, &flags->rank);
  verb->add_option("--world", flags->rank.world_size, "The number of ranks")->group(kGroup);
  AddSecurityFlags(verb, kGroup, &flags->world.security, &flags->world.token_file);
}

void AddClusterFlags(CLI::App* verb, PlanFlags* flags) {
  constexpr char kGroup[] = "Cluster (default: the facts')";
  verb->add_option("--hosts", flags->hosts, "Hosts, such as 8 or 1..32; up to 1024")->group(kGroup);
  verb->add_option("--ranks-per-host", flags->ranks_per_host, "Ranks on each host")
      ->check(CLI::Range(1, kMostRanksPerHost))
      ->group(kGroup);
  verb->add_option("--cores", flags->cores, "Cores of a host (default: as measured)")
      ->check(NumberIn(CLI::Range(0.01, 4096.0)))
      ->group(kGroup);
  verb->add_option("--slowness", flags->slowness,
                   "How many times as long each host takes as the first one, such as 1,1,2,1")
      ->check(NumberIn(CLI::Range(0.01, 100.0)))
      ->delimiter(',')
      ->group(kGroup);
  verb->add_option("--rate", flags->rate, "Of the link of a host: 1gbit, 100mbit (default 1gbit)")
      ->group(kGroup);
  verb->add_option("--latency-us", flags->latency_us, "Of a message, microseconds (default 150)")
      ->check(NumberIn(CLI::Range(0.0, 1e9)))
      ->group(kGroup);
  verb->add_option("--cpu-s-per-gb", flags->cpu_s_per_gb,
                   "Processor seconds of a rank per GB that it sends (default 1.24)")
      ->check(NumberIn(CLI::Range(0.0, 1e6)))
      ->group(kGroup);
  verb->add_option("--cpu-us-per-message", flags->cpu_us_per_message,
                   "Processor microseconds of a rank per message that it sends (default 130)")
      ->check(NumberIn(CLI::Range(0.0, 1e6)))
      ->group(kGroup);
}

}  // namespace

void AddPlanCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* verb = app->add_subcommand(
      "plan", "Predict how fast several hosts would train, and say what to set");
  verb->footer(
      Examples({"plan --measure --data IMAGES --hosts 8 --rate 1gbit --save facts.textproto",
                "plan --from facts.textproto --hosts 1..32 --cores 32 --rate 10gbit"},
               kNotes));
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  constexpr int64_t kMost = 1 << 20;
  verb->add_flag("--measure", flags->measure,
                 "Measure the network on this machine, or on all ranks of a job");
  verb->add_option("--data", flags->data,
                   "Folder, list file or packed file with images: measure loading them, too")
      ->type_name("PATH");
  verb->add_option("--from", flags->from, "Read facts from this file")->type_name("FILE");
  verb->add_option("--save", flags->save, "Write the facts to this file")->type_name("FILE");
  verb->add_option("--batch", flags->batch,
                   "Images per step, of all ranks together (default: the config's, as on one host)")
      ->check(CLI::Range(int64_t{1}, kMost));
  verb->add_option("--part-batch", flags->part_batch,
                   "Largest batch to measure (default: the config's batch / accumulation)")
      ->check(CLI::Range(int64_t{1}, kMost));
  verb->add_option("--image-size", flags->image_size,
                   "Pixels (default: the config's, in the shares that it trains them)")
      ->check(CLI::Range(kMinImageSize, kMaxImageSize));
  verb->add_option("--most-period", flags->most_period, "Try up to so many local steps")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--schemes", flags->schemes,
                   "Try only these, such as dense,linear8 (default: dense and all of the facts)")
      ->delimiter(',');
  verb->add_option("--periods", flags->periods,
                   "Predict these numbers of local steps for every scheme, too, such as 1,4,16")
      ->check(CLI::Range(1, 1024))
      ->delimiter(',');
  CLI::Option* const dedicated = verb->add_flag(
      "--dedicated-cores", flags->dedicated_cores,
      "As if communication took no time of the cores that compute, to see what it costs");
  AddClusterFlags(verb, flags.get());
  verb->get_option("--slowness")->excludes(dedicated);
  AddRanks(verb, flags.get());
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->callback([flags, chosen] { *chosen = [flags] { return RunPlan(*flags); }; });
}

}  // namespace ringtail
