// The gradients of tickets are those that the same rows have in a run without servers.
#include "apps/trainer/update/ticket_gradients.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/trainer/update/step_gradients.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr int64_t kBatch = 8, kSize = 16, kEpoch = kBatch * kTinyStepsPerEpoch;

// Without batch norm, whose statistics depend on how rows are cut; with dropout, which must not. A
// fixed convolution algorithm: the fastest may vary between nets whose bits are compared.
constexpr char kConfig[] = R"(
net {
  convolution: ONEDNN
  layer { name: "conv" convolution { out_channels: 8 kernel: 3 padding: 1 } }
  layer { name: "relu" relu {} }
  layer { name: "pool" global_average_pool {} }
  layer { name: "dropout" dropout {} }
  layer { name: "fc" linear { out_features: 2 } }
  layer { name: "loss" softmax_cross_entropy {} }
}
data { image_size: 16 workers: 2 prefetch_batches: 2 split { validation_fraction: 0.16667 } }
train { epochs: 4 batch: 8 }
)";

// A loader that says what is asked of it, and may spoil an image.
class WatchedLoader : public DataLoader {
 public:
  explicit WatchedLoader(std::unique_ptr<DataLoader> loader) : loader_(std::move(loader)) {}

  int64_t steps_per_epoch() const override { return loader_->steps_per_epoch(); }
  void Request(int64_t epoch, int64_t first, int64_t rows) override {
    calls.push_back(fmt::format("{}: {}..{}", epoch, first, first + rows - 1));
    requested_.push_back(epoch * kEpoch + first);
    loader_->Request(epoch, first, rows);
  }
  StatusOr<LoadedBatch> Next() override {
    calls.emplace_back("next");
    RT_ASSIGN_OR_RETURN(LoadedBatch batch, loader_->Next());
    const int64_t row = spoilt_row - requested_.front();
    requested_.pop_front();
    if (row < 0 || row >= std::ssize(batch.labels)) return batch;
    images_.assign(batch.images, batch.images + std::ssize(batch.labels) * kRowFloats);
    images_[row * kRowFloats] = std::nanf("");
    batch.images = images_.data();
    return batch;
  }
  void Seek(int64_t epoch, int64_t step_in_epoch) override {
    requested_.clear();
    loader_->Seek(epoch, step_in_epoch);
  }
  std::vector<BadImage> bad_images() const override { return loader_->bad_images(); }
  CacheStatistics cache_statistics() const override { return loader_->cache_statistics(); }

  std::vector<std::string> calls;  // "epoch: first..last" of a request, "next"
  int64_t spoilt_row = -1;         // of the run: a NaN is in its image

 private:
  static constexpr int64_t kRowFloats = 3 * kSize * kSize;
  const std::unique_ptr<DataLoader> loader_;
  std::deque<int64_t> requested_;  // first rows of the run
  std::vector<float> images_;
};

struct CountingListener : public GradientListener {
  void OnLoss(const LossResult& /*loss*/) override { ++losses; }
  void OnReady(const Parameter& /*parameter*/) override { ++ready; }
  size_t losses = 0, ready = 0;
};

class TicketGradientsTest : public testing::Test {
 protected:
  TicketGradientsTest()
      : loaded_(ParseRunConfig(kConfig, "tickets.textproto",
                               std::vector<std::string>{"data.path=\"" + TinyImages() + "\""})
                    .value()),
        data_(TrainingData::Open(loaded_.config.data(), &alone_).value()),
        run_(TrainingRun::Create({.loaded = &loaded_, .data = &data_}).value()),
        generation_(Generation::Create(&run_, {}, &alone_).value()) {}

  // A gradient pass of `parts`, and a loader that starts anew.
  void Begin(int64_t parts = 1) {
    auto loader = std::make_unique<WatchedLoader>(
        DataLoader::Create(data_.dataset.get(), data_.split.train, loaded_.config.data(),
                           {.batch = kBatch, .image_size = kSize})
            .value());
    loader_ = loader.get();
    tickets_.emplace(&generation_,
                     GradientPass::Create(generation_.state().model(),
                                          {.batch = kBatch, .parts = parts, .image_size = kSize})
                         .value(),
                     std::move(loader));
  }

