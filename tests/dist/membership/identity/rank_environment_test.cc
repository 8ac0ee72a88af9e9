#include "dist/membership/identity/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ringtail {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

StatusOr<RankIdentity> Detect(const Variables& variables, const RankFlags& flags = {}) {
  return DetectRank(flags, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// "rank/world local/local world host:port source"
std::string Found(const Variables& variables, const RankFlags& flags = {}) {
  const auto identity = Detect(variables, flags);
  if (!identity.ok()) return identity.status().ToString();
  const auto& id = *identity;
  return std::to_string(id.rank) + "/" + std::to_string(id.world_size) + " " +
         std::to_string(id.local_rank) + "/" + std::to_string(id.local_world_size) + " " +
         id.master_address + ":" + std::to_string(id.master_port) + " " + id.source;
}

std::string Refusal(const Variables& variables, const RankFlags& flags = {}) {
  const auto identity = Detect(variables, flags);
  EXPECT_EQ(identity.status().code(), StatusCode::kInvalidArgument);
  return identity.ok() ? "" : identity.status().message();
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kTorchrun = {{"RANK", "5"},           {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "n1.x"}, {"MASTER_PORT", "1234"}};
const Variables kSrun = {{"SLURM_JOB_ID", "101"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_STEP_NUM_TASKS", "4"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                         {"SLURM_STEP_NODELIST", "n[07-08]"},
                         {"SLURM_JOB_NODELIST", "n[01-08]"}};
const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "2"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables kHydra = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables kPod = {{"JOB_COMPLETION_INDEX", "3"}, {"MASTER_ADDR", "train-0.train"}};

TEST(RankEnvironmentTest, FindsEverySource) {
  EXPECT_EQ(Found({}), "0/1 0/1 :0 alone");
  EXPECT_EQ(Found({}, {.rank = 1, .world_size = 2, .master = "n1:77"}),
            "1/2 0/1 n1:77 --rank, --world");
  EXPECT_EQ(Found({{"RINGTAIL_RANK", "1"},
                   {"RINGTAIL_WORLD_SIZE", "3"},
                   {"RINGTAIL_LOCAL_RANK", "1"},
                   {"RINGTAIL_MASTER", "[::1]:77"}}),
            "1/3 1/2 ::1:77 RINGTAIL_RANK, RINGTAIL_WORLD_SIZE");
  EXPECT_EQ(Found(kTorchrun), "5/8 1/4 n1.x:1234 RANK, WORLD_SIZE");
  EXPECT_EQ(Found(kSrun), "3/4 1/2 n07:21618 Slurm");
  EXPECT_EQ(Found(kMpirun), "2/4 2/4 127.0.0.1:29500 Open MPI");
  EXPECT_EQ(Found(kHydra), "1/2 1/2 127.0.0.1:29500 PMI");
  EXPECT_EQ(Found({{"PET_NODE_RANK", "1"},
                   {"PET_NNODES", "2"},
                   {"PET_NPROC_PER_NODE", "1"},
                   {"PET_MASTER_ADDR", "trainer-0"},
                   {"PET_MASTER_PORT", "29400"}}),
            "1/2 0/1 trainer-0:29400 Kubeflow");
  EXPECT_EQ(Found(With(kPod, {{"WORLD_SIZE", "4"}})), "3/4 0/1 train-0.train:29500 Kubernetes");
}

TEST(RankEnvironmentTest, TheFirstCompleteSetWins) {
  Variables all = With(With(kHydra, kMpirun), kSrun);
  EXPECT_THAT(Found(all), HasSubstr("Open MPI"));
  all = With(all, kTorchrun);
  EXPECT_THAT(Found(all), HasSubstr(" RANK, WORLD_SIZE"));
  all = With(all, {{"RINGTAIL_RANK", "0"}, {"RINGTAIL_WORLD_SIZE", "9"}});
  EXPECT_EQ(Found(all), "0/9 0/1 n1.x:1234 RINGTAIL_RANK, RINGTAIL_WORLD_SIZE");
  EXPECT_EQ(Found(all, {.rank = 1, .world_size = 2}), "1/2 0/1 n1.x:1234 --rank, --world");
  EXPECT_EQ(Found(all, {.rank = 1, .world_size = 2, .local_rank = 1, .master = "m"}),
            "1/2 1/2 m:29500 --rank, --world");
}

TEST(RankEnvironmentTest, TheMasterIsTakenFromWhereverItIsSaid) {
  EXPECT_EQ(Found(kSrun, {.master = "10.0.0.1"}), "3/4 1/2 10.0.0.1:29500 Slurm");
  EXPECT_EQ(Found(With(kSrun, {{"MASTER_PORT", "5000"}})), "3/4 1/2 n07:5000 Slurm");
  Variables two_hosts = With(kMpirun, {{"OMPI_COMM_WORLD_SIZE", "8"}});
  EXPECT_THAT(Refusal(two_hosts), HasSubstr("rank 2 of 8 (Open MPI) is not told where rank 0 is"));
  EXPECT_EQ(Found(With(two_hosts, {{"MASTER_ADDR", "a"}})), "2/8 2/4 a:29500 Open MPI");
  EXPECT_THAT(Refusal({}, {.rank = 0, .world_size = 2}), HasSubstr("MASTER_ADDR and MASTER_PORT"));
}

TEST(RankEnvironmentTest, HalfASetIsAnError) {
  EXPECT_THAT(Refusal({{"RANK", "1"}}), HasSubstr("RANK=1 is set, but WORLD_SIZE is not"));
  EXPECT_THAT(Refusal({{"WORLD_SIZE", "4"}}), HasSubstr("WORLD_SIZE=4 is set, but RANK is not"));
  EXPECT_THAT(Refusal({{"RANK", "1"}, {"WORLD_SIZE", ""}}), HasSubstr("WORLD_SIZE is not"));
  EXPECT_THAT(Refusal({{"PMI_SIZE", "4"}}), HasSubstr("PMI_RANK is not"));
  EXPECT_THAT(Refusal({{"SLURM_STEP_ID", "0"}}), HasSubstr("SLURM_PROCID is not"));
  EXPECT_THAT(Refusal({}, {.rank = 1}), HasSubstr("--rank 1 without --world"));
  EXPECT_THAT(Refusal({}, {.world_size = 4}), HasSubstr("--world 4 without --rank"));
  EXPECT_THAT(Refusal(kPod), HasSubstr("JOB_COMPLETION_INDEX is set, but not how many"));
}

TEST(RankEnvironmentTest, ValuesAreReadStrictly) {
  for (const char* value : {"x", "-1", "1x", " 1", "1.0", "+1", "99999999999999999999", "65536"}) {
    EXPECT_THAT(Refusal(With(kTorchrun, {{"RANK", value}})),
                HasSubstr("RANK=" + std::string(value) + " is not a number from 0 to 65535"));
  }
  EXPECT_THAT(Refusal(With(kTorchrun, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE=0 is not"));
  EXPECT_THAT(Refusal(With(kTorchrun, {{"RANK", "8"}})), HasSubstr("RANK=8 is not below WORLD"));
  EXPECT_THAT(Refusal(With(kTorchrun, {{"LOCAL_RANK", "4"}})), HasSubstr("rank 4 of 4 on its"));
  EXPECT_THAT(Refusal(With(kTorchrun, {{"MASTER_PORT", "65536"}})), HasSubstr("MASTER_PORT=65536"));
  EXPECT_THAT(Refusal(With(kTorchrun, {{"MASTER_ADDR", "a b"}})), HasSubstr("MASTER_ADDR=a b"));
  EXPECT_THAT(Refusal(With(kSrun, {{"SLURM_STEP_NODELIST", "n[1-"}})),
              HasSubstr("SLURM_STEP_NODELIST: expected a number"));
  EXPECT_THAT(Refusal({{"PET_NODE_RANK", "0"}, {"PET_NNODES", "1:4"}}),
              HasSubstr("PET_NNODES=1:4"));
  EXPECT_THAT(Refusal({{"PET_NODE_RANK", "0"}, {"PET_NNODES", "2"}, {"PET_NPROC_PER_NODE", "8"}}),
              HasSubstr("PET_NPROC_PER_NODE=8"));
  EXPECT_THAT(Refusal({}, {.rank = 2, .world_size = 2}), HasSubstr("--rank 2"));
  EXPECT_THAT(Refusal({}, {.rank = 0, .world_size = 0}), HasSubstr("--world 0"));
  for (const char* master : {"", ":", "a:", "a:0", "a:65536", "a:x", "[::1", "[::1]5",
                             "[::1]:", "a b", "-o", "http://a"}) {
    EXPECT_THAT(Refusal({}, {.rank = 0, .world_size = 2, .master = master}),
                HasSubstr("--master=" + std::string(master) + " is not HOST"));
  }
}

TEST(RankEnvironmentTest, ABatchScriptOutsideOfSrunIsAlone) {
  Variables script = kSrun;
  script.erase("SLURM_STEP_ID");
  EXPECT_EQ(Found(script), "0/1 0/1 :0 alone");
  for (const char* step : {"4294967290", "4294967291", "4294967292"}) {
    EXPECT_EQ(Found(With(kSrun, {{"SLURM_STEP_ID", step}})), "0/1 0/1 :0 alone");
  }
}

TEST(RankEnvironmentTest, TasksOfSrunCountTheStepAndNotTheJob) {
  EXPECT_EQ(Found(With(kSrun, {{"SLURM_NTASKS", "8"}})), "3/4 1/2 n07:21618 Slurm");
  Variables old = kSrun;
  old.erase("SLURM_STEP_NUM_TASKS");
  old.erase("SLURM_STEP_NODELIST");
  EXPECT_EQ(Found(old), "3/4 1/2 n01:21618 Slurm");
  EXPECT_EQ(Found(With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "1,3"}})), "3/4 1/3 n07:21618 Slurm");
  EXPECT_EQ(Found(With(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "nonsense(x"}})),
            "3/4 1/2 n07:21618 Slurm");
}

TEST(RankEnvironmentTest, PortsOfSlurmJobsStayInTheirRange) {
  for (const char* job : {"0", "1", "624", "625", "4294967295"}) {
    const auto identity = Detect(With(kSrun, {{"SLURM_JOB_ID", job}}));
    ASSERT_TRUE(identity.ok());
    EXPECT_GE(identity->master_port, kSlurmFirstPort);
    EXPECT_LT(identity->master_port, kSlurmFirstPort + kSlurmPorts);
  }
  const auto first = Detect(kSrun), step = Detect(With(kSrun, {{"SLURM_STEP_ID", "3"}})),
             job = Detect(With(kSrun, {{"SLURM_JOB_ID", "102"}}));
  EXPECT_NE(first->master_port, step->master_port);
  EXPECT_NE(first->master_port, job->master_port);
  EXPECT_NE(step->master_port, job->master_port);
}

TEST(RankEnvironmentTest, DaemonsOfMpirunInASlurmJobDoNotCount) {
  EXPECT_EQ(Found(With(kSrun, kMpirun)), "2/4 2/4 127.0.0.1:29500 Open MPI");
  EXPECT_EQ(Found(With(kSrun, kHydra)), "1/2 1/2 127.0.0.1:29500 PMI");
  // srun --mpi=pmi2 sets PMI_RANK as well, but it starts the tasks itself.
  EXPECT_THAT(Found(With(kSrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}})), HasSubstr("Slurm"));
}

TEST(RankEnvironmentTest, AKubernetesServiceCalledMasterIsNotOurs) {
  const Variables pod = With(kPod, {{"WORLD_SIZE", "4"}, {"MASTER_PORT", "tcp://10.96.0.7:80"}});
  EXPECT_EQ(Found(pod), "3/4 0/1 train-0.train:29500 Kubernetes");
  EXPECT_EQ(Found(With(kPod, {{"RINGTAIL_WORLD_SIZE", "4"}})),
            "3/4 0/1 train-0.train:29500 Kubernetes");
  EXPECT_EQ(Found(kPod, {.world_size = 4}), "3/4 0/1 train-0.train:29500 Kubernetes");
  EXPECT_THAT(Refusal(kPod, {.world_size = 3}),
              HasSubstr("JOB_COMPLETION_INDEX=3 is not below --world=3"));
  EXPECT_THAT(Refusal(With(kPod, {{"WORLD_SIZE", "tcp://10.96.0.7:80"}})),
              HasSubstr("WORLD_SIZE=tcp://10.96.0.7:80 is not a number"));
}

}  // namespace
}  // namespace ringtail
