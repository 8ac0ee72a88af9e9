#include "apps/emulator/batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kRows = 4, kFloats = 16;

// Batches of four images, all floats of which are the batch's number; says which were loaded.
class NumberedLoader : public DataLoader {
 public:
  explicit NumberedLoader(std::vector<int64_t>* loaded) : loaded_(loaded) {}
  int64_t steps_per_epoch() const override { return 10; }
  void Request(int64_t, int64_t, int64_t) override {}
  StatusOr<LoadedBatch> Next() override {
    loaded_->push_back(next_);
    images_.assign(kRows * kFloats, static_cast<float>(next_++));
    return LoadedBatch{.images = images_.data(), .labels = labels_};
  }
  void Seek(int64_t epoch, int64_t step) override { next_ = epoch * steps_per_epoch() + step; }
  std::vector<BadImage> bad_images() const override { return {}; }
  CacheStatistics cache_statistics() const override { return {}; }

 private:
  std::vector<int64_t>* const loaded_;
  int64_t next_ = 0;
  std::vector<float> images_;
  std::vector<int32_t> labels_ = std::vector<int32_t>(kRows);
};

class BatchSourceTest : public testing::Test {
 protected:
  // Takes the rows, which must be of this batch; the batches that had to be loaded for it.
  std::vector<int64_t> Take(int64_t batch, ElementRange rows) {
    loaded_.clear();
    const auto view = source_.Rows(batch, rows);
    EXPECT_TRUE(view.ok()) << view.status().message();
    EXPECT_EQ(view->images[0], static_cast<float>(batch));
    EXPECT_EQ(std::ssize(view->labels), rows.count);
    return loaded_;
  }

  static constexpr ElementRange kWhole{0, kRows}, kFirst{0, 2}, kSecond{2, 2};
  std::vector<int64_t> loaded_;
  BatchSource source_{std::make_unique<NumberedLoader>(&loaded_), kFloats};
};

TEST_F(BatchSourceTest, KeepsWhatAnotherWorkerHasNotTaken) {
  EXPECT_THAT(Take(0, kFirst), ElementsAre(0));
  EXPECT_THAT(Take(1, kFirst), ElementsAre(1));
  EXPECT_THAT(Take(3, kFirst), ElementsAre(2, 3));
  EXPECT_THAT(Take(0, kSecond), IsEmpty());
  EXPECT_THAT(Take(1, kSecond), IsEmpty());
  EXPECT_THAT(Take(2, kWhole), IsEmpty());
}

// As of a gradient that was thrown away: no batch in between is loaded a second time.
TEST_F(BatchSourceTest, RowsThatAreTakenOnceMoreAreLoadedAlone) {
  for (const int64_t batch : {12, 13, 14}) {
    EXPECT_THAT(Take(batch, kWhole), ElementsAre(batch));
  }
  EXPECT_THAT(Take(12, kWhole), ElementsAre(12));
  EXPECT_THAT(Take(15, kFirst), ElementsAre(15));
  EXPECT_THAT(Take(13, kWhole), ElementsAre(13));
  EXPECT_THAT(Take(15, kSecond), IsEmpty());
  EXPECT_THAT(Take(16, kWhole), ElementsAre(16));
}

TEST_F(BatchSourceTest, ForgottenBatchesAreGone) {
  Take(0, kFirst);
  Take(1, kFirst);
  source_.Forget(1);
  EXPECT_THAT(Take(1, kSecond), IsEmpty());
  EXPECT_THAT(Take(0, kSecond), ElementsAre(0));
}

}  // namespace
}  // namespace ringtail
