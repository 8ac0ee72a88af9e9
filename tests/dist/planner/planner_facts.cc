#include "tests/dist/planner/planner_facts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "dist/planner/slowest_of.h"

namespace ringtail {
namespace {

constexpr int64_t kBatches[] = {4, 16};

void AddParameter(int i, Rng* rng, PlannerFacts* facts) {
  ParameterFacts* const parameter = facts->add_parameter();
  parameter->set_name("p" + std::to_string(i));
  if (rng->Below(2) == 0) {
    parameter->add_dimension(1 + static_cast<int64_t>(rng->Below(500)));
    return;
  }
  parameter->set_kind(ParameterFacts::LINEAR_WEIGHT);
  parameter->add_dimension(100 + static_cast<int64_t>(rng->Below(100)));
  parameter->add_dimension(100 + static_cast<int64_t>(rng->Below(300)));
}

}  // namespace

PlannerFacts RandomFacts(Rng* rng) {
  PlannerFacts facts;
  facts.set_net("random");
  facts.set_cores(1);
  facts.set_update_s(rng->Uniform(0, 0.01F));
  facts.set_norm_s(rng->Uniform(0, 0.2F) * facts.update_s());
  facts.set_average_s(rng->Uniform(0, 0.2F) * facts.update_s());
  facts.set_accumulate_s(rng->Uniform(0, 1e-4F));
  facts.set_merge_s(rng->Uniform(0, 0.001F));
  facts.set_data_wait_s(rng->Uniform(0, 0.001F));
  facts.set_step_deviation(rng->Uniform(0, 0.2F));
  facts.set_wake_delay_s(rng->Uniform(0, 0.01F));
  facts.set_buffer_elements(static_cast<int64_t>(rng->Below(1000)));
  const int parameters = 2 + static_cast<int>(rng->Below(8));
  for (int i = 0; i < parameters; ++i) AddParameter(i, rng, &facts);
  if (rng->Below(2) == 0) {
    for (int i = 0; i < parameters; ++i) {
      facts.add_prepare_s(rng->Uniform() * facts.update_s() / parameters);
    }
    facts.set_preparing_s(rng->Uniform(0, 0.2F) * facts.prepare_s(0));
  }
  const double forward = rng->Uniform(1e-4F, 1e-3F), backward = rng->Uniform(2e-4F, 2e-3F);
  std::vector<double> shares(parameters);
  for (double& share : shares) share = rng->Uniform();
  std::ranges::sort(shares);
  for (const int64_t batch : kBatches) {
    StepFacts* const step = facts.add_step();
    const auto images = static_cast<double>(batch + 1);
    step->set_batch(batch);
    step->set_forward_s(forward * images);
    step->set_backward_s(backward * images);
    for (const double share : shares) step->add_finish_s(share * backward * images);
  }
  SchemeFacts* const scheme = facts.add_scheme();
  scheme->set_name("linear8");
  scheme->mutable_compression()->mutable_scheme()->mutable_linear8();
  scheme->mutable_compression()->set_fall_back(false);
  for (int i = 0; i < parameters; ++i) {
    scheme->add_encode_s(rng->Uniform(0, 1e-4F));
    scheme->add_decode_s(rng->Uniform(0, 5e-5F));
    scheme->add_clear_s(rng->Uniform(0, 2e-5F));
  }
  facts.mutable_cluster()->set_hosts(8);
  return facts;
}

PlannerFacts FactsOfOneParameter(double update_s) {
  PlannerFacts facts;
  facts.set_cores(1);
  facts.set_update_s(update_s);
  facts.add_parameter()->add_dimension(16);
  StepFacts* const step = facts.add_step();
  step->set_batch(1);
  step->set_forward_s(2);
  step->set_backward_s(4);
  step->add_finish_s(4);
  return facts;
}

NetworkFacts RandomNetwork(int hosts, double cores, Rng* rng) {
  const LinkModel link{.latency_s = rng->Uniform(0, 2e-4F),
                       .seconds_per_byte = rng->Uniform(1e-9F, 1e-7F),
                       .reduce_seconds_per_byte = rng->Uniform(0, 2e-10F)};
  return {.links = {.within_host = link, .between_hosts = link},
          .hosts = hosts,
          .cores_per_host = cores,
          .sending = {.per_byte = rng->Uniform(0, 5e-9F), .per_message = rng->Uniform(0, 2e-4F)}};
}

double WithoutOverlap(const Prediction& prediction, const PlannerFacts& facts) {
  const PredictedSeconds& s = prediction.seconds;
  const double compute = s.data_wait + s.forward + s.backward + s.update;
  // Those of overlapped rounds wait at most as long as those of others.
  const double waiting = SlowestOf(static_cast<int64_t>(prediction.ranks)) *
                         facts.step_deviation() * compute / std::sqrt(prediction.choice.period);
  return compute + waiting + prediction.communication + s.merge + s.roll_call;
}

}  // namespace ringtail