  OwnStep Compute(const Ticket& ticket, std::optional<Ticket> next = {}) {
    return tickets_
        ->Compute({.kind = StepWork::Kind::kTicket, .ticket = ticket, .next = next}, &listener_)
        .value();
  }
  std::vector<float> Gradient() const {
    const std::span<float> gradient = generation_.arena().grads();
    return {gradient.begin(), gradient.end()};
  }
  std::vector<float> GradientOf(const Ticket& ticket, std::optional<Ticket> next = {}) {
    Compute(ticket, next);
    return Gradient();
  }

  // Of the batch that a step without servers takes.
  struct Planned {
    LossResult loss;
    std::vector<float> gradient;
  };
  Planned OfStep(int64_t step) {
    generation_.progress().step = step;
    StepGradients steps(&generation_);
    EXPECT_TRUE(steps.EnterPhase().ok());
    const LossResult loss = steps.Compute({}, nullptr).value().loss;
    generation_.progress().step = 0;
    return {loss, Gradient()};
  }

  TrainingWorld alone_;
  const LoadedConfig loaded_;
  const TrainingData data_;
  TrainingRun run_;
  Generation generation_;
  WatchedLoader* loader_ = nullptr;
  std::optional<TicketGradients> tickets_;
  CountingListener listener_;
};

float SumOf(const std::vector<float>& a) { return std::accumulate(a.begin(), a.end(), 0.0F); }

