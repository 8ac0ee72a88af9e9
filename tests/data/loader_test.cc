#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "data/augmentation/augmentation_ramp.h"
#include "data/sampler.h"
#include "data/scan.h"
#include "tests/data/small_loader.h"
#include "tests/data/test_images.h"

namespace ringtail {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

TEST(LoaderTest, BitsDoNotDependOnWorkersPrefetchOrCache) {
  const auto dataset = MakeDataset();
  constexpr int64_t kBatches = 17;  // into the fourth epoch
  const std::vector<BatchCopy> expected = Take(MakeLoader(*dataset, Config(1)).get(), kBatches);
  for (const int workers : {2, 3, 8}) {
    EXPECT_TRUE(Take(MakeLoader(*dataset, Config(workers)).get(), kBatches) == expected) << workers;
  }
  DataConfig config = Config(3);
  config.set_prefetch_batches(2);
  EXPECT_TRUE(Take(MakeLoader(*dataset, config).get(), kBatches) == expected);
  config.set_prefetch_batches(9);
  config.set_cache_mib(1);
  const auto cached = MakeLoader(*dataset, config);
  EXPECT_TRUE(Take(cached.get(), kBatches) == expected);
  EXPECT_GT(cached->cache_statistics().hits, 0);
}

// Neither on how many ranks there are, nor on where a run resumes.
TEST(LoaderTest, AugmentedBitsDoNotDependOnWorkersRanksOrSeek) {
  const auto dataset = MakeDataset();
  DataConfig config = Config(1);
  const std::vector<BatchCopy> plain = Take(MakeLoader(*dataset, config).get(), 7);
  config.mutable_augment()->set_trivial_augment(AugmentConfig::BILINEAR);
  config.mutable_augment()->set_erasing(0.5F);
  const std::vector<BatchCopy> expected = Take(MakeLoader(*dataset, config).get(), 7);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(expected[i].samples, plain[i].samples);
    EXPECT_NE(expected[i].images, plain[i].images) << i;
  }
  config.set_workers(3);
  config.set_cache_mib(1);
  EXPECT_TRUE(Take(MakeLoader(*dataset, config).get(), 7) == expected);
  const auto resumed = MakeLoader(*dataset, config);
  resumed->Seek(0, 4);
  EXPECT_TRUE(Copy(resumed->Next().value()) == expected[4]);
  for (int64_t rank = 0; rank < 2; ++rank) {
    LoaderOptions options = Options();
    options.batch = rank == 0 ? 3 : 1;
    options.first_row = rank == 0 ? 0 : 3;
    options.global_batch = kBatch;
    const auto part = MakeLoader(*dataset, config, options);
    for (const BatchCopy& whole : expected) {
      const BatchCopy own = Copy(part->Next().value());
      EXPECT_TRUE(std::equal(own.images.begin(), own.images.end(),
                             whole.images.begin() + options.first_row * kRowFloats));
    }
  }
}

// In each epoch, those of a config with its strength.
TEST(LoaderTest, AugmentationGrowsFromEpochToEpoch) {
  const auto dataset = MakeDataset();
  const DataConfig full = Config();
  DataConfig ramped = full, half = full;
  ramped.mutable_augment()->set_ramp_start(0.5F);
  ramped.mutable_augment()->set_ramp_epochs(1);
  *half.mutable_augment() = AugmentationOfStrength(full.augment(), 0.5F);
  const auto take = [&](const DataConfig& config, int64_t epoch) {
    const auto loader = MakeLoader(*dataset, config);
    loader->Seek(epoch, 0);
    return Take(loader.get(), loader->steps_per_epoch());
  };
  EXPECT_TRUE(take(ramped, 0) == take(half, 0));
  EXPECT_FALSE(take(ramped, 0) == take(full, 0));
  EXPECT_TRUE(take(ramped, 1) == take(full, 1));
}

TEST(LoaderTest, AnEpochIsAPermutationCutIntoBatches) {
  const auto dataset = MakeDataset();
  const auto loader = MakeLoader(*dataset, Config());
  ASSERT_EQ(loader->steps_per_epoch(), kImages / kBatch);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<int64_t> order = EpochPermutation(Options().seed, epoch, kImages);
    for (int64_t step = 0; step < loader->steps_per_epoch(); ++step) {
      const BatchCopy batch = Copy(loader->Next().value());
      EXPECT_EQ(batch.epoch, epoch);
      EXPECT_EQ(batch.step, step);
      for (int64_t row = 0; row < kBatch; ++row) {
        EXPECT_EQ(batch.samples[row], order[step * kBatch + row]);
        EXPECT_EQ(batch.labels[row], batch.samples[row] % 2);
      }
    }
  }
}

