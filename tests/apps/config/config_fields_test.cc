// Properties of every field of a config. The fields are found by reflection, so that new ones are
// tested, too.
#include "apps/config/config_fields.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/checkpoint/config_difference.h"
#include "core/config/config_override.h"
#include "core/config/text_config.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;

using Path = std::vector<const FieldDescriptor*>;  // from RunConfig to a scalar

// Omits messages within messages of their own type (a layer within `repeat`).
void Collect(const Descriptor* message, const Path& above, std::vector<Path>* paths) {
  for (int i = 0; i < message->field_count(); ++i) {
    Path path = above;
    path.push_back(message->field(i));
    const Descriptor* inner = path.back()->message_type();
    if (inner == nullptr) {
      paths->push_back(path);
    } else if (std::none_of(above.begin(), above.end(),
                            [&](const auto* field) { return field->message_type() == inner; })) {
      Collect(inner, path, paths);
    }
  }
}

std::vector<Path> AllFields() {
  std::vector<Path> paths;
  Collect(RunConfig::descriptor(), {}, &paths);
  return paths;
}

// "train.phase.image_size"
std::string Name(const Path& path) {
  std::string name;
  for (const FieldDescriptor* field : path) name += (name.empty() ? "" : ".") + field->name();
  return name;
}

// "train.phase[0].image_size"
std::string Place(const Path& path) {
  std::string place;
  for (const FieldDescriptor* field : path) {
    place += (place.empty() ? "" : ".") + field->name();
    if (field->is_repeated() && field != path.back()) place += "[0]";
  }
  return place;
}

// A value that is neither the default nor in the config of tiny_run.h.
std::string AnotherValue(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return field->default_value_bool() ? "false" : "true";
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* values = field->enum_type();
      return values
          ->value(field->default_value_enum()->index() == 0 ? values->value_count() - 1 : 0)
          ->name();
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return "another";
    default:
      return "7777";
  }
}

// The argument of --set for a config that has the messages of the path.
Status SetAnother(const Path& path, RunConfig* config) {
  Message* message = config;
  for (const FieldDescriptor* field : path) {
    if (field == path.back()) break;
    const auto* reflection = message->GetReflection();
    if (!field->is_repeated()) {
      message = reflection->MutableMessage(message, field);
    } else if (reflection->FieldSize(*message, field) > 0) {
      message = reflection->MutableRepeatedMessage(message, field, 0);
    } else {
      message = reflection->AddMessage(message, field);
    }
  }
  return ApplyOverride(Place(path) + "=" + AnotherValue(path.back()), config, nullptr);
}

class EveryFieldTest : public testing::Test {
 protected:
  // Calls `fn` with the tiny config and one that differs in `path` only; both have the messages of
  // the path (an element of a list, a rule).
  static void ForEach(const std::function<void(const std::string& name, const RunConfig& config,
                                               const RunConfig& changed)>& fn) {
    const std::vector<Path> paths = AllFields();
    EXPECT_GT(paths.size(), 150U);
    for (const Path& path : paths) {
      RunConfig changed = TinyConfig().config;
      const Status set = SetAnother(path, &changed);
      ASSERT_TRUE(set.ok()) << set.ToString();
      RunConfig config = changed;
      Message* parent = &config;
      for (const FieldDescriptor* field : path) {
        const auto* reflection = parent->GetReflection();
        if (field == path.back()) {
          reflection->ClearField(parent, field);
          break;
        }
        parent = field->is_repeated() ? reflection->MutableRepeatedMessage(parent, field, 0)
                                      : reflection->MutableMessage(parent, field);
      }
      fn(Name(path), config, changed);
    }
  }
};

// README.md: any field can be set without a new file.
TEST_F(EveryFieldTest, CanBeSet) {
  ForEach([](const std::string& name, const RunConfig& config, const RunConfig& changed) {
    EXPECT_NE(config.SerializeAsString(), changed.SerializeAsString()) << name;
  });
}

// apps/README.md: equal on all ranks, except the place of the images, threads, caches, and how the
// run began.
TEST_F(EveryFieldTest, IsSharedByAllRanksUnlessItDescribesOneRank) {
  const std::set<std::string> own = {
      "data.path", "data.layout", "data.workers", "data.prefetch_batches", "data.cache_mib",
      "train.threads",
      // Rank 0 tells the others.
      "train.weights", "optim.batch_scaling.begun_epochs", "train.measured_precision.precision",
      "train.measured_precision.float32_ms", "train.measured_precision.bfloat16_ms",
      "train.measured_precision.images", "train.measured_precision.image_size"};
  ForEach([&](const std::string& name, const RunConfig& config, const RunConfig& changed) {
    EXPECT_EQ(SharedConfigFields(config) == SharedConfigFields(changed), own.contains(name))
        << name;
  });
}

