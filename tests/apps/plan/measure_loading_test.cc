#include "apps/plan/measure_loading.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/trainer/training_data.h"
#include "apps/trainer/training_world.h"
#include "core/parallel_for.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

LoadingCost Measure(const std::vector<std::string>& overrides, int ranks_here) {
  RunConfig config = TinyConfig(overrides).config;
  config.mutable_data()->set_path(TinyImages());
  TrainingWorld alone;
  const auto data = TrainingData::Open(config.data(), &alone);
  EXPECT_TRUE(data.ok()) << data.status().message();
  const auto cost = MeasureLoading(config, *data, /*image_size=*/16, ranks_here);
  EXPECT_TRUE(cost.ok()) << cost.status().message();
  return *cost;
}

TEST(MeasureLoadingTest, TheCacheDecidesWhatIsDecodedAgain) {
  const LoadingCost with = Measure({"data.cache_mib=64"}, 1);
  EXPECT_GT(with.load_s + with.decode_s, 0);
  EXPECT_EQ(with.cached_share, 1);
  EXPECT_EQ(Measure({"data.cache_mib=0"}, 1).cached_share, 0);
}

TEST(MeasureLoadingTest, CoresThatDoNotComputeLoadForNothing) {
  const int threads = NumComputeThreads();
  if (threads < 2) GTEST_SKIP() << "no core is left over";
  SetNumComputeThreads(1);
  const LoadingCost alone = Measure({}, 1), shared = Measure({}, threads);
  SetNumComputeThreads(threads);
  EXPECT_EQ(alone.load_s + alone.decode_s, 0);
  EXPECT_GT(shared.load_s + shared.decode_s, 0);  // as many ranks as cores
}

}  // namespace
}  // namespace ringtail