TEST(LoaderTest, AnotherEpochShowsAnotherCropOfTheSameImage) {
  const auto dataset = MakeDataset(4);
  const auto loader = MakeLoader(*dataset, Config());
  const BatchCopy first = Take(loader.get(), 1)[0], second = Take(loader.get(), 1)[0];
  const auto row_of = [](const BatchCopy& batch, int64_t sample) {
    const auto row =
        std::find(batch.samples.begin(), batch.samples.end(), sample) - batch.samples.begin();
    return std::vector<float>(batch.images.begin() + row * kRowFloats,
                              batch.images.begin() + (row + 1) * kRowFloats);
  };
  for (int64_t sample = 0; sample < 4; ++sample)
    EXPECT_NE(row_of(first, sample), row_of(second, sample));
}

TEST(LoaderTest, SeekGivesTheSameBatches) {
  const auto dataset = MakeDataset();
  const std::vector<BatchCopy> expected = Take(MakeLoader(*dataset, Config()).get(), 14);
  const auto loader = MakeLoader(*dataset, Config(3));
  const int64_t steps = loader->steps_per_epoch();
  for (const int64_t target : {7, 0, 13, 4, 5}) {
    loader->Seek(target / steps, target % steps);
    EXPECT_TRUE(Copy(loader->Next().value()) == expected[target]) << target;
  }
  loader->Seek(0, 6);  // past the end of the epoch: a step of the next
  EXPECT_TRUE(Copy(loader->Next().value()) == expected[6]);
}

TEST(LoaderTest, RanksShareEachGlobalBatch) {
  const auto dataset = MakeDataset();
  LoaderOptions options = Options();
  options.batch = 2 * kBatch;
  const std::vector<BatchCopy> expected = Take(MakeLoader(*dataset, Config(), options).get(), 4);
  for (int64_t rank = 0; rank < 2; ++rank) {
    options.batch = kBatch;
    options.global_batch = 2 * kBatch;
    options.first_row = rank * kBatch;
    const auto loader = MakeLoader(*dataset, Config(), options);
    for (const BatchCopy& whole : expected) {
      const BatchCopy part = Copy(loader->Next().value());
      EXPECT_EQ(part.images,
                std::vector<float>(whole.images.begin() + rank * kBatch * kRowFloats,
                                   whole.images.begin() + (rank + 1) * kBatch * kRowFloats));
    }
  }
}

// Ranks of unequal speed may take unequal shares.
TEST(LoaderTest, SharesMayBeUnequal) {
  const auto dataset = MakeDataset();
  LoaderOptions options = Options();
  const BatchCopy whole = Copy(MakeLoader(*dataset, Config(), options)->Next().value());
  options.global_batch = kBatch;
  options.first_row = 3;
  options.batch = kBatch - 3;
  const auto loader = MakeLoader(*dataset, Config(), options);
  EXPECT_EQ(loader->steps_per_epoch(), kImages / kBatch);
  EXPECT_EQ(Copy(loader->Next().value()).images,
            std::vector<float>(whole.images.begin() + 3 * kRowFloats, whole.images.end()));
}

TEST(LoaderTest, EvaluationIsOnePassInOrderWithPadding) {
  const auto dataset = MakeDataset();
  for (const int64_t world : {1, 2, 3}) {
    std::set<int64_t> seen;
    for (int64_t rank = 0; rank < world; ++rank) {
      LoaderOptions options = Options(LoaderMode::kEvaluate);
      options.global_batch = world * kBatch;
      options.first_row = rank * kBatch;
      const auto loader = MakeLoader(*dataset, Config(), options);
      int64_t batches = 0;
      while (true) {
        const LoadedBatch batch = loader->Next().value();
        if (batch.labels.empty()) break;
        ++batches;
        for (int64_t row = 0; row < kBatch; ++row) {
          const int64_t sample = batch.samples[row];
          if (sample >= 0) {
            EXPECT_TRUE(seen.insert(sample).second);
            EXPECT_EQ(batch.labels[row], sample % 2);
            continue;
          }
          EXPECT_EQ(batch.labels[row], -1);
          EXPECT_THAT(std::vector<float>(batch.images + row * kRowFloats,
                                         batch.images + (row + 1) * kRowFloats),
                      Each(0.0F));
        }
      }
      EXPECT_EQ(batches, loader->steps_per_epoch());
      EXPECT_TRUE(loader->Next().value().labels.empty());
      loader->Seek(0, 0);  // a second pass
      EXPECT_EQ(loader->Next().value().samples[0], rank * kBatch);
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kImages)) << world;
  }
}

