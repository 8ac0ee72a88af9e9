// Mixed and weighted rows of a loader: the same bits on every rank, and exactly the
// mixtures of what a loader without mixing gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "core/random.h"
#include "data/row_work.h"
#include "tests/data/small_loader.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

struct MixedBatch {
  BatchCopy copy;
  std::vector<int32_t> others;
  std::vector<std::array<float, 2>> weights;
  bool operator==(const MixedBatch&) const = default;
};

MixedBatch CopyMixed(const LoadedBatch& batch) {
  return {Copy(batch),
          {batch.other_labels.begin(), batch.other_labels.end()},
          {batch.label_weights.begin(), batch.label_weights.end()}};
}

std::vector<MixedBatch> TakeMixed(DataLoader* loader, int64_t batches) {
  std::vector<MixedBatch> result;
  for (int64_t i = 0; i < batches; ++i) result.push_back(CopyMixed(loader->Next().value()));
  return result;
}

std::vector<float> Row(const MixedBatch& batch, int64_t row) {
  return {batch.copy.images.begin() + row * kRowFloats,
          batch.copy.images.begin() + (row + 1) * kRowFloats};
}

DataConfig MixedConfig(int workers = 2) {
  DataConfig config = Config(workers);
  config.mutable_augment()->mutable_mixup()->set_alpha(1);
  config.mutable_augment()->mutable_cutmix()->set_alpha(1);
  return config;
}

constexpr int64_t kBatches = 12;  // into the third epoch; 23 images: one has no partner

TEST(MixedRowsTest, BitsDoNotDependOnWorkersCacheOrSeek) {
  const auto dataset = MakeDataset();
  const auto expected = TakeMixed(MakeLoader(*dataset, MixedConfig(1)).get(), kBatches);
  for (const int workers : {2, 3, 4}) {
    DataConfig config = MixedConfig(workers);
    config.set_cache_mib(workers == 3 ? 1 : 0);
    EXPECT_TRUE(TakeMixed(MakeLoader(*dataset, config).get(), kBatches) == expected) << workers;
  }
  const auto loader = MakeLoader(*dataset, MixedConfig(3));
  for (const int64_t target : {7, 0, 11, 4}) {
    loader->Seek(target / loader->steps_per_epoch(), target % loader->steps_per_epoch());
    EXPECT_TRUE(CopyMixed(loader->Next().value()) == expected[target]) << target;
  }
}

// Shares by speed may split a pair; an odd global batch always does.
TEST(MixedRowsTest, BitsDoNotDependOnTheDivisionOfABatch) {
  constexpr int64_t kFew = 5;
  const auto dataset = MakeDataset();
  for (const int64_t global_batch : {4, 5}) {
    LoaderOptions options = Options();
    options.batch = global_batch;
    const auto expected = TakeMixed(MakeLoader(*dataset, MixedConfig(), options).get(), kFew);
    for (int64_t first = 0; first < global_batch; ++first) {
      for (int64_t rows = 1; first + rows <= global_batch; ++rows) {
        options.batch = rows;
        options.first_row = first;
        options.global_batch = global_batch;
        const auto part = TakeMixed(MakeLoader(*dataset, MixedConfig(), options).get(), kFew);
        for (int64_t i = 0; i < kFew; ++i) {
          for (int64_t row = 0; row < rows; ++row) {
            ASSERT_EQ(Row(part[i], row), Row(expected[i], first + row)) << i;
            EXPECT_EQ(part[i].copy.labels[row], expected[i].copy.labels[first + row]);
            EXPECT_EQ(part[i].others[row], expected[i].others[first + row]);
            EXPECT_EQ(part[i].weights[row], expected[i].weights[first + row]);
          }
        }
      }
    }
  }
}

TEST(MixedRowsTest, RequestedRowsAreThoseOfTheEpoch) {
  const auto dataset = MakeDataset();
  const auto expected = TakeMixed(MakeLoader(*dataset, MixedConfig()).get(), 2);
  const auto loader = MakeLoader(*dataset, MixedConfig());
  loader->Request(0, 3, 3);
  const MixedBatch rows = CopyMixed(loader->Next().value());
  ASSERT_EQ(rows.copy.labels.size(), 3U);
  EXPECT_EQ(Row(rows, 0), Row(expected[0], 3));
  EXPECT_EQ(Row(rows, 1), Row(expected[1], 0));
  EXPECT_EQ(Row(rows, 2), Row(expected[1], 1));
}

