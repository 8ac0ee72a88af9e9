// A checkpoint that the disk has changed is never mistaken for the saved one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/logging.h"
#include "core/storage/file.h"
#include "tests/core/checkpoint_content.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr size_t kPage = 4096;

// A run with intact checkpoints of step 1 and 2; tests damage that of step 2.
class CheckpointDamageTest : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<RunLock> lock = RunLock::Acquire(dir_.path());
    ASSERT_TRUE(lock.ok());
    StatusOr<CheckpointDirectory> directory = CheckpointDirectory::Open(*lock);
    ASSERT_TRUE(directory.ok());
    for (const int64_t step : {1, 2}) ASSERT_TRUE(SaveTestCheckpoint(&*directory, step).ok());
    path_ = directory->Path(2);
    intact_ = *ReadFileText(path_, 1 << 20);
    ASSERT_EQ(LoadNewestCheckpoint(dir_.path())->step, 2);
  }

  // Whether `content` in place of the newest checkpoint is refused, and the previous one is loaded.
  bool FallsBack(const std::string& content) const {
    std::filesystem::remove(path_);  // truncated and written files may be flushed at once
    std::ofstream(path_) << content;
    const StatusOr<Checkpoint> damaged = LoadCheckpoint(path_);
    const StatusOr<Checkpoint> newest = LoadNewestCheckpoint(dir_.path());
    return !damaged.ok() && damaged.status().message().find(path_) != std::string::npos &&
           newest.ok() && newest->step == 1 && HoldsItsStep(*newest);
  }
  std::string WithFlippedBit(size_t bit) const {
    std::string content = intact_;
    content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << (bit % 8)));
    return content;
  }

  const TempDir dir_;
  std::string path_;
  std::string intact_;
};

TEST_F(CheckpointDamageTest, AThousandFlippedBits) {
  Rng rng(RngKey(5).With(kTestStream));
  for (int trial = 0; trial < 1000; ++trial) {
    const size_t bit = rng.Below(intact_.size() * 8);
    ASSERT_TRUE(FallsBack(WithFlippedBit(bit))) << "bit " << bit;
  }
}

// Few random bits hit the header, where one can change a name, a shape or a checksum. No bit may
// disable the checksums either.
TEST_F(CheckpointDamageTest, EveryBitOfTheHeader) {
  const size_t header_bytes = intact_.size() - (kTestWeights + 1) * sizeof(float);
  ASSERT_GT(header_bytes, 200u);
  for (size_t bit = 0; bit < header_bytes * 8; ++bit) {
    const std::string damaged = WithFlippedBit(bit);
    ASSERT_TRUE(FallsBack(damaged)) << "bit " << bit;
    const auto bytes = std::as_bytes(std::span(damaged));
    ASSERT_FALSE(SafetensorsFile::Parse({bytes.begin(), bytes.end()}, "damaged").ok()) << bit;
  }
}

TEST_F(CheckpointDamageTest, TruncationAtEveryPageAndAtBothEnds) {
  std::vector<size_t> sizes = {1, 7, 8, 9, 63, 64, intact_.size() - 1};
  for (size_t size = 0; size < intact_.size(); size += kPage) sizes.push_back(size);
  for (const size_t size : sizes) {
    ASSERT_TRUE(FallsBack(intact_.substr(0, size))) << size << " bytes";
  }
}

TEST_F(CheckpointDamageTest, ZeroedPages) {
  for (size_t begin = 0; begin < intact_.size(); begin += kPage) {
    std::string content = intact_;
    std::fill_n(content.begin() + static_cast<ptrdiff_t>(begin),
                std::min(kPage, content.size() - begin), '\0');
    ASSERT_TRUE(FallsBack(content)) << "page at " << begin;
  }
}

TEST_F(CheckpointDamageTest, ExtraBytesAndSwappedPages) {
  EXPECT_TRUE(FallsBack(intact_ + '\0'));
  EXPECT_TRUE(FallsBack(intact_ + intact_));
  std::string swapped = intact_;
  std::swap_ranges(swapped.begin() + kPage, swapped.begin() + 2 * kPage,
                   swapped.begin() + 2 * kPage);
  EXPECT_TRUE(FallsBack(swapped));
}

}  // namespace
}  // namespace ringtail