TEST(LoaderTest, FlippedEvaluationIsTheMirrorImage) {
  const auto dataset = MakeDataset(4);
  const BatchCopy plain =
      Take(MakeLoader(*dataset, Config(), Options(LoaderMode::kEvaluate)).get(), 1)[0];
  const BatchCopy flipped =
      Take(MakeLoader(*dataset, Config(), Options(LoaderMode::kEvaluateFlipped)).get(), 1)[0];
  EXPECT_NE(plain.images, flipped.images);
  for (int64_t line = 0; line < static_cast<int64_t>(plain.images.size()); line += kSize) {
    for (int64_t x = 0; x < kSize; ++x) {
      ASSERT_EQ(plain.images[line + x], flipped.images[line + kSize - 1 - x]);
    }
  }
}

TEST(LoaderTest, ABadImageKeepsItsRowAndIsReportedOnce) {
  const auto dataset = MakeDataset();
  dataset->Replace(5, Bytes(""));
  const auto loader = MakeLoader(*dataset, Config(3));
  int seen = 0;
  for (int64_t step = 0; step < 4 * loader->steps_per_epoch(); ++step) {
    const BatchCopy batch = Copy(loader->Next().value());
    for (int64_t row = 0; row < kBatch; ++row) {
      const std::vector<float> pixels(batch.images.begin() + row * kRowFloats,
                                      batch.images.begin() + (row + 1) * kRowFloats);
      if (batch.samples[row] == 5) {
        ++seen;
        EXPECT_EQ(batch.labels[row], -1);
        EXPECT_THAT(pixels, Each(0.0F));
      } else {
        EXPECT_EQ(batch.labels[row], batch.samples[row] % 2);
        EXPECT_THAT(pixels, Not(Each(0.0F)));
      }
    }
  }
  EXPECT_GE(seen, 1);
  ASSERT_EQ(loader->bad_images().size(), 1U);
  EXPECT_EQ(loader->bad_images()[0].key, "cat.5.jpg");
  EXPECT_EQ(loader->bad_images()[0].reason, "is empty");
}

// The file of a sample is deleted, cut short or replaced while the loader runs.
TEST(LoaderTest, FilesMayChangeDuringTheEpoch) {
  for (const int64_t cache_mib : {0, 64}) {
    const auto dataset = MakeDataset();
    DataConfig config = Config(3);
    config.set_cache_mib(cache_mib);
    const auto loader = MakeLoader(*dataset, config);
    ASSERT_TRUE(loader->Next().ok());
    std::vector<std::byte> half = EncodeJpeg(DrawImage(60, 90));
    half.resize(half.size() / 2);
    dataset->Replace(1, NotFound("cannot open cat.1.jpg: No such file or directory"));
    dataset->Replace(2, half);
    dataset->Replace(3,
                     EncodeJpeg(DrawImage(300, 200)));  // another size; the cache has the old one
    dataset->Replace(4, DataLoss("cannot read cat.4.jpg: Input/output error"));
    for (int64_t step = 0; step < 5 * loader->steps_per_epoch(); ++step)
      ASSERT_TRUE(loader->Next().ok());
    for (const BadImage& bad : loader->bad_images()) {
      EXPECT_THAT(bad.sample, testing::AnyOf(1, 2, 4));
    }
    if (cache_mib == 0) {
      EXPECT_EQ(loader->bad_images().size(), 3U);
    }
  }
}

// Too many bad images stop the run.
TEST(LoaderTest, TooManyBadImagesStopTheRun) {
  const auto dataset = MakeDataset();
  for (const int64_t i : {2, 9, 17}) dataset->Replace(i, Bytes("GIF89a not a JPEG at all"));
  DataConfig config = Config();
  config.mutable_bad_images()->set_max_fraction(0.1);  // 2 of 23 would be allowed
  LoaderOptions options = Options(LoaderMode::kEvaluate);
  const auto loader = MakeLoader(*dataset, config, options);
  Status status;
  int64_t batches = 0;
  for (; status.ok() && batches < 6; ++batches) status = loader->Next().status();
  EXPECT_EQ(batches, 5);  // sample 17 is in the fifth batch
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("3 of 23 images cannot be used"));
  EXPECT_THAT(status.message(), HasSubstr("cat.2.jpg is a GIF image"));
}

TEST(LoaderTest, PolicyFailStopsAtTheFirst) {
  const auto dataset = MakeDataset();
  dataset->Replace(6, Bytes(""));
  DataConfig config = Config();
  config.mutable_bad_images()->set_policy(BadImagesConfig::FAIL);
  const auto loader = MakeLoader(*dataset, config, Options(LoaderMode::kEvaluate));
  EXPECT_TRUE(loader->Next().ok());
  EXPECT_THAT(loader->Next().status().message(), HasSubstr("cat.6.jpg is empty"));
}