// Every row is what the pair's draw makes of the unmixed rows.
TEST(MixedRowsTest, RowsAreMixturesOfTheUnmixedOnes) {
  const auto dataset = MakeDataset();
  const DataConfig config = MixedConfig();
  int swapped = 0, kinds[3] = {};
  for (const uint64_t seed : {1, 2, 3, 4}) {
    LoaderOptions options = Options();
    options.seed = seed;
    const auto mixed = TakeMixed(MakeLoader(*dataset, config, options).get(), 5);
    const auto plain = TakeMixed(MakeLoader(*dataset, Config(), options).get(), 5);
    EXPECT_TRUE(plain[0].others.empty() && plain[0].weights.empty()) << "off";
    for (int64_t position = 0; position < 5 * kBatch; ++position) {
      const MixedBatch &batch = mixed[position / kBatch], &before = plain[position / kBatch];
      const int64_t row = position % kBatch, partner = row ^ 1;
      const RngKey key = RngKey(seed).With(kMixStream).With(uint64_t{0});
      const ImageMix mix =
          DrawMix(config.augment(), key.With(static_cast<uint64_t>(position / 2)), kSize);
      ++kinds[static_cast<int>(mix.kind)];
      std::vector<float> image = Row(before, row);
      MixInto(mix, kSize, Row(before, partner), image);
      EXPECT_EQ(Row(batch, row), image);
      EXPECT_EQ(batch.copy.samples[row], before.copy.samples[row]);
      if (mix.kind == ImageMix::Kind::kNone) continue;
      const bool own_first = mix.share >= 0.5F;
      swapped += own_first ? 0 : 1;
      EXPECT_EQ(batch.copy.labels[row], before.copy.labels[own_first ? row : partner]);
      EXPECT_EQ(batch.others[row], before.copy.labels[own_first ? partner : row]);
      const float larger = std::max(mix.share, 1 - mix.share);
      EXPECT_THAT(batch.weights[row], ElementsAre(FloatEq(larger), FloatEq(1 - larger)));
    }
  }
  EXPECT_GT(kinds[static_cast<int>(ImageMix::Kind::kMixup)], 0);
  EXPECT_GT(kinds[static_cast<int>(ImageMix::Kind::kCutmix)], 0);
  EXPECT_GT(swapped, 0) << "a rectangle of more than a half of the image";
}

TEST(MixedRowsTest, TheLargerShareComesFirst) {
  ImageMix mix{.kind = ImageMix::Kind::kCutmix, .share = 0.25F};
  const std::vector<float> class_weights = {1, 2, 4};
  RowLabels labels = MixLabels(mix, 1, 2, class_weights);
  EXPECT_EQ(labels.label, 2);
  EXPECT_EQ(labels.other_label, 1);
  EXPECT_THAT(labels.weights, ElementsAre(3, 0.5F));
  mix.share = 0.5F;
  labels = MixLabels(mix, 1, 2, {});
  EXPECT_EQ(labels.label, 1);
  EXPECT_THAT(labels.weights, ElementsAre(0.5F, 0.5F));
}

TEST(MixedRowsTest, EvaluationIsNeverMixed) {
  const auto dataset = MakeDataset();
  for (const LoaderMode mode : {LoaderMode::kEvaluate, LoaderMode::kEvaluateFlipped}) {
    DataConfig config = MixedConfig();
    config.set_class_balance(1);
    const auto mixed = TakeMixed(MakeLoader(*dataset, config, Options(mode)).get(), 6);
    EXPECT_TRUE(mixed == TakeMixed(MakeLoader(*dataset, Config(), Options(mode)).get(), 6));
    EXPECT_TRUE(mixed[0].others.empty());
  }
}

