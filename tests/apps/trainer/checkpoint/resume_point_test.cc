// What a run continues from, written into the metadata of a checkpoint and read back; old
// checkpoints.
#include "apps/trainer/checkpoint/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "apps/trainer/checkpoint/metadata_text.h"
#include "core/storage/safetensors.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

ResumePoint Example() {
  ResumePoint point;
  point.config = TinyConfig().config;
  point.data = {.fingerprint = "00000000000000ab", .contents = "00000000000000cd", .counts = "40"};
  point.progress = {.step = 7,
                    .evaluated_step = 5,
                    .best_step = 5,
                    .best_accuracy = 0.1 + 0.2,  // needs all 17 digits
                    .skipped_steps = 3,
                    .skipped_in_a_row = 2,
                    .unimproved = 1};
  point.division = {
      .global_batch = 64, .batches = {43, 21}, .machines = {"a", "b, c"}, .threads = {4, 2}};
  point.numerics = {.threads = 3, .isa = "avx2", .matrices = "f32"};
  point.algorithms = "{}";
  point.allreduces = {{104, "recursive_doubling"}, {8388608, "ring"}};
  point.local = {.rounds = 12,
                 .offers = 1,
                 .period = {.measured = 4,
                            .longest = 2,
                            .watched = 3,
                            .cosines = 0.1 + 0.2,
                            .squares = -0.0,
                            .measured_size = 64}};
  point.compression = {.world = 2, .letters = "dg"};
  point.agreed_ranks = 2;
  point.written_after = "rank 1 was lost";
  return point;
}

class ResumePointTest : public testing::Test {
 protected:
  StatusOr<ResumePoint> Read(const Metadata& metadata) const {
    RT_CHECK(WriteSafetensors(path_, {}, metadata).ok(), path_);
    return ReadResumePoint(
        {.step = 7, .path = path_, .file = SafetensorsFile::Read(path_).value()});
  }
  Metadata Written() const { return MetadataOf(Example(), {"cat", "dog"}); }
  // A message that names the file and says `text`.
  void ExpectDamaged(const std::string& key, const std::string& text) const {
    Metadata metadata = Written();
    metadata[key] = text;
    const Status status = Read(metadata).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << key << " " << text;
    EXPECT_THAT(status.message(), AllOf(StartsWith(path_), HasSubstr(key))) << text;
  }

  const TempDir folder_;
  const std::string path_ = folder_.File("checkpoint.safetensors");
};

TEST_F(ResumePointTest, EverythingComesBack) {
  const ResumePoint written = Example(), read = Read(Written()).value();
  EXPECT_FALSE(read.empty());
  EXPECT_EQ(read.path, path_);
  EXPECT_EQ(read.config_text, PrintTextConfig(written.config));
  EXPECT_EQ(read.data.fingerprint, written.data.fingerprint);
  EXPECT_EQ(read.data.contents, written.data.contents);
  EXPECT_EQ(read.data.counts, written.data.counts);
  EXPECT_EQ(read.progress.step, 7);
  EXPECT_EQ(read.progress.best_accuracy, 0.1 + 0.2);
  EXPECT_EQ(read.progress.skipped_in_a_row, 2);
  EXPECT_EQ(read.progress.unimproved, 1);
  EXPECT_EQ(read.division.global_batch, 64);
  EXPECT_EQ(read.division.batches, written.division.batches);
  EXPECT_EQ(read.division.machines, written.division.machines);
  EXPECT_EQ(read.division.threads, written.division.threads);
  EXPECT_EQ(read.numerics, written.numerics);
  EXPECT_EQ(read.algorithms, written.algorithms);
  EXPECT_EQ(read.allreduces, written.allreduces);
  EXPECT_EQ(read.local.rounds, 12);
  EXPECT_EQ(read.local.period.cosines, 0.1 + 0.2);
  EXPECT_EQ(read.local.period.measured_size, 64);
  EXPECT_EQ(read.compression.world, 2);
  EXPECT_EQ(read.compression.letters, "dg");
  EXPECT_EQ(read.agreed_ranks, 2);
  EXPECT_EQ(read.written_after, written.written_after);
  // Nothing is lost: what was read is written again as it was.
  EXPECT_EQ(MetadataOf(read, {"cat", "dog"}), Written());
}

