// Configs that are wrong, malicious or both: each must end in one error that points at its place,
// with exit code 2, at once and in little memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr long kMostRssKib = 200 * 1024;
constexpr std::chrono::seconds kTimeLimit{20};  // each takes a few hundredths of a second

struct Malformed {
  std::string name, text;
  std::string says;     // part of the message
  std::string at = {};  // the text at the position of the error, unique in the file; "": any
};

const char kLoss[] = "layer { name: \"loss\" softmax_cross_entropy {} }\n";

// A net with `layers` before a linear layer and the loss.
std::string Net(const std::string& layers) {
  return "net {\n" + layers + "\nlayer { name: \"fc\" linear { out_features: 2 } }\n" + kLoss +
         "}\n";
}

// A valid net, followed by other text.
std::string And(const std::string& rest) {
  return Net("layer { name: \"conv\" convolution { out_channels: 4 kernel: 3 } }") + rest;
}

std::string Convolution(const std::string& fields) {
  return Net("layer { name: \"conv\" convolution { " + fields + " } }");
}

std::string Pool(const std::string& fields) {
  return Net("layer { name: \"pool\" max_pool { " + fields + " } }");
}

std::string Repeat(const std::string& text, int count) {
  std::string all;
  all.reserve(text.size() * count);
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// For messages of the test.
void PrintTo(const Malformed& malformed, std::ostream* out) { *out << malformed.name; }

std::vector<Malformed> Syntax() {
  return {
      {"word", "hello", "hello"},
      {"brace_missing", "net { name: \"x\"", ""},
      {"brace_extra", "net { } }", ""},
      {"string_open", "net { name: \"x", ""},
      {"unknown_field", "nett { }", "did you mean 'net'"},
      {"unknown_field_deep", Convolution("out_channels: 4 kernal: 3"), "did you mean 'kernel'"},
      {"unknown_kind", Net("layer { name: \"a\" convolutoin { } }"), "convolution"},
      {"given_twice", And("train { epochs: 1 epochs: 2 }"), "epochs"},
      {"oneof_twice", Net("layer { name: \"a\" relu {} tanh {} }"), ""},
      {"text_for_number", And("train { batch: \"many\" }"), ""},
      {"fraction_for_integer", And("train { batch: 1.5 }"), ""},
      {"number_too_large", And("train { batch: 4294967296 }"), ""},
      {"seed_negative", And("train { seed: -1 }"), ""},
      {"bool_wrong", Convolution("out_channels: 4 kernel: 3 bias: maybe"), ""},
      {"enum_wrong", And("train { on_nan: STOPP }"), "STOP"},
      {"utf8_invalid", "net { name: \"\xff\xfe\" }", ""},
      {"nul_byte", std::string("net { name: \"a\" }\0 }", 20), ""},
      {"nested_120000_deep", Repeat("net { layer { repeat { ", 40000), ""},
      {"repeat_nested_1000_deep",
       "net { " + Repeat("layer { name: \"r\" repeat { ", 1000) + Repeat("} } ", 1000) + "}", ""},
      {"million_layers", "net {\n" + Repeat("layer{relu{}}", 80000) + "}", ""},
  };
}

std::vector<Malformed> Graphs() {
  return {
      {"no_layers", "net { name: \"x\" }", "layers"},
      {"no_loss", "net { layer { name: \"fc\" linear { out_features: 2 } } }", "loss"},
      {"loss_in_the_middle", Net(kLoss), ""},
      {"no_name", Net("layer { relu {} }"), "name"},
      {"no_kind", Net("layer { name: \"a\" }"), "a"},
      {"bad_name", Net("layer { name: \"a b\" relu {} }"), "a b", "name: \"a b\""},
      {"name_twice", Net("layer { name: \"a\" relu {} }\nlayer { name: \"a\" tanh {} }"), "a",
       "name: \"a\" tanh"},
      {"unknown_input", Net("layer { name: \"a\" input: \"imags\" relu {} }"), "images", "input"},
      {"cycle", Net("layer { name: \"a\" input: \"b\" relu {} }\nlayer { name: \"b\" relu {} }"),
       "b"},
      {"own_input", Net("layer { name: \"a\" input: \"a\" relu {} }"), "a"},
      {"unused_output",
       Net("layer { name: \"a\" relu {} }\nlayer { name: \"b\" input: \"images\" relu {} }"), "a"},
      {"add_of_one", Net("layer { name: \"a\" add {} }"), ""},
      {"add_of_shapes",
       Net("layer { name: \"c\" convolution { out_channels: 4 kernel: 3 } }\n"
           "layer { name: \"a\" input: \"c\" input: \"images\" add {} }"),
       ""},
      {"two_inputs_of_one",
       Net("layer { name: \"a\" input: \"images\" input: \"images\" relu {} }"), ""},
      {"channels_zero", "net { input_channels: 0 " + Net("").substr(4), ""},
      {"repeat_a_million",
       Net("layer { name: \"r\" repeat { count: 1000000 layer { name: \"a\" relu {} } } }"), "",
       "count: 1000000"},
      {"repeat_of_repeats",
       Net("layer { name: \"r\" repeat { count: 1000 layer { name: \"r\" repeat { count: 1000 "
           "layer { name: \"a\" relu {} } } } } }"),
       ""},
      {"repeat_negative",
       Net("layer { name: \"r\" repeat { count: -1 layer { name: \"a\" relu {} } } }"), "",
       "count"},
      {"repeat_of_nothing", Net("layer { name: \"r\" repeat { count: 2 } }"), ""},
      {"stage_without_channels", Net("layer { name: \"s\" residual_stage { } }"), "channels",
       "residual_stage"},
      {"stage_of_a_billion_blocks",
       Net("layer { name: \"s\" residual_stage { channels: 8 blocks: 1000000000 } }"), "",
       "blocks"},
      {"stage_before_the_first",
       Net("layer { name: \"s\" inverted_residual_stage { channels: 8 first: -1 } }"), "first",
       "first"},
      {"stage_of_an_empty_block_name",
       Net("layer { name: \"s\" inverted_residual_stage { channels: 8 block_name: \"\" } }"),
       "block_name", "block_name"},
  };
}

std::vector<Malformed> Layers() {
  return {
      {"no_out_channels", Convolution("kernel: 3"), "out_channels", "convolution"},
      {"out_channels_zero", Convolution("out_channels: 0 kernel: 3"), "", "out_channels: 0"},
      {"out_channels_negative", Convolution("out_channels: -1 kernel: 3"), "", "out_channels: -1"},
      {"out_channels_2_31", Convolution("out_channels: 2147483647 kernel: 3"), ""},
      {"out_channels_2_62", Convolution("out_channels: 4611686018427387904 kernel: 3"), ""},
      {"no_kernel", Convolution("out_channels: 4"), "kernel", "convolution"},
      {"kernel_zero", Convolution("out_channels: 4 kernel: 0"), "", "kernel: 0"},
      {"kernel_larger_than_image", Convolution("out_channels: 4 kernel: 999"), "", "kernel: 999"},
      {"kernel_of_three", Convolution("out_channels: 4 kernel: 3 kernel: 3 kernel: 3"), "",
       "kernel: 3 kernel: 3 kernel"},
      {"stride_zero", Convolution("out_channels: 4 kernel: 3 stride: 0"), "", "stride"},
      {"stride_negative", Convolution("out_channels: 4 kernel: 3 stride: -2"), "", "stride"},
      {"second_stride_zero", Convolution("out_channels: 4 kernel: 3 stride: 1 stride: 0"),
       "stride is 0", "stride: 0"},
      {"padding_negative", Convolution("out_channels: 4 kernel: 3 padding: -1"), "", "padding"},
      {"padding_2_31", Convolution("out_channels: 4 kernel: 3 padding: 2147483647"), "", "padding"},
      {"padding_of_three", Convolution("out_channels: 4 kernel: 3 padding: [1, 1, 1]"), "",
       "padding"},
      {"dilation_zero", Convolution("out_channels: 4 kernel: 3 dilation: 0"), "", "dilation"},
      {"groups_do_not_divide", Convolution("out_channels: 4 kernel: 3 groups: 2"), "groups is 2",
       "groups"},
      {"groups_zero", Convolution("out_channels: 4 kernel: 3 groups: 0"), "", "groups"},
      {"init_nan", Convolution("out_channels: 4 kernel: 3 weight_init { normal { std: nan } }"), "",
       "std"},
      {"init_negative", Convolution("out_channels: 4 kernel: 3 weight_init { normal { std: -1 } }"),
       "std is -1", "std"},
      {"init_gain_zero",
       Convolution("out_channels: 4 kernel: 3 bias_init { he_uniform { gain: 0 } }"), "gain is 0",
       "gain"},
      {"init_without_a_kind", Convolution("out_channels: 4 kernel: 3 weight_init { }"), "no kind",
       "weight_init"},
      {"init_without_a_fan",
       Net("layer { name: \"b\" batch_norm { weight_init { xavier_normal {} } } }"), "no fan",
       "weight_init"},
      {"pool_without_kernel", Pool(""), "kernel", "max_pool"},
      {"pool_padding_too_large", Pool("kernel: 2 padding: 2"), "", "padding"},
      {"pool_stride_zero", Pool("kernel: 2 stride: 0"), "", "stride"},
      {"pool_of_nothing", Pool("stride: 1 kernel: 9999"), "does not fit", "kernel"},
      {"adaptive_pool_to_nothing", Net("layer { name: \"p\" adaptive_average_pool { output: 0 } }"),
       "output is 0", "output"},
      {"linear_without_features", Net("layer { name: \"l\" linear {} }"), "out_features",
       "linear {}"},
      {"linear_of_2_31", Net("layer { name: \"l\" linear { out_features: 2147483647 } }"), ""},
      {"linears_of_a_terabyte",
       Net("layer { name: \"l\" linear { out_features: 1000000 } }\n"
           "layer { name: \"m\" linear { out_features: 1000000 } }"),
       ""},
      {"dropout_one", Net("layer { name: \"d\" dropout { rate: 1 } }"), "", "rate"},
      {"dropout_nan", Net("layer { name: \"d\" dropout { rate: nan } }"), "", "rate"},
      {"drop_connect_one",
       Net("layer { name: \"d\" drop_connect { rate: 1 linear { out_features: 3 } } }"), "",
       "rate"},
      {"drop_connect_of_nothing",
       Net("layer { name: \"d\" drop_connect { linear { out_features: -3 } } }"),
       "layer 'd': out_features is -3", "out_features: -3"},
      {"drop_connect_init",
       Net("layer { name: \"d\" drop_connect { linear { out_features: 3\n"
           "weight_init { normal { std: -1 } } } } }"),
       "std is -1", "std"},
      {"batch_norm_epsilon_zero", Net("layer { name: \"b\" batch_norm { epsilon: 0 } }"), "",
       "epsilon"},
      {"batch_norm_epsilon_negative",
       Net("layer {\n name: \"b\"\n batch_norm {\n  momentum: 0.1\n  epsilon: -1\n }\n}"),
       "layer 'b': epsilon is -1; it must be", "epsilon"},
      {"batch_norm_momentum_two", Net("layer { name: \"b\" batch_norm { momentum: 2 } }"), "",
       "momentum"},
      {"leaky_slope_one", Net("layer { name: \"l\" leaky_relu { slope: 1 } }"), "", "slope"},
      {"lrn_even", Net("layer { name: \"l\" lrn { size: 4 } }"), "", "size"},
      {"lrn_alpha_negative", Net("layer { name: \"l\" lrn { alpha: -1 } }"), "alpha", "alpha"},
      {"lrn_beta_negative", Net("layer { name: \"l\" lrn { beta: -1 } }"), "beta", "beta"},
      {"lrn_k_zero", Net("layer { name: \"l\" lrn { k: 0 } }"), "k is 0", "k: 0"},
      {"smoothing_one",
       "net { layer { name: \"fc\" linear { out_features: 2 } }\n"
       "layer { name: \"loss\" softmax_cross_entropy { label_smoothing: 1 } } }",
       "", "label_smoothing"},
      {"inside_a_repeat",
       Net("layer { name: \"r\" repeat { count: 2 layer { name: \"a\" relu {} }\n"
           "layer { name: \"b\" batch_norm { epsilon: -1 } } } }"),
       "layer 'r.0.b': epsilon is -1", "epsilon"},
      {"inside_two_repeats",
       Net("layer { name: \"r\" repeat { layer { name: \"s\" repeat {\n"
           "layer { name: \"a\" dropout { rate: 2 } } } } } }"),
       "layer 'r.0.s.0.a': rate is 2", "rate"},
  };
}

std::vector<Malformed> Runs() {
  return {
      {"epochs_zero", And("train { epochs: 0 }"), "epochs"},
      {"epochs_nan", And("train { epochs: nan }"), "epochs"},
      {"epochs_inf", And("train { epochs: inf }"), "epochs"},
      {"batch_zero", And("train { batch: 0 }"), "batch"},
      {"batch_2_31", And("train { batch: 2147483647 }"), "batch"},
      {"batch_65537", And("train { batch: 65537 }"), "batch is 65537; it must be from 1 to 65536"},
      {"threads_4097", And("train { threads: 4097 }"), "threads"},
      {"evaluation_batch_negative", And("train { evaluation_batch: -1 }"), "evaluation_batch"},
      {"evaluation_batch_65537", And("train { evaluation_batch: 65537 }"), "evaluation_batch"},
      {"checkpoint_negative", And("train { checkpoint_every_steps: -1 }"),
       "checkpoint_every_steps"},
      {"log_never", And("train { log_every_steps: 0 }"), "log_every_steps"},
      {"phase_of_four_pixels", And("train { phase { image_size: 4 } }"),
       "image_size is 4; it must be from 8 to 1024"},
      {"phase_before_the_begin", And("train { phase { from_epoch: -1 image_size: 64 } }"),
       "from_epoch"},
      {"accumulation_of_odd_sides",
       And("data { image_size: 30 } train { batch: 8 accumulation: 2 }"), "a multiple of 4"},
      {"flip_twice", And("data { augment { flip_probability: 2 } }"), "flip_probability"},
      {"bucket_zero", And("dist { bucket_kib: 0 }"), "bucket_kib"},
      {"bucket_of_two_gib", And("dist { end_bucket_kib: 2097152 }"), "end_bucket_kib"},
      {"check_negative", And("dist { check_every_steps: -1 }"), "check_every_steps"},
      {"join_at_once", And("dist { join_timeout_s: 0.01 }"), "join_timeout_s"},
      {"hang_for_two_days", And("dist { hang_timeout_s: 172800 }"), "hang_timeout_s"},
      {"accumulation_does_not_divide", And("train { batch: 10 accumulation: 3 }"), "accumulation"},
      {"threads_negative", And("train { threads: -1 }"), "threads"},
      {"freeze_beside_servers",
       And("train { freeze: \"conv\" }\ndist { asynchronous { rule: ASYNCHRONOUS } }"),
       "leave train.freeze out, or dist.asynchronous", "freeze"},
      {"unfreeze_nothing", And("train { freeze_epochs: 1 }"), "nothing is frozen", "freeze_epochs"},
      {"unfreeze_beside_local_steps",
       And("train { freeze: \"conv\" freeze_epochs: 1 }\ndist { local { period: 4 } }"),
       "dist.local", "freeze_epochs"},
      {"rounds_after_the_end",
       And("train { epochs: 2 }\ndist { local { period: 4 start_epoch: 2 } }"),
       "the run ends after 2 epochs (train.epochs), before any round", "start_epoch"},
      {"unfreeze_momentum_of_dgc",
       And("train { freeze: \"conv\" freeze_epochs: 1 }\noptim { sgd { momentum: 0 } }\n"
           "dist { compression { scheme { dgc {} } } }"),
       "dgc", "freeze_epochs"},
      {"until_95", And("train { until_accuracy: 95 }"), "until_accuracy"},
      {"keep_none", And("train { keep_checkpoints: 0 }"), "keep_checkpoints"},
      {"evaluate_never", And("train { evaluate_every_epochs: 0 }"), "evaluate_every_epochs"},
      {"phases_fall",
       And("train { phase { from_epoch: 2 image_size: 64 } phase { from_epoch: 1 image_size: 96 } "
           "}"),
       "from_epoch"},
      {"phase_without_size", And("train { phase { from_epoch: 2 } }"), "image_size"},
      {"phase_changes_weights", And("train { phase { from_epoch: 2 image_size: 64 } }"),
       "fc.weight"},
      {"evaluation_size", And("train { evaluation_image_size: 5000 }"), "evaluation_image_size"},
      {"evaluation_scale", And("train { evaluation_image_scale: 0 }"), "evaluation_image_scale"},
      {"evaluation_scale_changes_weights", And("train { evaluation_image_scale: 2 }"), "fc.weight"},
      {"image_size_zero", And("data { image_size: 0 }"), "image_size"},
      {"image_size_huge", And("data { image_size: 100000 }"), "image_size"},
      {"validation_all", And("data { split { validation_fraction: 1 } }"), "validation_fraction"},
      {"std_zero", And("data { std: 0 std: 1 std: 1 }"), "std"},
      {"mean_of_two", And("data { mean: 1 mean: 2 }"), "mean"},
      {"crop_fraction", And("data { evaluation { crop_fraction: 1.5 } }"), "crop_fraction"},
      {"area_reversed", And("data { augment { min_area: 0.9 max_area: 0.5 } }"), "area"},
      {"prefetch_one", And("data { prefetch_batches: 1 }"), "prefetch_batches"},
      {"rate_zero", And("optim { learning_rate: 0 }"), "learning_rate"},
      {"rate_nan", And("optim { learning_rate: nan }"), "learning_rate"},
      {"rate_inf", And("optim { learning_rate: inf }"), "learning_rate"},
      {"decay_negative", And("optim { weight_decay: -1 }"), "weight_decay"},
      {"momentum_one", And("optim { sgd { momentum: 1 } }"), "momentum"},
      {"beta_one", And("optim { adam { beta2: 1 } }"), "beta2"},
      {"ema_one", And("optim { ema_decay: 1 }"), "ema_decay"},
      {"step_of_zero", And("optim { step { every_epochs: 0 } }"), "every_epochs"},
      {"marks_fall", And("optim { multi_step { at_epochs: 3 at_epochs: 2 } }"), "at_epochs"},
      {"two_rules", And("optim { sgd {} adam {} }"), ""},
      {"dgc_beside_momentum", And("dist { compression { scheme { dgc {} } } }"),
       "must be sgd with momentum: 0"},
      {"dgc_beside_lars",
       And("optim { lars { momentum: 0 } } dist { compression { scheme { dgc {} } } }"),
       "must be sgd with momentum: 0"},
  };
}

std::vector<Malformed> All() {
  std::vector<Malformed> all;
  for (auto* group : {&Syntax, &Graphs, &Layers, &Runs}) {
    for (Malformed& malformed : (*group)()) all.push_back(std::move(malformed));
  }
  return all;
}

// ":line:column: " of the start of `at`, both counted from 1.
std::string PlaceOf(const std::string& at, const std::string& text) {
  const size_t offset = text.find(at);
  EXPECT_NE(offset, std::string::npos);
  const std::string before = text.substr(0, offset);
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
}

class MalformedConfigTest : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedConfigTest, IsOneErrorAtItsPlace) {
  const TempDir folder;
  const std::string path = folder.File("wrong.textproto");
  std::ofstream(path, std::ios::binary) << GetParam().text;
  const ProcessResult result =
      RunProcess(DogsVsCats({"summary", "--config", path, "--batch", "1"}), {}, kTimeLimit);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err.substr(0, 1000);
  EXPECT_THAT(
      result.err.substr(0, 1000),
      testing::ContainsRegex("^dogs_vs_cats: [^\n]*/wrong.textproto:[0-9]+:[0-9]+: [^\n]+\n"));
  EXPECT_THAT(result.err, testing::HasSubstr(GetParam().says));
  if (!GetParam().at.empty()) {
    EXPECT_THAT(result.err, testing::HasSubstr(PlaceOf(GetParam().at, GetParam().text)));
  }
  EXPECT_LT(result.err.size(), 2000U);
  EXPECT_LT(result.max_rss_kib, kMostRssKib);
}

INSTANTIATE_TEST_SUITE_P(Malformed, MalformedConfigTest, testing::ValuesIn(All()),
                         [](const auto& malformed) { return malformed.param.name; });

TEST(MalformedConfigsTest, FilesTooLargeAreNotRead) {
  const TempDir folder;
  const std::string path = folder.File("wrong.textproto");
  constexpr int64_t kSize = int64_t{1} << 30;
  std::ofstream(path) << "net {}";
  std::filesystem::resize_file(path, kSize);
  const ProcessResult result = RunDogsVsCats({"summary", "--config", path});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("wrong.textproto' has 1073741824 bytes"));
  EXPECT_LT(result.max_rss_kib, kMostRssKib);
}

TEST(MalformedConfigsTest, AreMany) { EXPECT_GE(All().size(), 60U); }

}  // namespace
}  // namespace ringtail
