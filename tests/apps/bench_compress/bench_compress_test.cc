#include "apps/bench_compress/bench_compress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/storage/safetensors_writer.h"
#include "dist/compression/schemes.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

CompressBenchmarkOptions Quick() {
  CompressBenchmarkOptions options;
  options.seconds = 0;
  return options;
}

TEST(BenchCompress, MeasuresEveryCodecAndSketchAndSize) {
  CompressBenchmarkOptions options = Quick();
  options.bytes = {4096, 40000};
  const std::vector<CompressRate> rates = BenchmarkCompression(options).value();
  ASSERT_EQ(rates.size(), 2 * (CodecPresets().size() + SketchPresets().size()));
  for (const CompressRate& rate : rates) {
    EXPECT_GT(rate.encode_gb_per_s, 0) << rate.codec;
    EXPECT_GT(rate.decode_gb_per_s, 0) << rate.codec;
    EXPECT_GT(rate.cosine, rate.codec == "random_k" ? 0.05 : 0.1) << rate.codec;
  }
  EXPECT_EQ(rates[0].codec, "bf16");
  EXPECT_EQ(rates[1].gradient, "normal 40 kB");
  EXPECT_EQ(rates[1].bytes, 40000);
  EXPECT_EQ(rates[1].payload_bytes, 20000);
  EXPECT_EQ(rates[1].ratio, 2);
  EXPECT_LT(rates[1].relative_error, 0x1p-8);
  EXPECT_GT(rates[1].cosine, 0.9999);
  const auto json = nlohmann::json::parse(CompressionJson(rates));
  EXPECT_EQ(json["rates"].size(), rates.size());
  EXPECT_EQ(json["rates"][1]["payload_bytes"], 20000);
  EXPECT_THAT(CompressionTable(rates), HasSubstr("normal 40 kB"));
}

TEST(BenchCompress, SketchesCountAllTheirRounds) {
  CompressBenchmarkOptions options = Quick();
  options.bytes = {128 * 128 * 4};
  options.codecs = {"random_k", "power_sgd"};
  const std::vector<CompressRate> rates = BenchmarkCompression(options).value();
  EXPECT_EQ(rates[0].payload_bytes, 164 * 4);              // 1 % of 16384
  EXPECT_EQ(rates[1].payload_bytes, 2 * (128 + 128) * 4);  // rank 2
  EXPECT_NEAR(rates[0].cosine, 0.1, 0.02);                 // 1 % of the squares
  // More than a random plane (2 of 128 directions), less than the best one: the largest singular
  // values of noise are near 2 sqrt(128).
  EXPECT_GT(rates[1].cosine, std::sqrt(2.0 / 128));
  EXPECT_LT(rates[1].cosine, std::sqrt(2 * 4.0 / 128));
  for (const CompressRate& rate : rates) {
    EXPECT_NEAR(rate.relative_error, std::sqrt(1 - rate.cosine * rate.cosine), 1e-4)
        << "what is sent of a gradient is orthogonal to the rest";
  }
}

// Timing takes many steps, which would make PowerSGD's warm start better and better.
TEST(BenchCompress, ErrorsAreThoseOfAFirstStep) {
  CompressBenchmarkOptions options = Quick();
  options.bytes = {128 * 128 * 4};
  options.codecs = {"power_sgd"};
  const double quick = BenchmarkCompression(options).value()[0].relative_error;
  options.seconds = 0.05;
  EXPECT_EQ(BenchmarkCompression(options).value()[0].relative_error, quick);
}

TEST(BenchCompress, ReadsGradients) {
  const TempDir folder;
  const std::string path = folder.File("replay.safetensors");
  const std::vector<float> weights(24, 0.5F), bias = {1, -1};
  const TensorView tensors[] = {ViewF32("grad.a.weight", {2, 3, 2, 2}, weights),
                                ViewF32("grad.a.bias", {2}, bias),
                                ViewF32("value.a.bias", {2}, bias)};
  ASSERT_TRUE(WriteSafetensors(path, tensors, {}).ok());
  CompressBenchmarkOptions options = Quick();
  options.codecs = {"sign"};
  options.file = path;
  const std::vector<CompressRate> together = BenchmarkCompression(options).value();
  ASSERT_EQ(together.size(), 1U);
  EXPECT_EQ(together[0].bytes, 26 * 4);
  EXPECT_EQ(together[0].payload_bytes, 4 + 3 + 4 + 1);
  EXPECT_NEAR(together[0].relative_error, 0, 1e-6) << "all magnitudes of a tensor are alike";
  options.codecs = {"two_bit_fixed"};  // what is below 0.5 is not sent
  EXPECT_GT(BenchmarkCompression(options).value()[0].cosine, 0.95);
  options.samples = 0.1;
  EXPECT_EQ(BenchmarkCompression(options).value()[0].cosine, 0);
  options.per_tensor = true;
  const std::vector<CompressRate> each = BenchmarkCompression(options).value();
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[0].gradient, "a.bias");
  EXPECT_EQ(each[1].gradient, "a.weight");
}

TEST(BenchCompress, SaysWhatIsWrong) {
  CompressBenchmarkOptions options = Quick();
  options.codecs = {"one_bits"};
  options.bytes = {4096};
  EXPECT_THAT(BenchmarkCompression(options).status().message(),
              HasSubstr("did you mean 'one_bit'?"));
  options.codecs.clear();
  options.file = "/nowhere/at/all";
  EXPECT_FALSE(BenchmarkCompression(options).ok());
  const TempDir folder;
  options.file = folder.File("no_gradients.safetensors");
  ASSERT_TRUE(WriteSafetensors(options.file, {}, {}).ok());
  EXPECT_THAT(BenchmarkCompression(options).status().message(), HasSubstr("grad.<name>"));
}

TEST(BenchCompress, NanIsNoNumberOfAnyFlag) {
  for (const std::string flag : {"--samples", "--seconds"}) {
    const ProcessResult result = RunProcess({RT_BINARY_DIR "/bin/bench_compress", flag, "nan"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(flag + ": nan is not a number"));
  }
}

}  // namespace
}  // namespace ringtail
