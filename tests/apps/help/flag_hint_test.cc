// What was meant by flags that are not there.
#include "apps/help/flag_hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/apps/help/verbs.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

VerbInfo Train() {
  return {.name = "train", .flags = {{.names = {"--config"}}, {.names = {"--set"}}}};
}

TEST(FlagHintTest, FieldsOfTheConfigAreSet) {
  EXPECT_EQ(FlagHint({"--epochs", "3"}, Train()), "--set train.epochs=3");
  EXPECT_EQ(FlagHint({"--epochs=3"}, Train()), "--set train.epochs=3");
  EXPECT_EQ(FlagHint({"--epochs", "--x"}, Train()), "--set train.epochs=VALUE");
  EXPECT_EQ(FlagHint({"--image-size", "96"}, Train()), "--set data.image_size=96");
  EXPECT_EQ(FlagHint({"stray", "--seed", "7"}, Train()), "--set train.seed=7");
}

TEST(FlagHintTest, ByTheirNamesInOtherPrograms) {
  EXPECT_EQ(FlagHint({"--lr", "0.1"}, Train()), "--set optim.learning_rate=0.1");
  EXPECT_EQ(FlagHint({"--batch-size", "32"}, Train()), "--set train.batch=32");
  for (const char* name :
       {"lr", "batch_size", "bs", "wd", "num_epochs", "max_epochs", "img_size", "imgsz", "size",
        "ema", "grad_clip", "clip_grad", "accum_steps", "warmup_epochs"}) {
    EXPECT_NE(FieldOfFlag(name), "") << name;
  }
}

TEST(FlagHintTest, FlagsByTheirNamesInOtherPrograms) {
  EXPECT_EQ(FlagHint({"--model", "resnet18"}, Train()), "--config resnet18");
  EXPECT_EQ(FlagHint({"--arch"}, Train()), "--config VALUE");
  EXPECT_EQ(FlagHint({"--save-dir", "x"}, Train()), "") << "it has no --output";
  EXPECT_EQ(FlagHint({"--pretrained", "x.pth"}, Train()), "--set train.weights=x.pth");
}

TEST(FlagHintTest, AFolderOfImagesAlone) {
  VerbInfo train = Train();
  train.flags.push_back({.names = {"--data"}});
  EXPECT_EQ(FlagHint({"pets"}, train), "--data pets");
  EXPECT_EQ(FlagHint({"pets", "cars"}, train), "");
}

TEST(FlagHintTest, MistypedFlagsOfTheVerb) {
  EXPECT_EQ(FlagHint({"--confg", "lenet"}, Train()), "--config");
  VerbInfo report{.name = "report", .flags = {{.names = {"--out"}}}};
  EXPECT_EQ(FlagHint({"--ot", "x"}, report), "--out");
  EXPECT_EQ(FlagHint({"--epochs", "3"}, report), "") << "it has no --set";
  EXPECT_EQ(FlagHint({"--xyzzy"}, Train()), "");
  EXPECT_EQ(FlagHint({"3"}, Train()), "");
}

TEST(FlagHintTest, TheProgramSaysSo) {
  const ProcessResult result = RunRingtail({"train", "--data", "x", "--epochs", "3"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("train does not know '--epochs 3'; did you mean "
                                    "'--set train.epochs=3'?"));
  EXPECT_THAT(RunRingtail({"train", "--xyzzy"}).err, HasSubstr("see `ringtail help train`"));
}

TEST(FlagHintTest, PredictTakesImagesWithoutAFlag) {
  EXPECT_THAT(RunRingtail({"predict", "--checkpoint", "nosuch", "cat.jpg"}).err,
              HasSubstr("nosuch"));
  EXPECT_THAT(RunRingtail({"predict", "--checkpoint", "nosuch"}).err,
              HasSubstr("predict needs images, or folders of them, as in `predict --checkpoint"));
}

}  // namespace
}  // namespace ringtail
