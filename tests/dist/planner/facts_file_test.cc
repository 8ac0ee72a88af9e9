#include "dist/planner/facts_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/dist/planner/planner_facts.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

PlannerFacts SomeFacts(uint64_t seed) {
  Rng rng(RngKey(seed).With(kTestStream));
  PlannerFacts facts = RandomFacts(&rng);
  ClusterFacts* const cluster = facts.mutable_cluster();
  cluster->set_cpu_seconds_per_byte(4e-9);
  cluster->set_cpu_seconds_per_message(1e-4);
  facts.set_decode_cpu_s(1e-3);
  facts.set_cached_share(0.5);
  facts.set_epochs(16);
  cluster->mutable_between_hosts()->set_latency_s(1e-4);
  cluster->mutable_between_hosts()->set_seconds_per_byte(1 / 3e7);
  return facts;
}

// With the same steps.
SizeFacts* AddSize(int64_t pixels, double share, PlannerFacts* facts) {
  SizeFacts* const size = facts->add_further_size();
  size->set_image_size(pixels);
  size->set_share(share);
  *size->mutable_step() = facts->step();
  return size;
}

TEST(FactsFileTest, ReadsWhatItHasWritten) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    PlannerFacts facts = SomeFacts(seed);
    if (seed % 2 == 0) AddSize(96, 0.25, &facts);
    const auto read = ParseFacts(FactsText(facts), "facts.textproto");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*read, facts));
  }
}

struct Hostile {
  std::string field;
  std::function<void(PlannerFacts*)> change;
};