// apps/README.md: a config that would change the bits is refused, with the fields that differ.
// config_difference.h says what may change.
TEST_F(EveryFieldTest, IsNamedIfItMayNotChangeOnResume) {
  const std::set<std::string> may_change = {
      "data.path", "data.layout", "data.workers", "data.prefetch_batches", "data.cache_mib",
      // Evaluation and logging of a run, and where it runs.
      "train.threads", "train.evaluation_batch", "train.evaluate_every_epochs",
      "train.evaluate_flipped", "train.evaluation_image_size", "train.evaluation_image_scale",
      "train.until_accuracy", "train.checkpoint_every_steps", "train.keep_checkpoints",
      "train.on_nan", "train.log_every_steps", "train.patience",
      // Read before the first step; both matter with reference_images only
      // (config_difference_test.cc).
      "train.weights", "optim.batch_scaling.begun_epochs",
      // How a precision was found that the config names itself.
      "train.measured_precision.precision", "train.measured_precision.float32_ms",
      "train.measured_precision.bfloat16_ms", "train.measured_precision.images",
      "train.measured_precision.image_size",
      // Cooperation of ranks. (How a run continues that began with another plan: follow_plan.h.)
      "dist.plan", "dist.algorithm", "dist.bucket_kib", "dist.end_bucket_kib",
      "dist.check_every_steps", "dist.on_disagreement", "dist.transport", "dist.shared_memory",
      "dist.join_timeout_s", "dist.hang_timeout_s", "dist.model_parallel.linear",
      "dist.model_parallel.layer", "dist.model_parallel.pieces",
      "dist.model_parallel.pipeline.stages", "dist.model_parallel.pipeline.schedule",
      "dist.model_parallel.pipeline.cut_after", "dist.model_parallel.pipeline.wire"};
  ForEach([&](const std::string& name, const RunConfig& config, const RunConfig& changed) {
    const Status status = CheckResumable(config, changed);
    if (may_change.contains(name)) {
      EXPECT_TRUE(status.ok()) << name << ": " << status.message();
      return;
    }
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << name;
    const std::string last = name.substr(name.rfind('.') + 1);
    EXPECT_THAT(status.message(), HasSubstr(last)) << name;
  });
}

// Every number must be finite; the error names its place.
TEST_F(EveryFieldTest, IsRefusedWithItsPlaceIfItIsNotANumber) {
  int numbers = 0;
  for (const Path& path : AllFields()) {
    const auto type = path.back()->cpp_type();
    if (type != FieldDescriptor::CPPTYPE_DOUBLE && type != FieldDescriptor::CPPTYPE_FLOAT) continue;
    ++numbers;
    RunConfig config = TinyConfig().config;
    ASSERT_TRUE(SetAnother(path, &config).ok());
    for (const char* value : {"nan", "inf", "-inf"}) {
      const std::string set = fmt::format("{}={}", Place(path), value);
      const auto loaded = ParseRunConfig(PrintTextConfig(config), "run.textproto", {{set}});
      ASSERT_FALSE(loaded.ok()) << set;
      EXPECT_EQ(loaded.status().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(loaded.status().message(), HasSubstr(path.back()->name())) << set;
      EXPECT_THAT(loaded.status().message(), HasSubstr("--set " + set)) << set;
    }
  }
  EXPECT_GT(numbers, 50);
}

// The schemas give a range for every number except seeds, and no range includes the value here.
TEST_F(EveryFieldTest, IsRefusedWithItsPlaceIfItIsFarBelowItsRange) {
  int numbers = 0;
  for (const Path& path : AllFields()) {
    const FieldDescriptor& field = *path.back();
    const bool real = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
                      field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
    const bool whole = field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
    if (!real && !whole) continue;
    if (path.front()->name() == "net") continue;  // tests/apps/malformed_config_test.cc
    ++numbers;
    const std::string set = Place(path) + (real ? "=-1e30" : "=-2147483648");
    const std::vector<std::string> sets = {
        "data.split.train={first: 0 last: 7}",
        "data.split.validation={first: 8 last: 9}",
        "dist.compression.rule={name: \"*\" scheme { bf16 {} }}",
        "dist.local.period=4",
        "dist.local.start_epoch=1",  // gradients travel before
        "dist.local.compression.rule={name: \"*\" scheme { bf16 {} }}",
        set};
    const auto loaded = ParseRunConfig(TinyConfigText(), "run.textproto", sets);
    ASSERT_FALSE(loaded.ok()) << set;
    EXPECT_THAT(loaded.status().message(), HasSubstr("--set " + set + ": " + field.name()));
  }
  EXPECT_GT(numbers, 50);
}

}  // namespace
}  // namespace ringtail
