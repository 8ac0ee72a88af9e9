#include "dist/parameter_server/staleness_weight.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ringtail {
namespace {

using Form = StalenessWeight::Form;

struct Row {
  StalenessWeight weight;
  int64_t updates;
  std::vector<double> weights;  // of tau = 0, 1, 2, 4, 16
};

// The table of the header, with more digits.
TEST(StalenessWeightTest, AsWorkedByHand) {
  const std::vector<int64_t> taus = {0, 1, 2, 4, 16};
  const std::vector<Row> rows = {
      {{Form::kOne}, 9, {1, 1, 1, 1, 1}},
      {{Form::kInverse}, 9, {1, 1, 0.5, 0.25, 0.0625}},
      {{Form::kInverseOfNext}, 9, {1, 0.5, 1 / 3.0, 0.2, 1 / 17.0}},
      {{Form::kExponential, 0.5}, 9, {1, 0.6065306597, 0.3678794412, 0.1353352832, 0.0003354626}},
      {{Form::kAdaDelay, 1}, 9, {0.25, 0.2402530734, 0.2316624790, 0.2171292730, 1 / 6.0}},
      {{Form::kGapAware}, 9, {1, 1, 1, 1, 1}}};
  for (const Row& row : rows) {
    for (size_t i = 0; i < taus.size(); ++i) {
      EXPECT_NEAR(row.weight.Of(taus[i], row.updates), row.weights[i], 1e-9)
          << "form " << static_cast<int>(row.weight.form) << ", tau " << taus[i];
    }
  }
}

// Times a rate of 1 / L it is the step of the paper, 1 / (L + c sqrt(t + tau)).
TEST(StalenessWeightTest, AdaDelayIsThePapersStep) {
  constexpr double kL = 20, kC = 3;
  const StalenessWeight weight{Form::kAdaDelay, kC / kL};
  for (const int64_t t : {0, 1, 100}) {
    for (const int64_t tau : {0, 1, 30}) {
      const double step = 1 / (kL + kC * std::sqrt(static_cast<double>(t + tau)));
      EXPECT_NEAR(weight.Of(tau, t) / kL, step, 1e-15);
    }
  }
}

TEST(StalenessWeightTest, OlderNeverCountsMore) {
  for (const StalenessWeight& weight :
       {StalenessWeight{Form::kOne}, StalenessWeight{Form::kInverse},
        StalenessWeight{Form::kInverseOfNext}, StalenessWeight{Form::kExponential, 0.1},
        StalenessWeight{Form::kAdaDelay, 0.1}}) {
    for (int64_t tau = 0; tau < 100; ++tau) {
      EXPECT_GT(weight.Of(tau, 5), 0);
      EXPECT_LE(weight.Of(tau, 5), 1);
      EXPECT_LE(weight.Of(tau + 1, 5), weight.Of(tau, 5));
    }
  }
}

}  // namespace
}  // namespace ringtail