std::vector<float> SumOf(std::vector<float> a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

TEST_F(TicketGradientsTest, ABatchHasTheBitsOfItsStep) {
  Begin();
  // The last is in the second epoch, whose images have another order and other crops.
  for (const int64_t step : {1, 0, 6}) {
    const OwnStep own = Compute({step * kBatch, kBatch});
    const std::vector<float> gradient = Gradient();
    const Planned planned = OfStep(step);
    EXPECT_EQ(own.loss.loss_sum, planned.loss.loss_sum) << step;
    EXPECT_EQ(own.loss.correct, planned.loss.correct);
    EXPECT_EQ(own.loss.count, kBatch);
    EXPECT_EQ(gradient, planned.gradient) << step;
    EXPECT_GT(*std::ranges::max_element(gradient), 0.01F);
  }
}

TEST_F(TicketGradientsTest, ATicketOfSeveralBatchesIsTheirSum) {
  const Planned first = OfStep(2), second = OfStep(3);
  Begin();
  const OwnStep own = Compute({2 * kBatch, 2 * kBatch});
  EXPECT_EQ(Gradient(), SumOf(first.gradient, second.gradient));
  EXPECT_EQ(own.loss.loss_sum, first.loss.loss_sum + second.loss.loss_sum);
  EXPECT_EQ(own.loss.correct, first.loss.correct + second.loss.correct);
  EXPECT_EQ(own.loss.count, 2 * kBatch);
  EXPECT_GT(own.times.forward_seconds, 0);
  EXPECT_EQ(listener_.losses, 2) << "work continues with each batch";
  EXPECT_EQ(listener_.ready, 2 * generation_.arena().parameters().size());
  // The next ticket begins anew.
  EXPECT_EQ(GradientOf({2 * kBatch, kBatch}), first.gradient);
}

// Of the rows that are asked for, at their places in the step. With gradient accumulation, too,
// whose parts need not divide them.
TEST_F(TicketGradientsTest, FewerRowsThanABatchAreTheRestOfIt) {
  const Planned whole = OfStep(4);
  for (const int64_t parts : {1, 4}) {
    Begin(parts);
    const OwnStep first = Compute({4 * kBatch, 5});
    const std::vector<float> gradient = Gradient();
    EXPECT_EQ(first.loss.count, 5);
    const OwnStep rest = Compute({4 * kBatch + 5, 3});
    EXPECT_EQ(rest.loss.count, 3);
    EXPECT_THAT(SumOf(gradient, Gradient()), Pointwise(FloatNear(2e-5F), whole.gradient)) << parts;
    EXPECT_NEAR(first.loss.loss_sum + rest.loss.loss_sum, whole.loss.loss_sum, 1e-5);
    // Whole batches have their own net still.
    EXPECT_THAT(GradientOf({4 * kBatch, kBatch}), Pointwise(FloatNear(2e-5F), whole.gradient));
  }
}

TEST_F(TicketGradientsTest, ATicketEndsWithLessThanABatch) {
  const Planned first = OfStep(0), second = OfStep(1);
  Begin();
  const std::vector<float> whole = GradientOf({0, kBatch + 6});
  const std::vector<float> rest = GradientOf({kBatch + 6, 2});
  EXPECT_THAT(SumOf(whole, rest),
              Pointwise(FloatNear(2e-5F), SumOf(first.gradient, second.gradient)));
}

// Of more batches than the loader has room for.
TEST_F(TicketGradientsTest, WhatIsReadAheadIsComputedNext) {
  const std::vector<Ticket> tickets = {{0, 3 * kBatch}, {35, 5}, {40, 12}, {24, kBatch}};
  Begin();
  std::vector<std::vector<float>> expected;
  expected.reserve(tickets.size());
  for (const Ticket& ticket : tickets) expected.push_back(GradientOf(ticket));
  Begin();
  for (size_t i = 0; i < tickets.size(); ++i) {
    const auto next = i + 1 < tickets.size() ? std::optional(tickets[i + 1]) : std::nullopt;
    EXPECT_EQ(GradientOf(tickets[i], next), expected[i]) << i;
  }
  EXPECT_THAT(loader_->calls,
              ElementsAre("0: 0..7", "0: 8..15", "0: 16..23", "0: 35..39", "next", "next", "next",
                          "1: 0..7", "1: 8..11", "next", "0: 24..31", "next", "next", "next"));
}

// The layer is named, and what was read ahead is computed as if nothing had happened.
TEST_F(TicketGradientsTest, AfterANanTheNextTicketIsTheSame) {
  const Ticket bad = {0, kBatch + 3}, next = {16, 2 * kBatch}, after = {35, 5};
  Begin();
  const std::vector<float> expected = GradientOf(next), expected_after = GradientOf(after);
  Begin();
  float& weight = generation_.arena().FindParameter("fc.weight")->value()[0];
  const float before = weight;
  weight = std::numeric_limits<float>::infinity();
  const OwnStep own = Compute(bad, next);
  EXPECT_FALSE(std::isfinite(own.loss.loss_sum));
  EXPECT_THAT(own.find_not_finite().value(), HasSubstr("fc"));
  weight = before;
  EXPECT_EQ(own.find_not_finite().value(), "") << "the weights are finite again";
  EXPECT_EQ(GradientOf(next, after), expected);
  EXPECT_EQ(GradientOf(after), expected_after);
}

// In the last batch, of which the first ones say nothing; and in the first, after which the others
// must not be taken for those of the next ticket.
TEST_F(TicketGradientsTest, ANanIsFoundInAnyBatchOfATicket) {
  const Ticket bad = {0, 2 * kBatch + 3}, next = {24, kBatch};
  Begin();
  const std::vector<float> expected = GradientOf(next);
  for (const int64_t row : {18, 1}) {
    Begin();
    loader_->spoilt_row = row;
    const OwnStep own = Compute(bad, next);
    EXPECT_TRUE(std::isnan(SumOf(Gradient()))) << row;
    EXPECT_THAT(own.find_not_finite().value(), HasSubstr("image")) << row;
    EXPECT_EQ(GradientOf(next), expected) << row;
  }
}

}  // namespace
}  // namespace ringtail
