// Packed images are read back, all damage is detected, and no false claim is trusted.
#include "data/layouts/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <numeric>

#include "core/check.h"
#include "core/random.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "data/layouts/packed_format.h"
#include "data/layouts/packed_writer.h"
#include "tests/data/image_folder.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int32_t kMaxMib = 1;
const PackProgress kNoProgress;

std::vector<int64_t> AllOf(const Dataset& dataset) {
  std::vector<int64_t> indices(dataset.samples().size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// A small data set of files and its packed form.
class PackedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    PutFile(dir_.File("data/train/Cat/1.jpg"), "first cat, a longer one");
    PutFile(dir_.File("data/train/Cat/2.jpg"), "");
    PutFile(dir_.File("data/train/Dog/gar\xe7on.jpg"), std::string("zero \0 inside", 13));
    PutFile(dir_.File("data/val/Dog/9.jpg"), "a dog to validate with");
    files_ = OpenOrDie(dir_.File("data"));
    ASSERT_TRUE(WritePackedFile(*files_, AllOf(*files_), {}, path_, kNoProgress).ok());
    bytes_ = *ReadFileText(path_, 1 << 20);
  }

  // Opens `bytes` as a packed file and reads all of it; the first error.
  static Status OpenAndRead(std::string_view bytes) {
    const int memory = memfd_create("packed", 0);  // thousands of files, none of them on the disk
    RT_CHECK(write(memory, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
             "cannot write to memory");
    const auto opened = OpenPackedFile("/proc/self/fd/" + std::to_string(memory), kMaxMib);
    close(memory);
    if (!opened.ok()) return opened.status();
    for (size_t i = 0; i < (*opened)->samples().size(); ++i) {
      const auto read = (*opened)->Read(static_cast<int64_t>(i));
      if (!read.ok()) return read.status();
    }
    return OkStatus();
  }

  TempDir dir_;
  const std::string path_ = dir_.File("pets.packed");
  std::unique_ptr<Dataset> files_;
  std::string bytes_;
};

TEST_F(PackedFileTest, ReadsBackEverything) {
  const auto packed = OpenOrDie(path_);  // detected by its first bytes
  EXPECT_EQ(KeysAndLabels(*packed), KeysAndLabels(*files_));
  EXPECT_EQ(packed->class_names(), files_->class_names());
  for (size_t i = 0; i < files_->samples().size(); ++i) {
    EXPECT_EQ(ReadText(*packed, i), ReadText(*files_, i));
    EXPECT_EQ(packed->samples()[i].part, files_->samples()[i].part);
  }
  EXPECT_EQ(packed->samples().back().part, SplitPart::kValidation);
  EXPECT_EQ(packed->Describe(),
            "packed file " + path_ + ": 2 cat, 2 dog; split by folders: 3 train, 1 validation");
}

TEST_F(PackedFileTest, BytesAreAsDocumented) {
  EXPECT_EQ(bytes_.substr(0, 16), std::string("RTPACK\r\n\1\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes_.substr(16, 23), "first cat, a longer one");
  EXPECT_EQ(bytes_.substr(bytes_.size() - 8), "RTPKEND\n");
  const std::string num_records = bytes_.substr(bytes_.size() - 24, 8);
  EXPECT_EQ(num_records, std::string("\4\0\0\0\0\0\0\0", 8));
}

TEST_F(PackedFileTest, ASubsetIsPackedAndProgressIsReported) {
  std::vector<std::pair<int64_t, int64_t>> calls;
  const auto progress = [&](int64_t done, int64_t total) {
    calls.emplace_back(done, total);
    return true;
  };
  ASSERT_TRUE(WritePackedFile(*files_, {0, 3}, {}, path_, progress).ok());
  EXPECT_THAT(Keys(*OpenOrDie(path_)), ElementsAre("train/Cat/1.jpg", "val/Dog/9.jpg"));
  EXPECT_THAT(calls, ElementsAre(std::pair(1, 2), std::pair(2, 2)));
}

TEST_F(PackedFileTest, ADataSetWithoutImagesIsPossible) {
  ASSERT_TRUE(WritePackedFile(*files_, {}, {}, path_, kNoProgress).ok());
  EXPECT_TRUE(OpenOrDie(path_)->samples().empty());
}

TEST_F(PackedFileTest, AStoppedWriterLeavesTheOldFile) {
  const Status status =
      WritePackedFile(*files_, {0, 1}, {}, path_, [](int64_t, int64_t) { return false; });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(*ReadFileText(path_, 1 << 20), bytes_);
  EXPECT_THAT(*ListFolder(dir_.path()), ElementsAre("data", "pets.packed"));
}

TEST_F(PackedFileTest, AnImageThatCannotBeReadIsNamed) {
  std::filesystem::remove(dir_.File("data/train/Cat/2.jpg"));
  const Status status = WritePackedFile(*files_, AllOf(*files_), {}, path_, kNoProgress);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("train/Cat/2.jpg"));
  EXPECT_EQ(*ReadFileText(path_, 1 << 20), bytes_);
}

TEST_F(PackedFileTest, OptionsOutOfRangeAreErrors) {
  for (const PackedFileOptions& options :
       {PackedFileOptions{-1, 95, {}}, PackedFileOptions{100, 0, {}},
        PackedFileOptions{100, 101, {}}}) {
    EXPECT_EQ(WritePackedFile(*files_, {0}, options, path_, kNoProgress).code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(PackedFileTest, ShrinkingLeavesOtherFilesUnchanged) {
  ASSERT_TRUE(WritePackedFile(*files_, {0}, {100, 95, {}}, path_, kNoProgress).ok());
  EXPECT_EQ(ReadText(*OpenOrDie(path_), 0), "first cat, a longer one");
}

TEST_F(PackedFileTest, AFolderThatDoesNotExistIsAnError) {
  const std::string path = dir_.File("nowhere/pets.packed");
  EXPECT_EQ(WritePackedFile(*files_, {0}, {}, path, kNoProgress).code(), StatusCode::kNotFound);
}

TEST_F(PackedFileTest, EveryTruncationIsDetected) {
  ASSERT_GT(bytes_.size(), 200u);
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const Status status = OpenAndRead(std::string_view(bytes_).substr(0, size));
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << size;
  }
  EXPECT_EQ(OpenAndRead(bytes_ + "x").code(), StatusCode::kDataLoss);
}

TEST_F(PackedFileTest, EveryFlippedBitIsDetected) {
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    std::string damaged = bytes_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(OpenAndRead(damaged).code(), StatusCode::kDataLoss) << "byte " << bit / 8;
  }
}

TEST_F(PackedFileTest, DamageInOneRecordDoesNotAffectOthers) {
  bytes_[kPackedHeaderBytes] ^= 1;
  PutFile(path_, bytes_);
  const auto packed = OpenOrDie(path_);
  EXPECT_EQ(packed->Read(0).status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(packed->Read(0).status().message(), HasSubstr("record 0"));
  EXPECT_TRUE(packed->Read(1).ok());
}

TEST_F(PackedFileTest, TruncationDuringUseIsAStatus) {
  const auto packed = OpenOrDie(path_);
  std::filesystem::resize_file(path_, 20);
  EXPECT_EQ(packed->Read(0).status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(packed->Read(3).status().message(), HasSubstr("cut off"));
}

TEST_F(PackedFileTest, ReplacementDuringUseChangesNothing) {
  const auto packed = OpenOrDie(path_);
  ASSERT_TRUE(WritePackedFile(*files_, {3}, {}, path_, kNoProgress).ok());
  EXPECT_EQ(ReadText(*packed, 0), "first cat, a longer one");
}

TEST_F(PackedFileTest, RecordsAboveTheLimitAreRefused) {
  PutFile(dir_.File("data/train/Cat/2.jpg"), std::string((1 << 20) + 1, 'x'));
  ASSERT_TRUE(WritePackedFile(*files_, {0, 1}, {}, path_, kNoProgress).ok());
  const auto packed = OpenPackedFile(path_, kMaxMib);
  ASSERT_TRUE(packed.ok());
  EXPECT_EQ((*packed)->Read(1).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(PackedFileTest, OtherFilesAreRefused) {
  EXPECT_FALSE(IsPackedFile(dir_.path()));
  EXPECT_FALSE(IsPackedFile(dir_.File("nothing")));
  EXPECT_TRUE(IsPackedFile(path_));
  EXPECT_FALSE(OpenPackedFile(dir_.path(), kMaxMib).ok());
  EXPECT_FALSE(OpenPackedFile("/dev/zero", kMaxMib).ok());
  EXPECT_FALSE(OpenPackedFile(dir_.File("nothing"), kMaxMib).ok());
  EXPECT_THAT(OpenAndRead(std::string(100, 'x')).message(), HasSubstr("not a packed file"));
}

// ---- files with right checksums and false claims ---------------------------------------------

// A file around `index`, whose footer claims `num_records` and `index_bytes`.
std::string Forge(std::string_view records, std::string_view index, uint64_t num_records,
                  uint64_t index_bytes) {
  const auto footer =
      EncodePackedFooter({index_bytes, num_records, Crc32c(std::as_bytes(std::span(index)))});
  const auto header = EncodePackedHeader();
  std::string file(reinterpret_cast<const char*>(header.data()), header.size());
  file += records;
  file += index;
  return file.append(reinterpret_cast<const char*>(footer.data()), footer.size());
}

std::string ForgeIndex(const PackedIndex& index, std::string_view records = "abcd") {
  const auto encoded = *EncodePackedIndex(index);
  const std::string text(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  return Forge(records, text, index.samples.size(), text.size());
}

PackedIndex TwoRecords() {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(std::string_view("ab"))));
  return {{"cat", "dog"}, {{"a", 0}, {"b", 1}}, {{0, 2, crc}, {0, 2, crc}}};
}

using HostilePackedFileTest = PackedFileTest;

TEST_F(HostilePackedFileTest, TheForgeryCanProduceValidFiles) {
  EXPECT_TRUE(OpenAndRead(ForgeIndex(TwoRecords(), "abab")).ok());
}

TEST_F(HostilePackedFileTest, FalseClaimsAreRefused) {
  const auto refused = [&](const std::string& file) {
    const Status status = OpenAndRead(file);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    return status.message();
  };
  PackedIndex index = TwoRecords();
  EXPECT_THAT(refused(ForgeIndex(index, "ab")), HasSubstr("the records end at byte 20"));
  EXPECT_THAT(refused(ForgeIndex(index, "ababab")), HasSubstr("the index starts at 22"));
  index.records[1].bytes = 0xffffffff;
  EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the records end"));
  index = TwoRecords();
  index.samples[1].key = "a";
  EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the order of record 1"));
  for (const char* key : {"", "line\nbreak", "\x1b[2J", "\xff"}) {
    index.samples[1].key = key;
    EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the key of record 1"));
  }
  for (const int32_t label : {-2, 2, INT32_MAX, INT32_MIN}) {
    index = TwoRecords();
    index.samples[0].label = label;
    EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the label of record 0"));
  }
  index = TwoRecords();
  index.samples[0].part = static_cast<SplitPart>(3);
  EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the part of record 0"));
  index = TwoRecords();
  index.class_names[1] = "";
  EXPECT_THAT(refused(ForgeIndex(index)), HasSubstr("the name of class 1"));
}

TEST_F(HostilePackedFileTest, FalseCountsAllocateNothing) {
  const auto encoded = *EncodePackedIndex(TwoRecords());
  const std::string index(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  for (const uint64_t records : {uint64_t{1} << 60, ~uint64_t{0}, uint64_t{1000}}) {
    EXPECT_THAT(OpenAndRead(Forge("abab", index, records, index.size())).message(),
                HasSubstr("too short for"));
  }
  EXPECT_THAT(OpenAndRead(Forge("abab", index, 1, index.size())).message(),
              HasSubstr("longer than its records"));
  for (const uint64_t bytes : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{4096}}) {
    EXPECT_THAT(OpenAndRead(Forge("abab", index, 2, bytes)).message(), HasSubstr("does not fit"));
  }
  const std::string many_classes = std::string("\xff\xff\xff\x7f", 4) + std::string(64, 'x');
  EXPECT_THAT(OpenAndRead(Forge("", many_classes, 1, many_classes.size())).message(),
              HasSubstr("claims 2147483647 classes"));
}

TEST_F(HostilePackedFileTest, RandomIndexesAreRefusedOrHarmless) {
  const auto encoded = *EncodePackedIndex(TwoRecords());
  Rng rng(RngKey(1).With(kTestStream));
  std::map<StatusCode, int> outcomes;
  for (int round = 0; round < 5000; ++round) {
    std::string index(reinterpret_cast<const char*>(encoded.data()), encoded.size());
    for (int i = 0; i < 3; ++i) index[rng.Below(index.size())] = static_cast<char>(rng.Bits());
    ++outcomes[OpenAndRead(Forge("abab", index, 1 + rng.Below(3), index.size())).code()];
  }
  outcomes.erase(StatusCode::kOk);  // another letter in a name
  EXPECT_GT(outcomes[StatusCode::kDataLoss], 4000);
  EXPECT_EQ(outcomes.size(), 1u);
}

}  // namespace
}  // namespace ringtail