TEST(MixedRowsTest, ABadImageLeavesItsPartnerAsItIs) {
  const auto dataset = MakeDataset(8);
  const auto plain = TakeMixed(MakeLoader(*dataset, Config()).get(), 2);
  const int64_t bad = plain[0].copy.samples[2], partner_row = 3;
  dataset->Replace(bad, Bytes(""));
  for (const int64_t rows : {4, 1}) {  // with the bad one in the batch, and elsewhere
    LoaderOptions options = Options();
    options.batch = rows;
    options.first_row = rows == 1 ? partner_row : 0;
    options.global_batch = kBatch;
    const auto loader = MakeLoader(*dataset, MixedConfig(), options);
    const MixedBatch batch = TakeMixed(loader.get(), 1)[0];
    const int64_t row = rows == 1 ? 0 : partner_row;
    EXPECT_EQ(Row(batch, row), Row(plain[0], partner_row));
    EXPECT_EQ(batch.copy.labels[row], plain[0].copy.labels[partner_row]);
    EXPECT_EQ(batch.others[row], -1);
    EXPECT_THAT(batch.weights[row], ElementsAre(1, 0));
    EXPECT_EQ(loader->bad_images().size(), rows == 1 ? 0U : 1U);
    if (rows == 1) continue;
    EXPECT_EQ(batch.copy.labels[2], -1);
    EXPECT_EQ(batch.others[2], -1);
    EXPECT_THAT(Row(batch, 2), Each(0.0F));
    EXPECT_NE(batch.others[0], -1) << "another pair is mixed";
  }
}

TEST(MixedRowsTest, TheLastOfAnOddNumberHasNoPartner) {
  AugmentConfig config;
  config.mutable_mixup()->set_alpha(1);
  const auto plan =
      PlanRows(config, kSize, {.seed = 1, .epoch = 0, .first = 19, .rows = 4, .images = 23});
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].row, 0);
  EXPECT_EQ(plan[0].second, -1);
  EXPECT_EQ(plan[0].partner_position, 18);
  EXPECT_EQ(plan[1].row, 1);
  EXPECT_EQ(plan[1].second, 2);
  EXPECT_EQ(plan[2].row, 3);  // position 22
  EXPECT_EQ(plan[2].second, -1);
  EXPECT_EQ(plan[2].partner_position, -1);
  EXPECT_EQ(plan[2].mix, ImageMix());
}

TEST(MixedRowsTest, ClassesAreWeightedWithAndWithoutMixing) {
  auto dataset = std::make_unique<MemoryDataset>();
  for (int64_t i = 0; i < 20; ++i) {
    dataset->Add("a." + std::to_string(i) + ".jpg", i < 4 ? 1 : 0,
                 EncodeJpeg(DrawImage(40, 40, i)));
  }
  const std::array<float, 2> by_class = {20.0F / (2 * 16), 20.0F / (2 * 4)};
  for (const bool mixes : {false, true}) {
    DataConfig config = mixes ? MixedConfig() : Config();
    config.set_class_balance(1);
    const auto batches = TakeMixed(MakeLoader(*dataset, config).get(), 5);
    const auto unweighted = TakeMixed(MakeLoader(*dataset, MixedConfig()).get(), 5);
    double sum = 0;
    for (size_t i = 0; i < batches.size(); ++i) {
      ASSERT_EQ(batches[i].weights.size(), size_t{kBatch});
      for (int64_t row = 0; row < kBatch; ++row) {
        const int32_t label = batches[i].copy.labels[row], other = batches[i].others[row];
        const auto [weight, other_weight] = batches[i].weights[row];
        sum += weight + other_weight;
        if (mixes) {
          const auto [share, rest] = unweighted[i].weights[row];
          EXPECT_FLOAT_EQ(weight, share * by_class[label]);
          EXPECT_FLOAT_EQ(other_weight, rest * (other < 0 ? 0 : by_class[other]));
        } else {
          EXPECT_EQ(other, -1);
          EXPECT_FLOAT_EQ(weight, by_class[label]);
        }
      }
    }
    EXPECT_NEAR(sum, 20, 1e-4) << "an epoch's weights are as many as its images";
  }
}

}  // namespace
}  // namespace ringtail