TEST(FactsFileTest, RefusesNumbersOutOfRangeAndNamesTheField) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Hostile> hostile = {
      {"cores", [](auto* f) { f->set_cores(0); }},
      {"cores", [&](auto* f) { f->set_cores(kNan); }},
      {"cores", [](auto* f) { f->set_cores(1e-320); }},
      {"cores_per_host", [](auto* f) { f->mutable_cluster()->set_cores_per_host(1e-320); }},
      {"synchronized_channels", [](auto* f) { f->add_synchronized_channels(0); }},
      {"synchronized_channels", [](auto* f) { f->add_synchronized_channels(1 << 21); }},
      {"prepare_s", [](auto* f) { f->add_prepare_s(0); }},
      {"prepare_s[0]",
       [](auto* f) {
         f->clear_prepare_s();
         for (int i = 0; i < f->parameter_size(); ++i) f->add_prepare_s(-1e-9);
       }},
      {"update_s and preparing_s only",
       [](auto* f) {
         f->clear_prepare_s();
         for (int i = 0; i < f->parameter_size(); ++i) f->add_prepare_s(f->update_s() + 1);
       }},
      {"update_s", [](auto* f) { f->set_update_s(-1e-9); }},
      {"norm_s", [](auto* f) { f->set_norm_s(f->update_s() * 1.1 + 1e-9); }},
      {"average_s", [](auto* f) { f->set_average_s(f->update_s() * 1.1 + 1e-9); }},
      {"preparing_s", [](auto* f) { f->set_preparing_s(-1e-9); }},
      {"accumulate_s", [&](auto* f) { f->set_accumulate_s(kNan); }},
      {"clear_s[0]", [](auto* f) { f->mutable_scheme(0)->set_clear_s(0, -1); }},
      {"clear_s", [](auto* f) { f->mutable_scheme(0)->add_clear_s(1); }},
      {"decode_cpu_s", [](auto* f) { f->set_decode_cpu_s(-1e-9); }},
      {"cached_share", [](auto* f) { f->set_cached_share(1.01); }},
      {"epochs", [](auto* f) { f->set_epochs(0); }},
      {"epochs", [](auto* f) { f->set_epochs(1e7); }},
      {"wake_delay_s", [](auto* f) { f->set_wake_delay_s(11); }},
      {"step_deviation", [](auto* f) { f->set_step_deviation(-0.1); }},
      {"merge_s", [&](auto* f) { f->set_merge_s(kInfinity); }},
      {"data_wait_s", [](auto* f) { f->set_data_wait_s(2e6); }},
      {"buffer_elements", [](auto* f) { f->set_buffer_elements(-1); }},
      {"parameter has 0 entries", [](auto* f) { f->clear_parameter(); }},
      {"step has 0 entries", [](auto* f) { f->clear_step(); }},
      {"dimension", [](auto* f) { f->mutable_parameter(0)->set_dimension(0, 0); }},
      {"dimension", [](auto* f) { f->mutable_parameter(0)->set_dimension(0, int64_t{1} << 40); }},
      {"dimension", [](auto* f) { f->mutable_parameter(1)->clear_dimension(); }},
      {"dimension",
       [](auto* f) {
         f->mutable_parameter(0)->clear_dimension();
         for (int i = 0; i < 9; ++i) f->mutable_parameter(0)->add_dimension(1 << 30);
       }},
      {"over 2^29 elements",
       [](auto* f) {
         f->mutable_parameter(0)->clear_dimension();
         for (const int64_t side : {32768, 65536}) f->mutable_parameter(0)->add_dimension(side);
       }},
      {"of all parameters",
       [](auto* f) {
         for (int i = 0; i < 5; ++i) {
           *f->add_parameter() = f->parameter(0);
           ParameterFacts* const last = f->mutable_parameter(f->parameter_size() - 1);
           last->clear_dimension();
           last->add_dimension(1 << 29);
           last->set_kind(ParameterFacts::VECTOR);
         }
       }},
      {"a weight has at least two",
       [](auto* f) {
         f->mutable_parameter(0)->clear_dimension();
         f->mutable_parameter(0)->add_dimension(5);
         f->mutable_parameter(0)->set_kind(ParameterFacts::CONVOLUTION_WEIGHT);
       }},
      {"batch", [](auto* f) { f->mutable_step(1)->set_batch(f->step(0).batch()); }},
      {"batch", [](auto* f) { f->mutable_step(0)->set_batch(0); }},
      {"forward_s", [](auto* f) { f->mutable_step(0)->set_forward_s(0); }},
      {"backward_s", [&](auto* f) { f->mutable_step(1)->set_backward_s(kNan); }},
      {"finish_s[0]", [](auto* f) { f->mutable_step(0)->set_finish_s(0, -1); }},
      {"finish_s[1]", [](auto* f) { f->mutable_step(0)->set_finish_s(1, 1e5); }},
      {"finish_s[1]",
       [](auto* f) {
         f->mutable_step(0)->set_finish_s(0, f->step(0).backward_s());
         f->mutable_step(0)->set_finish_s(1, 0);
       }},
      {"entries for", [](auto* f) { f->mutable_step(0)->add_finish_s(1); }},
      {"encode_s[0]", [&](auto* f) { f->mutable_scheme(0)->set_encode_s(0, kNan); }},
      {"decode_s", [](auto* f) { f->mutable_scheme(0)->clear_decode_s(); }},
      {"name", [](auto* f) { f->mutable_scheme(0)->set_name("dense"); }},
      {"density",
       [](auto* f) {
         f->mutable_scheme(0)
             ->mutable_compression()
             ->mutable_scheme()
             ->mutable_top_k()
             ->set_density(2);
       }},
      {"shards", [](auto* f) { f->set_shards(-1); }},
      {"image_size", [](auto* f) { f->set_image_size(-1); }},
      {"image_size is 0", [](auto* f) { AddSize(0, 0.5, f); }},
      {"there is another of 64",
       [](auto* f) {
         f->set_image_size(64);
         AddSize(64, 0.5, f);
       }},
      {"share is 0", [](auto* f) { AddSize(96, 0, f); }},
      {"share is nan", [&](auto* f) { AddSize(96, kNan, f); }},
      {"leave no steps",
       [](auto* f) {
         AddSize(96, 0.5, f);
         AddSize(128, 0.5, f);
       }},
      {"load_cpu_s is -1", [](auto* f) { AddSize(96, 0.5, f)->set_load_cpu_s(-1); }},
      {"batch is 1", [](auto* f) { AddSize(96, 0.5, f)->mutable_step(1)->set_batch(1); }},
      {"the batches are not those of the first",
       [](auto* f) { AddSize(96, 0.5, f)->mutable_step()->RemoveLast(); }},
      {"hosts", [](auto* f) { f->mutable_cluster()->set_hosts(1025); }},
      {"ranks_per_host", [](auto* f) { f->mutable_cluster()->set_ranks_per_host(0); }},
      {"cores_per_host", [](auto* f) { f->mutable_cluster()->set_cores_per_host(-2); }},
      {"latency_s",
       [](auto* f) { f->mutable_cluster()->mutable_between_hosts()->set_latency_s(-1); }},
      {"seconds_per_byte",
       [&](auto*
               f) { f->mutable_cluster()->mutable_within_host()->set_seconds_per_byte(kInfinity); }},
      {"cpu_seconds_per_byte",
       [](auto* f) { f->mutable_cluster()->set_cpu_seconds_per_byte(0.1); }},
      {"cpu_seconds_per_message",
       [](auto* f) { f->mutable_cluster()->set_cpu_seconds_per_message(-1e-6); }}};
  for (const Hostile& one : hostile) {
    PlannerFacts facts = SomeFacts(1);
    one.change(&facts);
    const auto read = ParseFacts(FactsText(facts), "facts.textproto");
    ASSERT_FALSE(read.ok()) << one.field;
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(read.status().message(), HasSubstr(one.field));
    EXPECT_THAT(read.status().message(), HasSubstr("facts.textproto"));
  }
}

TEST(FactsFileTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(ParseFacts("coers: 2", "f").status().message(), HasSubstr("did you mean 'cores'?"));
  EXPECT_FALSE(ParseFacts("", "f").ok());
  EXPECT_FALSE(ParseFacts("cores: ", "f").ok());
}

}  // namespace
}  // namespace ringtail