TEST(LoaderTest, CanBeDestroyedAtAnyMoment) {
  const auto dataset = MakeDataset();
  for (int64_t batches = 0; batches < 12; ++batches) {
    const auto loader = MakeLoader(*dataset, Config(1 + static_cast<int>(batches % 4)));
    for (int64_t i = 0; i < batches; ++i) ASSERT_TRUE(loader->Next().ok());
    if (batches % 3 == 2) loader->Seek(3, 1);
  }
}

TEST(LoaderTest, TwoLoadersRunSideBySide) {
  const auto dataset = MakeDataset();
  const std::vector<BatchCopy> train = Take(MakeLoader(*dataset, Config()).get(), 6);
  const std::vector<BatchCopy> evaluate =
      Take(MakeLoader(*dataset, Config(), Options(LoaderMode::kEvaluate)).get(), 6);
  const auto first = MakeLoader(*dataset, Config(2));
  const auto second = MakeLoader(*dataset, Config(3), Options(LoaderMode::kEvaluate));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_TRUE(Copy(first->Next().value()) == train[i]);
    EXPECT_TRUE(Copy(second->Next().value()) == evaluate[i]);
  }
}

TEST(LoaderTest, RefusesImpossibleOptions) {
  const auto dataset = MakeDataset();
  const auto create = [&](auto&& change) {
    LoaderOptions options = Options();
    DataConfig config = Config();
    change(&options, &config);
    return DataLoader::Create(dataset.get(), All(*dataset), config, options).status();
  };
  EXPECT_THAT(create([](LoaderOptions* o, DataConfig*) { o->batch = 24; }).message(),
              HasSubstr("23 training images do not fill one batch"));
  EXPECT_THAT(create([](LoaderOptions* o, DataConfig*) { o->batch = 0; }).message(),
              HasSubstr("batch is 0"));
  EXPECT_THAT(create([](LoaderOptions* o, DataConfig*) { o->first_row = 1; }).message(),
              HasSubstr("rows 1 to 4 do not exist in a global batch of 4"));
  EXPECT_THAT(create([](LoaderOptions* o, DataConfig*) { o->image_size = 0; }).message(),
              HasSubstr("image_size is 0"));
  EXPECT_THAT(create([](LoaderOptions*, DataConfig* c) { c->set_prefetch_batches(1); }).message(),
              HasSubstr("prefetch_batches is 1"));
}

TEST(ScanImagesTest, FindsAllInOrderForAnyNumberOfWorkers) {
  const auto dataset = MakeDataset(50);
  std::vector<std::byte> truncated = EncodeJpeg(DrawImage(80, 60));
  truncated.resize(truncated.size() / 2);
  dataset->Replace(40, truncated);
  dataset->Replace(3, Bytes("hello, world"));
  dataset->Replace(17, NotFound("cannot open cat.17.jpg: Permission denied"));
  for (const int workers : {1, 4}) {
    const auto bad = ScanImages(*dataset, All(*dataset), Config(workers), /*decode=*/true).value();
    ASSERT_EQ(bad.size(), 3U);
    EXPECT_EQ(bad[0].sample, 3);
    EXPECT_THAT(bad[0].reason, HasSubstr("starts with 68 65 6C 6C"));
    EXPECT_EQ(bad[1].sample, 17);
    EXPECT_EQ(bad[2].key, "cat.40.jpg");
    EXPECT_THAT(bad[2].reason, HasSubstr("is truncated after"));
    EXPECT_EQ(ScanImages(*dataset, All(*dataset), Config(workers), /*decode=*/false)->size(), 2U);
  }
  EXPECT_TRUE(ScanImages(*dataset, {}, Config(), true)->empty());
}

TEST(ScanImagesTest, StopsOnRequest) {
  const auto dataset = MakeDataset(200);
  std::atomic<int> looked_at = 0;
  const auto bad = ScanImages(*dataset, All(*dataset), Config(2), /*decode=*/true,
                              [&] { return ++looked_at > 5; });
  EXPECT_EQ(bad.status().code(), StatusCode::kCancelled);
  EXPECT_LT(looked_at, 50);
}

TEST(CheckBadImagesTest, TheLimitItselfIsAllowed) {
  BadImagesConfig config;
  config.set_max_fraction(0.01);
  const std::vector<BadImage> one = {{7, "cat.7.jpg", "is empty"}};
  EXPECT_TRUE(CheckBadImages({}, 0, config).ok());
  EXPECT_TRUE(CheckBadImages(one, 100, config).ok());
  EXPECT_FALSE(CheckBadImages(one, 99, config).ok());
}

}  // namespace
}  // namespace ringtail
