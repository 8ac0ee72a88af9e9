#include "apps/parameter_server/weight_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
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

// Two workers' pushes of one version, of which the second is an update late and counts 1/2.
std::pair<float, double> AfterALatePush(const std::string& optim) {
  const auto model = Model();
  WeightServerOptions options = Options({1});
  options.optim.Clear();
  EXPECT_TRUE(ParseTextConfig(optim, "optim", &options.optim, nullptr).ok());
  options.shard.rule.weight.form = StalenessWeight::Form::kInverseOfNext;
  options.rate = [](int64_t) { return 0.5; };
  const auto server = WeightServer::Create(options, *model).value();
  std::vector<float> pulled(server->elements());
  for (const int worker : {0, 1}) {
    server->shard()->Join(worker);
    EXPECT_TRUE(server->shard()->Pull(worker, pulled).has_value());
  }
  const std::vector<float> gradient(server->elements(), 8);  // of 4 images
  for (const int worker : {0, 1}) {
    server->shard()->Push({.worker = worker, .images = 4, .gradient = gradient});
  }
  return {server->arena()->values()[0], server->rate()};
}

TEST(WeightServerTest, ALateGradientIsASmallerStep) {
  const float before = Model()->parameters()[1].value()[0];
  const auto [sgd, sgd_rate] = AfterALatePush("sgd { momentum: 0 } weight_decay: 0.5");
  const float first = before - 0.5F * (2 + 0.5F * before);
  EXPECT_FLOAT_EQ(sgd, first - 0.5F * (2 / 2 + 0.5F * first));
  EXPECT_EQ(sgd_rate, 0.5);
  // Muon's and LARS's steps do not depend on the gradient's length, so that the rate does: by the
  // mean of 1 and 1/2.
  for (const char* optim : {"lars { momentum: 0 }", "muon { momentum: 0 }", "adam {}"}) {
    const auto [weight, rate] = AfterALatePush(optim);
    EXPECT_LT(weight, before) << optim;
    EXPECT_DOUBLE_EQ(rate, 0.375) << optim;
  }
}

}  // namespace
}  // namespace ringtail
