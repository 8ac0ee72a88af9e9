// ApplyOverride, and the place that ConfigSource::Error reports afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/run.pb.h"
#include "core/config/config_override.h"
#include "core/config/text_config.h"

namespace ringtail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kRun[] = R"(net {
  name: "small"
  layer { name: "conv1" convolution { out_channels: 8 kernel: 3 } }
  layer { name: "stage1.0" repeat { count: 2 layer { name: "relu" relu {} } } }
  layer { name: "7" linear { out_features: 2 } }
}
data { mean: [1, 2, 3] }
optim { sgd { momentum: 0.5 } learning_rate: 0.1 }
train { phase { image_size: 64 } phase { from_epoch: 3 image_size: 96 } }
)";

class ApplyOverrideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status status = ParseTextConfig(kRun, "run.textproto", &run_, &source_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  void Set(std::string_view assignment) {
    const Status status = ApplyOverride(assignment, &run_, &source_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  // Returns the error; the config must be unchanged.
  std::string SetError(std::string_view assignment) {
    const std::string before = run_.SerializeAsString();
    const Status status = ApplyOverride(assignment, &run_, &source_);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << assignment;
    EXPECT_EQ(run_.SerializeAsString(), before) << assignment;
    EXPECT_THAT(status.message(), StartsWith("--set " + std::string(assignment) + ": "));
    return status.message();
  }

  RunConfig run_;
  ConfigSource source_;
};

TEST_F(ApplyOverrideTest, ReplacesAValue) {
  Set("train.epochs=3");
  Set("data.image_size=96");
  Set("net.name=other");
  EXPECT_EQ(run_.train().epochs(), 3);
  EXPECT_EQ(run_.data().image_size(), 96);
  EXPECT_EQ(run_.net().name(), "other");
  EXPECT_EQ(run_.net().layer_size(), 3) << "the rest of the net stays";
}

TEST_F(ApplyOverrideTest, EveryKindOfScalar) {
  Set("optim.learning_rate=-1.5e-3");
  Set("optim.decay_vectors=true");
  Set("data.layout=CLASS_FOLDERS");
  Set("train.seed=18446744073709551615");
  Set("data.split.train.first=-7");
  EXPECT_EQ(run_.optim().learning_rate(), -1.5e-3);
  EXPECT_TRUE(run_.optim().decay_vectors());
  EXPECT_EQ(run_.data().layout(), DataConfig::CLASS_FOLDERS);
  EXPECT_EQ(run_.train().seed(), ~uint64_t{0});
  EXPECT_EQ(run_.data().split().train().first(), -7);
}

TEST_F(ApplyOverrideTest, StringsNeedNoQuotes) {
  Set("data.path=/data/it's \"mine\"\\now=1, # [all]");
  EXPECT_EQ(run_.data().path(), "/data/it's \"mine\"\\now=1, # [all]");
  Set(R"(data.path="tab\there")");
  EXPECT_EQ(run_.data().path(), "tab\there");
  Set("data.path=");
  EXPECT_TRUE(run_.data().has_path());
  EXPECT_EQ(run_.data().path(), "");
}

TEST_F(ApplyOverrideTest, ElementsByNumberAndByName) {
  Set("net.layer[0].convolution.out_channels=16");
  EXPECT_EQ(run_.net().layer(0).convolution().out_channels(), 16);
  Set("net.layer[conv1].convolution.out_channels=32");
  EXPECT_EQ(run_.net().layer(0).convolution().out_channels(), 32);
  Set("net.layer[stage1.0].repeat.layer[relu].name=r");
  EXPECT_EQ(run_.net().layer(1).repeat().layer(0).name(), "r");
  Set("train.phase[1].image_size=128");
  EXPECT_EQ(run_.train().phase(1).image_size(), 128);
  EXPECT_EQ(run_.train().phase(0).image_size(), 64);
}

TEST_F(ApplyOverrideTest, ListsAreReplacedWhole) {
  Set("data.mean=4,5");
  EXPECT_THAT(run_.data().mean(), ElementsAre(4, 5));
  Set("data.mean=[6, 7]");
  EXPECT_THAT(run_.data().mean(), ElementsAre(6, 7));
  Set("data.mean=8");
  EXPECT_THAT(run_.data().mean(), ElementsAre(8));
  Set("data.mean=");
  EXPECT_EQ(run_.data().mean_size(), 0);
  Set("net.layer[0].input=images,a.b");
  EXPECT_THAT(run_.net().layer(0).input(), ElementsAre("images", "a.b"));
  Set("net.layer[0].input=\"a,b\",'c'");
  EXPECT_THAT(run_.net().layer(0).input(), ElementsAre("a,b", "c"));
  Set("net.layer[0].input=");
  EXPECT_EQ(run_.net().layer(0).input_size(), 0);
}

TEST_F(ApplyOverrideTest, OneElementOfAList) {
  Set("data.mean[1]=9");
  EXPECT_THAT(run_.data().mean(), ElementsAre(1, 9, 3));
  Set("train.phase[0]={image_size: 32}");
  EXPECT_EQ(run_.train().phase(0).image_size(), 32);
  EXPECT_EQ(run_.train().phase_size(), 2);
}

TEST_F(ApplyOverrideTest, WholeMessages) {
  Set("train.phase={image_size: 32}, {image_size: 48}, {}");
  EXPECT_EQ(run_.train().phase_size(), 3);
  Set("train.phase=");
  EXPECT_EQ(run_.train().phase_size(), 0);
  Set("optim.cosine={}");
  EXPECT_TRUE(run_.optim().has_cosine());
  Set("net.layer[0].convolution={kernel: 5}");
  EXPECT_FALSE(run_.net().layer(0).convolution().has_out_channels()) << "replaced, not merged";
}

TEST_F(ApplyOverrideTest, SwitchesAOneof) {
  Set("optim.adam.beta1=0.8");
  EXPECT_EQ(run_.optim().rule_case(), OptimConfig::kAdam);
  EXPECT_EQ(run_.optim().adam().beta1(), 0.8);
  EXPECT_EQ(run_.optim().learning_rate(), 0.1);
}

TEST_F(ApplyOverrideTest, WrongPathsNameTheWrongPart) {
  EXPECT_THAT(SetError("trian.epochs=3"),
              HasSubstr("unknown field 'trian' of RunConfig; did you mean 'train'?"));
  EXPECT_THAT(SetError("train.epoch=3"),
              HasSubstr("unknown field 'epoch' of TrainConfig; did you mean 'train.epochs'?"));
  EXPECT_THAT(SetError("data.max_fraction=0.1"),
              HasSubstr("did you mean 'data.bad_images.max_fraction'?"));
  EXPECT_THAT(SetError("train.learning_rate=1"),
              HasSubstr("of TrainConfig; did you mean 'optim.learning_rate'?"));
  EXPECT_THAT(SetError("net.layer[conv1].convolution.kernal=1"),
              HasSubstr("did you mean 'net.layer[conv1].convolution.kernel'?"));
  EXPECT_THAT(SetError("net.layer[conv2].name=x"),
              HasSubstr("'layer' has no element named 'conv2'; did you mean 'conv1'?"));
  EXPECT_THAT(SetError("net.layer[3].name=x"), HasSubstr("'layer' has 3 elements"));
  EXPECT_THAT(SetError("net.layer[99999999999].name=x"), HasSubstr("no element named"));
  EXPECT_THAT(SetError("net.layer[-1].name=x"), HasSubstr("no element named '-1'"));
  EXPECT_THAT(SetError("net.layer.name=x"), HasSubstr("'layer' is a list; say which"));
  EXPECT_THAT(SetError("optim[0].learning_rate=1"), HasSubstr("'optim' is not a list"));
  EXPECT_THAT(SetError("train.epochs.x=1"), HasSubstr("'epochs' is a value"));
  EXPECT_THAT(SetError("data.mean[3]=1"), HasSubstr("'mean' has 3 elements"));
  EXPECT_THAT(SetError("data.mean[x]=1"), HasSubstr("no element named 'x'"));
}

TEST_F(ApplyOverrideTest, MalformedAssignments) {
  EXPECT_THAT(SetError("train.epochs"), HasSubstr("expected path=value"));
  EXPECT_THAT(SetError("=3"), HasSubstr("a field name is missing"));
  EXPECT_THAT(SetError(".train=3"), HasSubstr("a field name is missing"));
  EXPECT_THAT(SetError("train..epochs=3"), HasSubstr("a field name is missing"));
  EXPECT_THAT(SetError("train.=3"), HasSubstr("a field name is missing"));
  EXPECT_THAT(SetError("net.layer[0.name=3"), HasSubstr("is not closed"));
  EXPECT_THAT(SetError("net.layer[].name=3"), HasSubstr("needs an index or a name"));
  EXPECT_THAT(SetError("net.layer[0]name=3"), HasSubstr("expected '.' before 'name'"));
  EXPECT_FALSE(ApplyOverride("data.path=\xFF", &run_, &source_).ok());
}

TEST_F(ApplyOverrideTest, WrongValues) {
  EXPECT_THAT(SetError("train.epochs=many"), HasSubstr("many"));
  SetError("train.epochs=");
  SetError("train.batch=3.5");
  SetError("train.batch=99999999999");
  SetError("optim.adam=");
  SetError("optim.adam=3");
  SetError("data.mean=1,,2");
  SetError("data.mean[0]=[1,2]");
  SetError("data.mean[0]=");
  SetError("data.path=\"\\377\"");
  EXPECT_THAT(SetError("data.layout=KAGLE"), HasSubstr("did you mean 'KAGGLE'?"));
  EXPECT_THAT(SetError("optim.adam={beta3: 1}"), HasSubstr("did you mean 'beta"));
}

TEST_F(ApplyOverrideTest, AValueSetsOnlyItsField) {
  EXPECT_THAT(SetError("train.batch=3 epochs: 1"), HasSubstr("also sets 'epochs'"));
  EXPECT_THAT(SetError("net.layer[0].convolution.kernel=3] stride: [2"),
              HasSubstr("also sets 'stride'"));
  SetError("train.batch=3 batch: 4");
}

TEST_F(ApplyOverrideTest, WorksWithoutASource) {
  EXPECT_TRUE(ApplyOverride("train.epochs=4", &run_, nullptr).ok());
  EXPECT_EQ(run_.train().epochs(), 4);
}

TEST_F(ApplyOverrideTest, ErrorsPointAtTheCommandLine) {
  Set("net.layer[conv1].convolution.kernel=0");
  Set("data.mean=1,2,-3");
  Set("optim.adam={}");
  const auto error = [&](std::string_view path) { return source_.Error(path, "is bad").message(); };
  EXPECT_EQ(error("net.layer[0].convolution.kernel[0]"),
            "--set net.layer[conv1].convolution.kernel=0: is bad");
  EXPECT_EQ(error("data.mean[2]"), "--set data.mean=1,2,-3: is bad");
  EXPECT_EQ(error("optim.adam.beta1"), "--set optim.adam={}: is bad") << "below what was set";
  EXPECT_THAT(error("optim.learning_rate"), StartsWith("run.textproto:8:31: is bad"));
  EXPECT_THAT(error("net.layer[1].name"), StartsWith("run.textproto:4:11: is bad"));
  Set("optim.adam.beta1=2");
  EXPECT_EQ(error("optim.adam.beta1"), "--set optim.adam.beta1=2: is bad") << "the last one counts";
}

TEST_F(ApplyOverrideTest, ErrorsNameTheFlagOfTheAssignment) {
  const auto error = [&](std::string_view assignment) {
    return ApplyOverride(assignment, &run_, &source_, "--other-set").message();
  };
  ASSERT_EQ(error("train.epochs=3"), "");
  EXPECT_EQ(source_.Error("train.epochs", "is bad").message(),
            "--other-set train.epochs=3: is bad");
  EXPECT_THAT(error("train.epochs=many"), StartsWith("--other-set train.epochs=many: "));
  EXPECT_THAT(error("train.batch=3 epochs: 1"), HasSubstr("use one --other-set for each field"));
  EXPECT_THAT(error("data.path=\xFF"), StartsWith("--other-set: "));
}

TEST_F(ApplyOverrideTest, AFailedOverrideLeavesNoTrace) {
  SetError("train.epochs=many");
  EXPECT_THAT(source_.Error("train.epochs", "is bad").message(), StartsWith("run.textproto:9:1: "));
}

TEST_F(ApplyOverrideTest, ErrorsPointAtTheNearestEnclosingField) {
  const auto error = [&](std::string_view path) { return source_.Error(path, "is bad").message(); };
  EXPECT_EQ(error("net.layer[0].convolution.stride[0]"),
            "run.textproto:3:25: is bad\n"
            "    layer { name: \"conv1\" convolution { out_channels: 8 kernel: 3 } }\n"
            "                          ^");
  EXPECT_THAT(error("net.layer[2].linear.out_features"), StartsWith("run.textproto:5:30: "));
  EXPECT_THAT(error("net.layer[1].repeat.layer[0].name"), StartsWith("run.textproto:4:54: "));
  EXPECT_THAT(error("data.mean[2]"), StartsWith("run.textproto:7:8: "));
  EXPECT_THAT(error("data.split.validation_fraction"), StartsWith("run.textproto:7:1: "));
  EXPECT_THAT(error("train.phase[1].image_size"), StartsWith("run.textproto:9:56: "));
  EXPECT_EQ(error(""), "run.textproto: is bad");
  EXPECT_EQ(error("nothing.like[it"), "run.textproto: is bad");
}

TEST(ConfigSource, WithoutAFileNamesThePath) {
  EXPECT_EQ(ConfigSource().Error("train.batch", "must be at least 1").message(),
            "train.batch: must be at least 1");
}

}  // namespace
}  // namespace ringtail
