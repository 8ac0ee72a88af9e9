// TensorBoard's event files and results.csv, from the history of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <span>

#include "apps/report/event.pb.h"
#include "apps/report/event_log.h"
#include "apps/report/results_table.h"
#include "apps/report/tensorboard_events.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte / 16];
    hex += "0123456789abcdef"[byte % 16];
  }
  return hex;
}

// Reads records back; every checksum must be right.
std::vector<tensorboard::Event> ReadEvents(const std::string& file) {
  const auto number_at = [&](size_t at) {
    uint32_t number = 0;
    std::memcpy(&number, file.data() + at, sizeof(number));
    return number;
  };
  const auto masked = [](const std::string& bytes) {
    const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
    return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
  };
  std::vector<tensorboard::Event> events;
  for (size_t at = 0; at < file.size();) {
    uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof(length));
    EXPECT_EQ(number_at(at + 8), masked(file.substr(at, 8)));
    const std::string event = file.substr(at + 12, length);
    EXPECT_EQ(number_at(at + 12 + length), masked(event));
    EXPECT_TRUE(events.emplace_back().ParseFromString(event));
    at += 16 + length;
  }
  return events;
}

RunHistory Example() {
  RunHistory history;
  history.training = {
      {.step = 1, .epoch = 0.5, .loss = 2, .accuracy = 0.25, .learning_rate = 0.1, .time = 1000},
      {.step = 2, .epoch = 1, .loss = 1, .accuracy = NAN, .learning_rate = 0.3, .time = 1001.5}};
  history.evaluation = {{.step = 2, .epoch = 1, .loss = 1.5, .accuracy = 0.5, .time = 1002}};
  return history;
}

// The bytes were computed by another program, from the definition of the CRC bit by bit.
TEST(EventFileTest, RecordsHaveTheirGoldenBytes) {
  EXPECT_EQ(Hex(EventRecord("abc")), "0300000000000000b099490e6162636e57f121");
  EXPECT_EQ(Hex(EventFile({})),
            "1800000000000000a37f4b220900000000000000001a0d627261696e2e4576656e743a32eedf28a3"
            "0f000000000000006d532b0909000000000000000010003a020801530e2add");
}

TEST(EventFileTest, HasAPointPerStep) {
  const auto events = ReadEvents(EventFile(Example().training));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 0);
  EXPECT_EQ(events[2].step(), 1);
  EXPECT_EQ(events[2].wall_time(), 1000);
  ASSERT_EQ(events[2].summary().value_size(), 3);
  EXPECT_EQ(events[2].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 2);
  EXPECT_EQ(events[3].summary().value_size(), 2);  // no accuracy
  EXPECT_EQ(events[3].summary().value(1).tag(), "learning_rate");
}

TEST(EventFileTest, WithoutTimesThoseOfThePointBefore) {
  auto points = Example().training;
  points[1].time = NAN;
  EXPECT_EQ(ReadEvents(EventFile(points))[3].wall_time(), 1000);
  points[0].time = NAN;
  EXPECT_EQ(ReadEvents(EventFile(points))[2].wall_time(), 0);
}

std::string OnlyFile(const std::string& folder) {
  const auto names = EventFileNames(folder);
  EXPECT_EQ(names.size(), 1U);
  return names.empty() ? "" : ReadFileText(folder + "/" + names[0], 1 << 20).value();
}

TEST(WriteEventFilesTest, HaveEveryPointOnce) {
  const TempDir folder;
  ASSERT_TRUE(WriteEventFiles(folder.path(), Example()).ok());
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(Example().training));
  EXPECT_EQ(OnlyFile(folder.File("validation")), EventFile(Example().evaluation));
  const auto names = EventFileNames(folder.File("train"));
  ASSERT_TRUE(WriteEventFiles(folder.path(), Example()).ok());
  EXPECT_EQ(EventFileNames(folder.File("train")), names);  // nothing to do
}

TEST(WriteEventFilesTest, LeaveAFileThatIsAhead) {
  const TempDir folder;
  RunHistory behind = Example();
  ASSERT_TRUE(WriteEventFiles(folder.path(), behind).ok());
  const auto names = EventFileNames(folder.File("train"));
  behind.training.pop_back();
  ASSERT_TRUE(WriteEventFiles(folder.path(), behind).ok());
  EXPECT_EQ(EventFileNames(folder.File("train")), names);
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(Example().training));
}

TEST(WriteEventFilesTest, ReplaceAnotherHistoryByALaterName) {
  const TempDir folder;
  ASSERT_TRUE(WriteEventFiles(folder.path(), Example()).ok());
  const auto names = EventFileNames(folder.File("train"));
  RunHistory other = Example();
  other.training[1].loss = 7;
  other.evaluation.clear();
  ASSERT_TRUE(WriteEventFiles(folder.path(), other).ok());
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(other.training));
  EXPECT_GT(EventFileNames(folder.File("train")), names);
  EXPECT_TRUE(EventFileNames(folder.File("validation")).empty());
}

TEST(EventLogTest, IsAtAnyTimeTheFileOfItsPoints) {
  const TempDir folder;
  const RunHistory all = Example();
  RunHistory before = all;
  before.training.pop_back();
  before.evaluation.clear();
  auto log = EventLog::Open(folder.path(), before).value();
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(before.training));
  EXPECT_TRUE(EventFileNames(folder.File("validation")).empty());
  ASSERT_TRUE(log.AddTraining(all.training[1]).ok());
  ASSERT_TRUE(log.AddEvaluation(all.evaluation[0]).ok());
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(all.training));
  EXPECT_EQ(OnlyFile(folder.File("validation")), EventFile(all.evaluation));
  // A program that has read that file finds the next one behind it.
  const auto names = EventFileNames(folder.File("train"));
  ASSERT_TRUE(EventLog::Open(folder.path(), before).ok());
  EXPECT_EQ(OnlyFile(folder.File("train")), EventFile(before.training));
  EXPECT_GT(EventFileNames(folder.File("train")), names);
}

TEST(EventLogTest, AFileInItsPlaceIsNamed) {
  const TempDir folder;
  ASSERT_TRUE(WriteFileAtomic(folder.File("train"), "no folder").ok());
  auto log = EventLog::Open(folder.path(), {});
  ASSERT_TRUE(log.ok());
  EXPECT_THAT(log->AddTraining(Example().training[0]).message(), testing::HasSubstr("train"));
}

TEST(ResultsCsvTest, ARowPerEvaluation) {
  EXPECT_EQ(ResultsCsv(Example()),
            "epoch,step,time,train/loss,train/accuracy,val/loss,metrics/accuracy_top1,lr/pg0\n"
            "1,2,2,1.5,0.25,1.5,0.5,0.2\n");
  RunHistory history = Example();
  history.training.clear();
  history.evaluation[0].time = NAN;
  EXPECT_EQ(ResultsCsv(history).substr(ResultsCsv({}).size()), "1,2,,,,1.5,0.5,\n");
}

}  // namespace
}  // namespace ringtail
