// How much of a run trains which size of images.
#include "apps/plan/size_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace ringtail {
namespace {

using testing::ElementsAre;

RunConfig ConfigOf(double epochs, const std::vector<std::pair<double, int64_t>>& phases) {
  RunConfig config;
  config.mutable_data()->set_image_size(64);
  config.mutable_train()->set_epochs(epochs);
  for (const auto& [from_epoch, image_size] : phases) {
    PhaseConfig* const phase = config.mutable_train()->add_phase();
    phase->set_from_epoch(from_epoch);
    phase->set_image_size(image_size);
  }
  return config;
}

TEST(SizeSharesTest, OneSizeHasAllEpochs) {
  EXPECT_THAT(SizeSharesOf(ConfigOf(3, {})), ElementsAre(SizeShare{64, 1, 0}));
  EXPECT_THAT(SizeSharesOf(ConfigOf(3, {{0, 96}})), ElementsAre(SizeShare{96, 1, 0}));
}

TEST(SizeSharesTest, PhasesLastUntilTheNext) {
  EXPECT_THAT(SizeSharesOf(ConfigOf(8, {{2, 96}, {6, 128}})),
              ElementsAre(SizeShare{64, 0.25, 0}, SizeShare{96, 0.5, 2}, SizeShare{128, 0.25, 6}));
}

TEST(SizeSharesTest, ASizeThatComesTwiceCountsOnce) {
  EXPECT_THAT(SizeSharesOf(ConfigOf(8, {{2, 96}, {6, 64}})),
              ElementsAre(SizeShare{64, 0.5, 0}, SizeShare{96, 0.5, 2}));
}

TEST(SizeSharesTest, WhatBeginsAfterTheEndIsNotTrained) {
  EXPECT_THAT(SizeSharesOf(ConfigOf(4, {{2, 96}, {6, 128}})),
              ElementsAre(SizeShare{64, 0.5, 0}, SizeShare{96, 0.5, 2}));
  EXPECT_THAT(SizeSharesOf(ConfigOf(1, {{2, 96}})), ElementsAre(SizeShare{64, 1, 0}));
}

}  // namespace
}  // namespace ringtail
