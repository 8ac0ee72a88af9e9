#include "core/config/text_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "apps/run.pb.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kFile[] = "configs/net.textproto";

Status ParseNet(std::string_view text, NetConfig* net = nullptr, ConfigSource* source = nullptr) {
  NetConfig ignored;
  return ParseTextConfig(text, kFile, net == nullptr ? &ignored : net, source);
}

std::string NetError(std::string_view text) {
  NetConfig net;
  net.set_name("not empty");
  const Status status = ParseNet(text, &net);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  EXPECT_EQ(net.ByteSizeLong(), 0u) << "a failed parse must leave nothing behind";
  return status.message();
}

std::string RunError(std::string_view text) {
  RunConfig run;
  const Status status = ParseTextConfig(text, kFile, &run, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
  return status.message();
}

TEST(ParseTextConfig, ReadsAllFields) {
  NetConfig net;
  const Status status = ParseNet(R"(
      name: "small"  # a comment
      layer { name: 'conv1' convolution { out_channels: 8 kernel: [3, 5] padding: 1 } }
      layer < name: "loss" softmax_cross_entropy {} >)",
                                 &net);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(net.name(), "small");
  ASSERT_EQ(net.layer_size(), 2);
  EXPECT_EQ(net.layer(0).convolution().kernel(1), 5);
  EXPECT_TRUE(net.layer(1).has_softmax_cross_entropy());
  EXPECT_EQ(net.input_channels(), 3);
}

TEST(ParseTextConfig, EmptyTextIsAnEmptyConfig) {
  NetConfig net;
  net.set_name("old");
  EXPECT_TRUE(ParseNet("", &net).ok());
  EXPECT_FALSE(net.has_name());
}

TEST(ParseTextConfig, UnknownFieldIsLocatedWithASuggestion) {
  EXPECT_EQ(NetError("name: \"n\"\n  layer { convolution { kernal: 3 } }\n"),
            "configs/net.textproto:2:25: unknown field 'kernal' of ConvolutionConfig; "
            "did you mean 'kernel'?\n"
            "    layer { convolution { kernal: 3 } }\n"
            "                          ^");
}

TEST(ParseTextConfig, NamesOfOtherPrograms) {
  EXPECT_THAT(RunError(R"(net { layer { conv2d { } } })"),
              HasSubstr("unknown field 'conv2d' of LayerConfig; did you mean 'convolution'?"));
  EXPECT_THAT(RunError(R"(net { layer { convolution { kernel_size: 3 } } })"),
              HasSubstr("did you mean 'kernel'?"));
  EXPECT_THAT(RunError("optimizer { }"), HasSubstr("did you mean 'optim'?"));
}

TEST(ParseTextConfig, AFieldThatStandsElsewhere) {
  EXPECT_THAT(RunError("epochs: 3"),
              HasSubstr("unknown field 'epochs' of RunConfig; did you mean 'train.epochs'?"));
  EXPECT_THAT(RunError("batch_size: 3"), HasSubstr("did you mean 'train.batch'?"));
  EXPECT_THAT(
      RunError("net { layer { blocks: 3 } }"),
      HasSubstr("did you mean 'residual_stage.blocks' or 'inverted_residual_stage.blocks'?"));
}

TEST(ParseTextConfig, ABraceThatIsMissingOrTooMany) {
  const std::string start = "net {\n  name: \"a {\"  # {\n  layer { name: \"b\" relu { }";
  EXPECT_THAT(
      RunError(start + "\n  layer { name: \"c\" relu { } }\n}"),
      testing::StartsWith("configs/net.textproto:4:3: unknown field 'layer' of LayerConfig, "
                          "but one of NetConfig: is a } missing above, for the { in line "
                          "3?\n"));
  EXPECT_THAT(RunError(start + " }\n}\n  layer { name: \"c\" relu { } }\n}"),
              testing::StartsWith("configs/net.textproto:5:3: unknown field 'layer' of RunConfig, "
                                  "but one of 'net', which has ended in line 4: is there one } "
                                  "too many above?\n"));
}

TEST(ParseTextConfig, AQuoteThatIsNotClosedIsShown) {
  EXPECT_EQ(RunError("net {\n\tlayer { name: 'a' } name: \"b\n}"),
            "configs/net.textproto:2:28: a quote is not closed in this line\n"
            "  \tlayer { name: 'a' } name: \"b\n"
            "  \t                          ^");
}

