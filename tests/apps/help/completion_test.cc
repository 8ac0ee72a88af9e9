// Completion: all verbs, flags, configs and fields in the scripts of three shells; bash's function called as bash does.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/config/shipped_configs.h"
#include "apps/help/completion.h"
#include "apps/help/field_paths.h"
#include "apps/run.pb.h"
#include "core/config/config_override.h"
#include "tests/apps/help/verbs.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

std::string Script(const std::string& shell) {
  const ProcessResult printed = RunRingtail({"completion", shell});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  return printed.out;
}

// From `begin` to the next `end`.
std::string Part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  return from == std::string::npos ? ""
                                   : text.substr(from, text.find(end, from + begin.size()) - from);
}

TEST(FieldAssignmentsTest, AreThoseThatSetTakes) {
  const std::vector<std::string> fields = FieldAssignments(*RunConfig::descriptor());
  EXPECT_THAT(fields, IsSupersetOf({"train.epochs=", "train.precision=BFLOAT16",
                                    "train.freeze=", "train.evaluate_flipped=true", "optim.adam={}",
                                    "optim.adam.beta1=", "net.layer[", "data.path="}));
  EXPECT_THAT(fields, Not(Contains("train=")));
  // Each is accepted, once the value that is left out is there.
  int assigned = 0;
  for (const std::string& field : fields) {
    if (field.ends_with('[')) continue;
    RunConfig config;
    const bool open = field.ends_with('=');
    const bool known = ApplyOverride(open ? field + "1" : field, &config, nullptr).ok() ||
                       ApplyOverride(field + "name", &config, nullptr).ok();
    EXPECT_TRUE(known) << field;
    ++assigned;
  }
  EXPECT_GT(assigned, 150);
}

// No config of today has such a message.
TEST(FieldAssignmentsTest, EndWhereAMessageContainsItself) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("node.proto");
  auto* const node = file.add_message_type();
  node->set_name("Node");
  const auto add = [node](const std::string& name,
                          google::protobuf::FieldDescriptorProto::Type type) {
    auto* const field = node->add_field();
    field->set_name(name);
    field->set_number(node->field_size());
    field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
    field->set_type(type);
    return field;
  };
  add("value", google::protobuf::FieldDescriptorProto::TYPE_INT32);
  add("next", google::protobuf::FieldDescriptorProto::TYPE_MESSAGE)->set_type_name("Node");
  add("last", google::protobuf::FieldDescriptorProto::TYPE_BOOL);
  google::protobuf::DescriptorPool pool;
  const auto* const built = pool.BuildFile(file);
  ASSERT_NE(built, nullptr);
  EXPECT_THAT(FieldAssignments(*built->message_type(0)),
              ElementsAre("value=", "last=true", "last=false"));
}

TEST(CompletionTest, EveryScriptHasAllVerbsFlagsConfigsAndFields) {
  const std::string bash = Script("bash"), zsh = Script("zsh"), fish = Script("fish");
  const std::string bash_flags = Part(bash, "_ringtail_flags() {", "\n}\n");
  for (const VerbHelp& verb : AllVerbs()) {
    const std::string in_bash = Part(bash_flags, "\n    " + verb.name + ") ", "\n");
    const std::string in_zsh = Part(zsh, "\n" + verb.name + ")\n_arguments ", ";;");
    for (const std::string& flag : verb.flags) {
      EXPECT_THAT(in_bash, HasSubstr("'" + flag + "'")) << verb.name;
      EXPECT_THAT(in_zsh, testing::ContainsRegex("'\\*?" + flag + "=?\\[")) << verb.name;
      EXPECT_THAT(fish, testing::ContainsRegex("'__fish_seen_subcommand_from " + verb.name +
                                               "'[^\n]* -l " + flag.substr(2) + " "));
    }
    EXPECT_THAT(fish, HasSubstr("__fish_use_subcommand -a " + verb.name + " -d"));
    EXPECT_THAT(zsh, HasSubstr("\n    '" + verb.name + ":"));
  }
  std::vector<std::string> words = ShippedConfigNames();
  const auto fields = FieldAssignments(*RunConfig::descriptor());
  words.insert(words.end(), fields.begin(), fields.end());
  for (const std::string& script : {bash, zsh, fish}) {
    for (const std::string& word : words) EXPECT_THAT(script, HasSubstr(" '" + word + "'"));
  }
}

// Shells that are not there are not asked.
TEST(CompletionTest, ScriptsAreWellFormed) {
  const TempDir folder;
  int asked = 0;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (RunProcess({"sh", "-c", "command -v " + shell}).exit_code != 0) continue;
    const std::string path = folder.File(shell);
    std::ofstream(path) << Script(shell);
    const ProcessResult checked = RunProcess({shell, "-n", path});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_EQ(checked.err, "");
    ++asked;
  }
  EXPECT_GE(asked, 1);  // bash is there
}