// Before a rank joins the others it knows all but the tensors.
TEST_F(ResumePointTest, AHeadIsThePointWithoutTensors) {
  const ResumeHead head = ReadResumeHead({.step = 7, .path = path_, .metadata = Written()}).value();
  ResumePoint point;
  static_cast<ResumeHead&>(point) = head;
  EXPECT_TRUE(point.empty());
  EXPECT_EQ(point.path, path_);
  EXPECT_EQ(point.config_text, PrintTextConfig(Example().config));
  EXPECT_EQ(MetadataOf(point, {"cat", "dog"}), Written());
  const Status foreign = ReadResumeHead({.step = 7, .path = path_, .metadata = {}}).status();
  EXPECT_EQ(foreign.code(), StatusCode::kFailedPrecondition);
}

// Keys are persisted, so their spelling never changes.
TEST_F(ResumePointTest, KeysAreThoseOfEarlierRuns) {
  Metadata keys = Written();
  for (const char* key :
       {"agreed_ranks",     "allreduce_algorithms",   "best_accuracy",    "best_step",
        "class_names",      "completed_steps",        "compression_ways", "compute_threads",
        "config",           "convolution_algorithms", "data_contents",    "data_fingerprint",
        "evaluated_step",   "evaluations_since_best", "global_batch",     "images",
        "instruction_set",  "last_accuracy",          "local_batches",    "local_rounds",
        "machines",         "ringtail_version",       "skipped_in_a_row", "skipped_steps",
        "threads_of_ranks", "update_matrices",        "written_after"}) {
    EXPECT_EQ(keys.erase(key), 1U) << key;
  }
  EXPECT_THAT(keys, IsEmpty());
}

TEST_F(ResumePointTest, AnOldCheckpointNeedNotKnowEverything) {
  Metadata old = Written();
  for (const char* key :
       {"agreed_ranks", "allreduce_algorithms", "compression_ways", "compute_threads",
        "convolution_algorithms", "data_contents", "evaluations_since_best", "global_batch",
        "images", "instruction_set", "local_batches", "local_rounds", "machines",
        "threads_of_ranks", "update_matrices", "written_after"}) {
    old.erase(key);
  }
  old["pictures"] = "40 to train on";
  const ResumePoint point = Read(old).value();
  EXPECT_EQ(point.data.contents, std::nullopt);
  EXPECT_EQ(point.data.counts, "40 to train on");
  EXPECT_EQ(point.progress.unimproved, -1);
  EXPECT_EQ(point.division.global_batch, 0);
  EXPECT_THAT(point.division.batches, IsEmpty());
  EXPECT_THAT(point.allreduces, IsEmpty());
  EXPECT_EQ(point.numerics, Numerics());
  EXPECT_EQ(point.compression.world, 0);
  EXPECT_EQ(point.agreed_ranks, -1);
  const DataIdentity now{.fingerprint = point.data.fingerprint, .contents = "of any kind"};
  EXPECT_TRUE(CheckSameRun(point, Example().config, now).ok());
}

TEST_F(ResumePointTest, AnotherConfigOtherImagesAndOtherFilesAreRefused) {
  const ResumePoint point = Read(Written()).value();
  const DataIdentity same = Example().data;
  EXPECT_TRUE(CheckSameRun(point, Example().config, same).ok());
  EXPECT_TRUE(CheckSameRun(ResumePoint(), RunConfig(), {}).ok()) << "a run that begins";
  const auto refusal = [&](const RunConfig& config, const DataIdentity& data) {
    const Status status = CheckSameRun(point, config, data);
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), StartsWith(path_));
    return status.message();
  };
  EXPECT_THAT(refusal(TinyConfig({"train.batch=10"}).config, same),
              HasSubstr("train.batch: 8 -> 10"));
  EXPECT_THAT(refusal(point.config, {.fingerprint = "1", .contents = "2", .counts = "39"}),
              HasSubstr("the images or their split are not those that the run began with (40; "
                        "now 39)"));
  EXPECT_THAT(refusal(point.config, {.fingerprint = same.fingerprint, .contents = "2"}),
              HasSubstr("what is in their files is not the same"));
}

TEST_F(ResumePointTest, AFileThatIsNoCheckpointOfARunIsRefused) {
  for (const char* key : {"config", "data_fingerprint"}) {
    Metadata metadata = Written();
    metadata.erase(key);
    const Status status = Read(metadata).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << key;
    EXPECT_THAT(status.message(), HasSubstr("this is no checkpoint of a run")) << key;
  }
}