TEST(ParseTextConfig, UnknownFieldWithoutASuggestionListsTheValidOnes) {
  EXPECT_THAT(NetError("layer { linear { zzz: 3 } }"),
              HasSubstr("unknown field 'zzz' of LinearConfig; valid are out_features, bias, "));
}

TEST(ParseTextConfig, FieldOfAnEmptyMessage) {
  EXPECT_THAT(NetError("layer { relu { slope: 3 } }"),
              HasSubstr("unknown field 'slope' of ReluConfig; it has none"));
}

TEST(ParseTextConfig, AbbreviatedFieldSuggestsTheOnlyCompletion) {
  EXPECT_THAT(NetError("layer { conv { } }"), HasSubstr("did you mean 'convolution'?"));
}

TEST(ParseTextConfig, UnknownEnumValue) {
  EXPECT_EQ(NetError("layer {\n  max_pool { rounding: CIEL }\n}"),
            "configs/net.textproto:2:24: unknown value 'CIEL' of 'rounding'; did you mean 'CEIL'?\n"
            "    max_pool { rounding: CIEL }\n"
            "                         ^");
  EXPECT_THAT(NetError("layer { max_pool { rounding: NEAREST } }"),
              HasSubstr("valid are FLOOR, CEIL"));
  EXPECT_THAT(NetError("layer { max_pool { rounding: 7 } }"), HasSubstr("net.textproto:1:30: "));
}

TEST(ParseTextConfig, SingularFieldGivenTwice) {
  EXPECT_EQ(NetError("name: \"a\"\nname: \"b\""),
            "configs/net.textproto:2:1: field 'name' is given twice; keep one\n"
            "  name: \"b\"\n"
            "  ^");
  EXPECT_THAT(NetError("layer { relu {} relu {} }"), HasSubstr("field 'relu' is given twice"));
}

TEST(ParseTextConfig, TwoMembersOfAOneof) {
  EXPECT_THAT(NetError("layer { relu {} tanh {} }"),
              HasSubstr(":1:17: 'tanh' and 'relu' exclude one another; keep one"));
}

TEST(ParseTextConfig, ValuesOfTheWrongType) {
  EXPECT_THAT(NetError("input_channels: 3.5"), StartsWith("configs/net.textproto:1:17: expected"));
  EXPECT_THAT(NetError("input_channels: 3000000000"), HasSubstr("out of range"));
  EXPECT_THAT(NetError("input_channels: 99999999999999999999999"), HasSubstr(":1:17: "));
  EXPECT_THAT(NetError("input_channels: \"3\""), HasSubstr(":1:17: "));
  EXPECT_THAT(NetError("name: 3"), HasSubstr(":1:7: "));
  EXPECT_THAT(NetError("layer { convolution { bias: maybe } }"), HasSubstr("bias"));
}

TEST(ParseTextConfig, BrokenSyntax) {
  EXPECT_THAT(NetError("layer { relu {}"), StartsWith("configs/net.textproto:1:16: "));
  EXPECT_THAT(NetError("layer }"), HasSubstr(":1:7: "));
  EXPECT_THAT(NetError("name: \"open"), HasSubstr(":1:"));
  EXPECT_THAT(NetError("name \"n\""), HasSubstr(":1:6: "));
  EXPECT_THAT(NetError("[ringtail.extension]: 3"), HasSubstr(":1:"));
  EXPECT_THAT(NetError("1: 3"), HasSubstr(":1:1: "));
  EXPECT_THAT(NetError(std::string_view("name: \"a\"\0", 10)), HasSubstr(":1:10: "));
}

