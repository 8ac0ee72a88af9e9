#include "layers/net/initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "layers/net.pb.h"

#include <google/protobuf/text_format.h>

namespace ringtail {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kFanIn = 50, kFanOut = 200;
constexpr size_t kCount = 200'000;

InitializerConfig Config(const std::string& text) {
  InitializerConfig config;
  RT_CHECK(google::protobuf::TextFormat::ParseFromString(text, &config), text);
  return config;
}

ParameterRequest Request(const InitializerConfig* init) {
  ParameterRequest request;
  request.spec.name = "weight";
  request.init = init;
  request.fan_in = kFanIn;
  request.fan_out = kFanOut;
  return request;
}

std::vector<float> Fill(const ParameterRequest& request, uint64_t seed, size_t count = kCount) {
  std::vector<float> values(count, NAN);
  FillInitial(request, RngKey(seed).With(kInitStream), values);
  return values;
}

std::vector<float> Fill(const std::string& text, uint64_t seed = 1) {
  const InitializerConfig config = Config(text);
  return Fill(Request(&config), seed);
}

double Moment(const std::vector<float>& values, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), power);
  return sum / static_cast<double>(values.size());
}

void ExpectNormal(const std::vector<float>& values, double variance) {
  EXPECT_NEAR(Moment(values, 1), 0, 5 * std::sqrt(variance / kCount));
  EXPECT_NEAR(Moment(values, 2) / variance, 1, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(Moment(values, 4) / (3 * variance * variance), 1, 5 * std::sqrt(32.0 / 3 / kCount));
}

void ExpectUniform(const std::vector<float>& values, double bound) {
  EXPECT_NEAR(Moment(values, 1), 0, 5 * bound / std::sqrt(3.0 * kCount));
  EXPECT_NEAR(Moment(values, 2) * 3 / (bound * bound), 1, 5 * std::sqrt(0.8 / kCount));
  const auto [low, high] = std::ranges::minmax(values);
  EXPECT_GE(low, static_cast<float>(-bound));
  EXPECT_LE(high, static_cast<float>(bound));
  EXPECT_LT(low, -0.999 * bound);
  EXPECT_GT(high, 0.999 * bound);
}

TEST(InitializerTest, NormalKindsHaveTheMomentsOfTheirFormula) {
  ExpectNormal(Fill("he_normal {}"), 2.0 / kFanIn);
  ExpectNormal(Fill("he_normal { fan: FAN_OUT gain: 3 }"), 3.0 / kFanOut);
  ExpectNormal(Fill("xavier_normal {}"), 2.0 / (kFanIn + kFanOut));
  ExpectNormal(Fill("normal { std: 0.25 }"), 0.0625);
}

TEST(InitializerTest, UniformKindsFillTheirRangeAndStayInside) {
  ExpectUniform(Fill("he_uniform {}"), std::sqrt(6.0 / kFanIn));
  ExpectUniform(Fill("he_uniform { fan: FAN_OUT gain: 1 }"), std::sqrt(3.0 / kFanOut));
  ExpectUniform(Fill("xavier_uniform {}"), std::sqrt(6.0 / (kFanIn + kFanOut)));
  ExpectUniform(Fill("fan_in_uniform {}"), 1 / std::sqrt(static_cast<double>(kFanIn)));
}

TEST(InitializerTest, ConstantSetsEveryValue) {
  EXPECT_EQ(Fill("constant {}"), std::vector<float>(kCount, 0.0F));  // zero gamma
  EXPECT_EQ(Fill("constant { value: -1.5 }"), std::vector<float>(kCount, -1.5F));
  EXPECT_EQ(Fill("normal { std: 0 }"), std::vector<float>(kCount, 0.0F));
}

TEST(InitializerTest, WithoutConfigTheFallbackCounts) {
  ParameterRequest request = Request(nullptr);
  EXPECT_EQ(Fill(request, 1), std::vector<float>(kCount, 0.0F));
  request.fallback_init = ParameterRequest::Fallback::kOne;
  EXPECT_EQ(Fill(request, 1), std::vector<float>(kCount, 1.0F));
  request.fallback_init = ParameterRequest::Fallback::kHeNormal;
  ExpectNormal(Fill(request, 1), 2.0 / kFanIn);
}

TEST(InitializerTest, NeighboursAreUncorrelated) {
  const std::vector<float> values = Fill("normal { std: 1 }");
  for (const size_t lag : {1, 2, 3, 4}) {
    double sum = 0;
    for (size_t i = lag; i < kCount; ++i) sum += values[i] * values[i - lag];
    EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount)) << "lag " << lag;
  }
}

