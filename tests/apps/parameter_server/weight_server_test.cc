#include "apps/parameter_server/weight_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "core/config/text_config.h"

namespace ringtail {
namespace {

// Three parameters, of which a server may have the first and the last.
std::unique_ptr<ParameterArena> Model() {
  auto model = ParameterArena::Create({{"a.weight", {2, 3}, ParameterKind::kLinearWeight},
                                       {"b.weight", {4, 5}, ParameterKind::kLinearWeight},
                                       {"c.bias", {7}, ParameterKind::kVector}},
                                      {{"bn.mean", {2}, ParameterKind::kVector}})
                   .value();
  for (size_t i = 0; i < model->values().size(); ++i) model->values()[i] = static_cast<float>(i);
  return model;
}

WeightServerOptions Options(std::vector<size_t> parameters) {
  WeightServerOptions options{.parameters = std::move(parameters),
                              .rate = [](int64_t images) { return images < 4 ? 0.5 : 0.25; },
                              .step = [](int64_t images) { return images / 4; }};
  EXPECT_TRUE(
      ParseTextConfig("sgd { momentum: 0 } weight_decay: 0", "optim", &options.optim, nullptr)
          .ok());
  return options;
}

void Push(WeightServer* server, float gradient, double norm = 0) {
  ServerShard* const shard = server->shard();
  std::vector<float> pulled(server->elements()), all(server->elements());  // 0 in gaps
  for (const Parameter& p : server->arena()->parameters()) {
    std::fill_n(all.begin() + p.offset, p.elements, gradient);
  }
  const PullReply reply = shard->Pull(0, pulled).value();
  const PushResult result = shard->Push(
      {.worker = 0, .base_version = reply.version, .images = 4, .gradient = all, .norm = norm});
  ASSERT_EQ(result.outcome, PushOutcome::kApplied);
}

TEST(WeightServerTest, HoldsWholeParametersOfTheModel) {
  const auto model = Model();
  const auto server = WeightServer::Create(Options({0, 2}), *model).value();
  const auto own = server->arena()->parameters();
  ASSERT_EQ(own.size(), 2);
  for (const size_t i : {0, 1}) {
    const Parameter& whole = model->parameters()[2 * i];
    EXPECT_EQ(own[i].spec.name, whole.spec.name);
    EXPECT_TRUE(std::ranges::equal(own[i].value(), whole.value()));
  }
  EXPECT_EQ(server->bytes(), (6 + 7) * 4);
  std::vector<float> back(model->values().size(), -1);
  server->Scatter(server->arena()->values(), back);
  for (const Parameter& p : model->parameters()) {
    const bool has = p.spec.name != "b.weight";
    for (int64_t i = 0; i < p.elements; ++i) {
      EXPECT_EQ(back[p.offset + i], has ? model->values()[p.offset + i] : -1);
    }
  }
}

// Rates follow the images that were applied: 0.5 for the first 4, then 0.25.
TEST(WeightServerTest, AppliesTheMeanAtTheRateOfItsImages) {
  const auto model = Model();
  const auto server = WeightServer::Create(Options({0, 1, 2}), *model).value();
  server->shard()->Join(0);
  const float before = server->arena()->values()[0];
  Push(server.get(), 8);  // over 4 images
  EXPECT_FLOAT_EQ(server->arena()->values()[0], before - 0.5F * 2);
  Push(server.get(), 8);
  EXPECT_FLOAT_EQ(server->arena()->values()[0], before - 0.5F * 2 - 0.25F * 2);
  EXPECT_EQ(server->rate(), 0.25);
}

// Alone, a server knows the norm of the whole; of several, each takes what the pushes say.
TEST(WeightServerTest, ClipsByTheNormOfAllServers) {
  const auto model = Model();
  for (const bool alone : {true, false}) {
    WeightServerOptions options = Options({2});
    options.optim.set_clip_norm(1);
    options.alone = alone;
    const auto server = WeightServer::Create(options, *model).value();
    server->shard()->Join(0);
    const float before = server->arena()->values()[0];
    Push(server.get(), 8, /*norm=*/20);  // 7 elements of 2: a norm of its own of 5.29
    const double norm = alone ? 2 * std::sqrt(7.0) : 20;
    EXPECT_NEAR(server->arena()->values()[0], before - 0.5 * 2 / norm, 1e-5);
  }
}

// Two workers push by turns, so that each push but the first is one update late and counts 1/2: all
// of an update does, the decay and the steps of a rule that scales its gradients, too.
TEST(WeightServerTest, WhatLateGradientsCountIsTheRates) {
  for (const char* optim : {"sgd { momentum: 0 } weight_decay: 0.5", "lars { momentum: 0 }"}) {
    const auto model = Model();
    WeightServerOptions options = Options({1});
    options.optim.Clear();
    ASSERT_TRUE(ParseTextConfig(optim, "optim", &options.optim, nullptr).ok());
    options.shard.rule.weight.form = StalenessWeight::Form::kInverseOfNext;
    options.rate = [](int64_t) { return 0.5; };
    const auto late = WeightServer::Create(options, *model).value();
    options.shard.rule.weight.form = StalenessWeight::Form::kOne;
    options.rate = [](int64_t images) { return images == 0 ? 0.5 : 0.375; };  // (1 + 1/2) / 2
    const auto slow = WeightServer::Create(options, *model).value();
    for (WeightServer* server : {late.get(), slow.get()}) {
      std::vector<float> pulled(server->elements());
      for (const int worker : {0, 1}) {
        server->shard()->Join(worker);
        ASSERT_TRUE(server->shard()->Pull(worker, pulled).has_value());
      }
      // As much in all: 1/2 of 8 / (3/4) = 16/3.
      for (const auto& [worker, gradient] : {std::pair(0, 8.0F), std::pair(1, 8.0F)}) {
        const float own = server == slow.get() && worker == 1 ? gradient * 2 / 3 : gradient;
        const std::vector<float> all(server->elements(), own);
        server->shard()->Push({.worker = worker, .images = 4, .gradient = all});
      }
    }
    EXPECT_FLOAT_EQ(late->arena()->values()[1], slow->arena()->values()[1]) << optim;
    EXPECT_NE(late->arena()->values()[1], model->parameters()[1].value()[1]);
    EXPECT_DOUBLE_EQ(late->rate(), 0.375);
  }
}

}  // namespace
}  // namespace ringtail