TEST(ParseTextConfig, NestingIsLimited) {
  constexpr int kLevels = 170'000;
  std::string deep;
  for (int i = 0; i < kLevels; ++i) deep += "layer{";
  EXPECT_THAT(NetError(deep), HasSubstr("elements"));  // and too many of them
  const auto nested = [](int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += "layer{repeat{";
    for (int i = 0; i < levels; ++i) text += "}}";
    return text;
  };
  EXPECT_THAT(NetError(nested(10'000)), HasSubstr("recursion limit"));
  EXPECT_TRUE(ParseNet(nested(30)).ok());
}

TEST(ParseTextConfig, SizeIsLimited) {
  constexpr size_t kLimit = size_t{1} << 20;
  EXPECT_TRUE(ParseNet(std::string(kLimit, ' ')).ok());
  const std::string error = NetError(std::string(kLimit + 1, ' '));
  EXPECT_THAT(error, StartsWith("configs/net.textproto: 1048577 bytes are too many"));
}

TEST(ParseTextConfig, ElementsAreLimited) {
  const auto list = [](int elements) {
    std::string text = "layer { convolution { kernel: [1";
    for (int i = 1; i < elements; ++i) text += ",1";
    return text + "] } }";
  };
  EXPECT_TRUE(ParseNet(list(99'990)).ok());
  const std::string error = NetError(list(100'001));
  EXPECT_THAT(error, HasSubstr("more than 100000 fields and list elements"));
  EXPECT_LT(error.size(), 450u) << "of a long line only the surroundings are shown";
}

TEST(ParseTextConfig, CharactersInStringsAndCommentsAreNoElements) {
  const std::string signs(200'000, ',');
  EXPECT_TRUE(ParseNet("name: \"" + signs + "\\\"" + signs + "\"").ok());
  EXPECT_TRUE(ParseNet("# \"" + signs + "\nname: 'a'").ok());
  EXPECT_THAT(NetError("name: 'a'\n" + signs), HasSubstr(":2:"));
}

TEST(ParseTextConfig, TextMustBeUtf8) {
  EXPECT_TRUE(ParseNet("name: \"Hündchen 🐶\"").ok());
  EXPECT_THAT(NetError("name: \"a\"\nname: \"\xC3\x28\""), HasSubstr(":2:8: not valid UTF-8"));
  EXPECT_THAT(NetError("\xEF\xBB\xBFname: \"a\""), HasSubstr("byte order mark"));
}

TEST(ParseTextConfig, EscapedStringsMustBeUtf8) {
  NetConfig net;
  EXPECT_TRUE(ParseNet(R"(name: "\303\274")", &net).ok());
  EXPECT_EQ(net.name(), "ü");
  EXPECT_THAT(NetError("layer {}\nlayer { name: \"\\377\" }"),
              StartsWith("configs/net.textproto:2:9: layer[1].name is not valid UTF-8"));
}

TEST(ParseTextConfig, ColumnsAreCharactersAndTabsStay) {
  EXPECT_EQ(NetError("\tname: \"ü\" \tnmae: 1"),
            "configs/net.textproto:1:13: unknown field 'nmae' of NetConfig; did you mean 'name'?\n"
            "  \tname: \"ü\" \tnmae: 1\n"
            "  \t          \t^");
}

TEST(ParseTextConfig, LongLinesAreCutAroundTheCaret) {
  const std::string blanks(500, ' ');
  const std::string error = NetError(blanks + "nmae: 1" + blanks);
  EXPECT_THAT(error, HasSubstr(":1:501: "));
  EXPECT_THAT(error, HasSubstr("\n  ..."));
  EXPECT_THAT(error, EndsWith("^"));
  EXPECT_LT(error.size(), 450u);
}

TEST(ParseTextConfig, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_THAT(NetError("name: \"\x1B[31m\" nmae: 1"), Not(HasSubstr("\x1B")));
}

TEST(ParseTextConfig, WindowsLineEnds) {
  EXPECT_EQ(NetError("name: 'a'\r\nnmae: 1\r\n"),
            "configs/net.textproto:2:1: unknown field 'nmae' of NetConfig; did you mean 'name'?\n"
            "  nmae: 1\n"
            "  ^");
}

TEST(ReadTextConfig, NamesTheFile) {
  const TempDir dir;
  const std::string path = dir.File("run.textproto");
  std::ofstream(path) << "train { epochs: 3 }";
  RunConfig run;
  ASSERT_TRUE(ReadTextConfig(path, &run, nullptr).ok());
  EXPECT_EQ(run.train().epochs(), 3);
  const Status missing = ReadTextConfig(dir.File("none.textproto"), &run, nullptr);
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("none.textproto"));
  EXPECT_FALSE(ReadTextConfig(dir.path(), &run, nullptr).ok()) << "a folder is no config";
}

TEST(PrintTextConfig, ReadsBackTheSame) {
  NetConfig net;
  ASSERT_TRUE(ParseNet(R"(name: "Hündchen \"1\"\n" layer { name: "p" input: "images"
                           average_pool { kernel: 2 kernel: 3 rounding: CEIL } }
                           layer { leaky_relu { slope: 0.1 } } layer { lrn { alpha: 1e-4 k: inf } })",
                       &net)
                  .ok());
  const std::string text = PrintTextConfig(net);
  EXPECT_THAT(text, HasSubstr("Hündchen"));
  NetConfig again;
  ASSERT_TRUE(ParseNet(text, &again).ok()) << text;
  EXPECT_EQ(again.SerializeAsString(), net.SerializeAsString());
}

}  // namespace
}  // namespace ringtail