TEST_F(ResumePointTest, MissingAndBrokenNumbersAreNamed) {
  Metadata metadata = Written();
  metadata.erase("best_step");
  EXPECT_THAT(Read(metadata).status().message(), HasSubstr("'best_step'"));
  for (const char* text : {"", "x", "1x", "1.5", "99999999999999999999"}) {
    ExpectDamaged("best_step", text);
  }
}

// They would end in an internal error, or in a run that relies on wrong numbers.
TEST_F(ResumePointTest, NumbersThatNoRunComesToAreRefused) {
  const std::pair<const char*, const char*> wrong[] = {
      {"completed_steps", "-1"},
      {"completed_steps", "9223372036854775807"},
      {"evaluated_step", "8"},
      {"evaluated_step", "-1"},
      {"best_step", "8"},
      {"best_step", "-2"},
      {"best_accuracy", "nan"},
      {"best_accuracy", "inf"},
      {"best_accuracy", "1.5"},
      {"skipped_steps", "-1"},
      {"skipped_in_a_row", "8"},
      {"skipped_in_a_row", "-1"},
      {"evaluations_since_best", "8"},
      {"skipped_steps", "458753"},  // of 7 steps and at most 65,536 ranks
  };
  for (const auto& [key, text] : wrong) ExpectDamaged(key, text);
}

// Ranks that take steps of their own count what each of them leaves out; here eight did in every step,
// before the run went on with two.
TEST_F(ResumePointTest, RanksMayHaveLeftOutMoreStepsThanThereWere) {
  Metadata metadata = Written();
  metadata["skipped_steps"] = "56";
  EXPECT_EQ(Read(metadata).value().progress.skipped_steps, 56);
}

TEST_F(ResumePointTest, ADamagedDivisionIsRefused) {
  for (const char* damaged : {"43,22", "43", "43,x", "43,-21", "0,64", ",", "99999999999999999999",
                              "65,9223372036854775807",
                              "9223372036854775807,9223372036854775807,66"}) {  // 64 with 64 bits
    Metadata metadata = Written();
    metadata["local_batches"] = damaged;
    const Status status = Read(metadata).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << damaged;
    EXPECT_THAT(status.message(),
                AllOf(StartsWith(path_), HasSubstr(damaged), HasSubstr("is damaged")));
  }
  ExpectDamaged("threads_of_ranks", "4097,1");
}

TEST_F(ResumePointTest, AllreducesThatAreNoListAreDamaged) {
  for (const char* text : {"ring", "=ring", "12", "-4=ring", "8=ring,,7=ring", "8=ring,x=ring"}) {
    ExpectDamaged("allreduce_algorithms", text);
  }
}

// Older checkpoints do not say which images AUTO has measured.
TEST_F(ResumePointTest, LocalRoundsMayBeSevenNumbers) {
  Metadata old = Written();
  old["local_rounds"] = "12,1,4,0,3,0.5,0.1";
  const ResumePoint point = Read(old).value();
  EXPECT_EQ(point.local.period.squares, 0.1);
  EXPECT_EQ(point.local.period.measured_size, 0);
}

TEST_F(ResumePointTest, LocalRoundsThatAreNoEightNumbersAreDamaged) {
  for (const char* text :
       {"12", "12,1,4,0,3,0.5", "12,1,4,0,3,0.5,0.1,7,8", "12,1,4,0,3,0.5,0.1,-7",
        "-1,1,4,0,3,0.5,0.1", "12,1,4,0,3,nan,0.1", "12,1,4,0,3,,0.1", "12,8,4,0,3,0.5,0.1"}) {
    ExpectDamaged("local_rounds", text);
  }
}

TEST_F(ResumePointTest, CompressionWithoutANumberOfRanksIsDamaged) {
  for (const char* wrong : {"", "dd", ":dd", "x:dd", "2x:dd", "99999999999:dd"}) {
    ExpectDamaged("compression_ways", wrong);
  }
}

// Another number of threads changes the last bits only.
TEST_F(ResumePointTest, ThreadsThatCannotBeAreNotKnown) {
  for (const char* wrong : {"", "0", "x", "5000"}) {
    Metadata metadata = Written();
    metadata["compute_threads"] = wrong;
    EXPECT_EQ(Read(metadata).value().numerics.threads, 0) << wrong;
  }
}

}  // namespace
}  // namespace ringtail