TEST(InitializerTest, ValueIsAFunctionOfKeyAndIndexAlone) {
  const InitializerConfig config = Config("he_normal {}");
  const std::vector<float> values = Fill(Request(&config), 7);
  const int threads = NumComputeThreads();
  for (const int n : {1, 2, 3}) {
    SetNumComputeThreads(n);
    EXPECT_EQ(Fill(Request(&config), 7), values) << n << " threads";
    // A shorter parameter starts with the same values, whatever its length modulo the block.
    for (const size_t count : {0, 1, 5, 4099}) {
      const std::vector<float> start = Fill(Request(&config), 7, count);
      EXPECT_TRUE(std::ranges::equal(start, std::span(values).first(count))) << count;
    }
  }
  SetNumComputeThreads(threads);
  EXPECT_NE(Fill(Request(&config), 8), values);
}

const FieldCheck kFields(nullptr, "");

void ExpectInvalid(const Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(message));
}

TEST(InitializerTest, RejectsWhatTheSchemaForbids) {
  ExpectInvalid(ValidateInitializer(Config(""), kFields), "no kind");
  ExpectInvalid(ValidateInitializer(Config("constant { value: nan }"), kFields),
                "value must be a finite number");
  ExpectInvalid(ValidateInitializer(Config("he_normal { gain: 0 }"), kFields), "gain is 0");
  ExpectInvalid(ValidateInitializer(Config("he_uniform { gain: -1 }"), kFields), "gain is -1");
  ExpectInvalid(ValidateInitializer(Config("he_uniform { gain: inf }"), kFields), "gain is inf");
  ExpectInvalid(ValidateInitializer(Config("normal { std: -0.1 }"), kFields), "std is -0.1");
  ExpectInvalid(ValidateInitializer(Config("normal { std: nan }"), kFields), "std is nan");
}

TEST(InitializerTest, ErrorsSayWhichField) {
  std::string failed;
  const InitializerConfig config = Config("he_normal { gain: 0 }");
  ParameterRequest request = Request(&config);
  request.init_field = "weight_init";
  EXPECT_FALSE(ValidateInitializer(request, FieldCheck(&failed)).ok());
  EXPECT_EQ(failed, "weight_init.he_normal.gain");
}

TEST(InitializerTest, RejectsAFanThatIsNotThere) {
  const InitializerConfig he = Config("he_normal {}"), normal = Config("normal {}");
  ParameterRequest request = Request(&he);
  EXPECT_TRUE(ValidateInitializer(request, kFields).ok());
  request.fan_in = request.fan_out = 0;
  ExpectInvalid(ValidateInitializer(request, kFields), "weight has no fan");
  request.init = &normal;
  EXPECT_TRUE(ValidateInitializer(request, kFields).ok());
  request.init = nullptr;
  EXPECT_TRUE(ValidateInitializer(request, kFields).ok());
}

TEST(InitializerTest, AcceptsEveryKindWithItsDefaults) {
  const auto* descriptor = InitializerConfig::descriptor();
  ASSERT_GE(descriptor->field_count(), 7);
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string text = descriptor->field(i)->name() + " {}";
    EXPECT_TRUE(ValidateInitializer(Config(text), kFields).ok()) << text;
    EXPECT_TRUE(std::isfinite(Fill(text)[0])) << text;
  }
}

}  // namespace
}  // namespace ringtail