TEST(CompletionTest, FlagsWithQuotesAndBrackets) {
  const ProgramInfo program{
      .own = {.name = "p", .description = "it's", .footer = "", .flags = {}},
      .verbs = {{.name = "v",
                 .description = "it's",
                 .footer = "",
                 .flags = {{.names = {"--a"}, .argument = "A:B", .description = "[1] isn't \\"}}}}};
  EXPECT_THAT(ZshCompletion(program, "", {}), HasSubstr("'--a=[\\[1\\] isn'\\''t \\\\]:A\\:B: '"));
  EXPECT_THAT(FishCompletion(program, "", {}), HasSubstr("-l a -r -f -d '[1] isn\\'t \\\\'"));
}

// What bash offers behind `line`, sorted; words are split as Readline splits them.
class BashCompletionTest : public testing::Test {
 protected:
  BashCompletionTest() {
    std::ofstream(folder_.File("script")) << Script("bash");
    std::ofstream(folder_.File("image one.jpg")) << "";
    RunProcess({"mkdir", folder_.File("images")});
  }

  std::vector<std::string> Offer(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += " '" + word + "'";
    const ProcessResult shown =
        RunProcess({"env", "--chdir=" + folder_.path(), "bash", "--norc", "-uc",
                    "source ./script; COMP_WORDS=(ringtail" + line +
                        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1));"
                        "COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'; _ringtail ringtail; printf "
                        "'%s\\n' \"${COMPREPLY[@]}\""});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(shown.err, "");
    std::vector<std::string> offered;
    std::istringstream lines(shown.out);
    for (std::string offer; std::getline(lines, offer);) offered.push_back(offer);
    std::ranges::sort(offered);
    return offered;
  }

  TempDir folder_;
};

TEST_F(BashCompletionTest, VerbsAndFlags) {
  EXPECT_THAT(Offer({"tr"}), ElementsAre("train"));
  EXPECT_THAT(Offer({""}), IsSupersetOf({"train", "evaluate", "help"}));
  EXPECT_THAT(Offer({"train", "--until"}), ElementsAre("--until-accuracy"));
  EXPECT_THAT(Offer({"--ver"}), ElementsAre("--version"));
  EXPECT_THAT(Offer({"help", "synth"}), ElementsAre("synthesize"));
  EXPECT_THAT(Offer({"completion", ""}), ElementsAre("bash", "fish", "zsh"));
  EXPECT_THAT(Offer({"train", "--no-report", ""}), IsSupersetOf({"--data", "--config"}));
  EXPECT_THAT(Offer({"nosuch", "--"}), ElementsAre(""));
}

TEST_F(BashCompletionTest, Values) {
  EXPECT_THAT(Offer({"train", "--config", "resnet1"}), ElementsAre("resnet18"));
  EXPECT_THAT(Offer({"train", "--config", "=", "resnet1"}), ElementsAre("resnet18"));
  EXPECT_THAT(Offer({"time", "--precision", ""}), ElementsAre("auto", "bf16", "f32"));
  EXPECT_THAT(Offer({"configs", "mob"}), ElementsAre("mobilenet_v2"));
  EXPECT_THAT(Offer({"train", "--batch-is-no-flag", "resnet1"}), Not(Contains("resnet18")));
  EXPECT_THAT(Offer({"train", "--data", "ima"}), ElementsAre("image one.jpg", "images"));
  EXPECT_THAT(Offer({"predict", "--images", "a.jpg", "ima"}),
              ElementsAre("image one.jpg", "images"));
  EXPECT_THAT(Offer({"train", "--output", "ima"}), ElementsAre("images"));
  EXPECT_THAT(Offer({"report", "ima"}), ElementsAre("images"));
}

// Readline makes words of their own of '=' and of what stands behind it.
TEST_F(BashCompletionTest, Fields) {
  EXPECT_THAT(Offer({"train", "--set", "train.epo"}), ElementsAre("train.epochs="));
  EXPECT_THAT(Offer({"train", "--set", "net.la"}), ElementsAre("net.layer["));
  EXPECT_THAT(Offer({"train", "--set", "train.precision", "="}),
              ElementsAre("AUTO", "BFLOAT16", "FLOAT32"));
  EXPECT_THAT(Offer({"train", "--set", "train.precision", "=", "BF"}), ElementsAre("BFLOAT16"));
  EXPECT_THAT(Offer({"train", "--set", "train.epochs", "=", "3", "--set", "optim.adamw", "="}),
              ElementsAre("{}"));
  EXPECT_THAT(Offer({"train", "--set", "train.epochs", "=", "3", "--wei"}),
              ElementsAre("--weights"));
  EXPECT_THAT(Offer({"emulate", "--script-set", "work"}), Contains(HasSubstr("workers")));
}

}  // namespace
}  // namespace ringtail
