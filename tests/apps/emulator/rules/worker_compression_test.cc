// What workers keep of their codecs when others join them or die.
#include "apps/emulator/rules/worker_compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/parameter_specs.h"
#include "tests/apps/emulator/tiny_emulation.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using Arena = std::unique_ptr<ParameterArena>;

// Two workers whose gradients are coded by dgc, which keeps the momentum of all layers.
class WorkerCompressionTest : public testing::Test {
 protected:
  WorkerCompressionTest()
      : loaded_(TinyConfig({"train.batch=4", "optim.sgd.momentum=0", "optim.sgd.nesterov=false",
                            "dist.compression.scheme.dgc.momentum=0.9",
                            "dist.compression.min_elements=100"})),
        data_(TrainingData::Open(loaded_.config.data(), &alone_).value()),
        job_(EmulatedJob::Create(&loaded_, &data_, TinyScript(kFixed + "workers: 2")).value()),
        compression_(job_.get(), {.config = loaded_.config.dist().compression(), .samples = 8}) {
    for (Arena& arena : arenas_) {
      arena = ParameterArena::Create(SpecsOf(job_->arena()->parameters()), {}).value();
    }
  }

  // All of them offer gradients of `value`.
  void Reduce(const std::vector<int>& workers, float value) {
    std::vector<WorkerCompression::Member> members;
    for (const int worker : workers) {
      ParameterArena* const arena = arenas_[static_cast<size_t>(worker)].get();
      std::ranges::fill(arena->grads(), value);
      members.push_back({worker, arena});
    }
    const Status status = compression_.Reduce({.step = step_++, .epoch = 1}, members);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::span<const float> SumAt(size_t worker, const std::string& name) const {
    return std::ranges::find(arenas_[worker]->parameters(), name,
                             [](const Parameter& p) { return p.spec.name; })
        ->grad();
  }

  const LoadedConfig loaded_;
  TrainingWorld alone_;
  const TrainingData data_;
  const std::unique_ptr<EmulatedJob> job_;
  WorkerCompression compression_;
  Arena arenas_[2];
  int64_t step_ = 0;
};

// Of layers that dgc does not code the momentum is the same on all.
TEST_F(WorkerCompressionTest, AWorkerThatJoinsHasTheSumOfTheOthers) {
  Reduce({0}, 1);
  Reduce({0, 1}, 1);
  for (const Parameter& p : arenas_[0]->parameters()) {
    EXPECT_TRUE(std::ranges::equal(SumAt(0, p.spec.name), SumAt(1, p.spec.name))) << p.spec.name;
  }
  EXPECT_GT(SumAt(1, "fc.bias")[0], 2);
}

// Also of layers that were coded before it was alone: what was not sent once, momentum in every step.
TEST_F(WorkerCompressionTest, AWorkerThatIsLeftKeepsItsMomentum) {
  Reduce({0, 1}, 1);
  for (int step = 0; step < 2; ++step) {
    Reduce({0}, 0);
    const std::span<const float> sum = SumAt(0, "conv2.weight");
    EXPECT_GT(*std::ranges::max_element(sum), 0) << step;
  }
}

}  // namespace
}  // namespace ringtail
