#include "apps/config/config_fields.h"

#include <fmt/core.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ringtail {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// The fields that may differ between ranks.
constexpr std::array<std::string_view, 9> kOwn = {"data.path",
                                                  "data.layout",
                                                  "data.workers",
                                                  "data.prefetch_batches",
                                                  "data.cache_mib",
                                                  "train.threads",
                                                  "train.weights",
                                                  "train.measured_precision",
                                                  "optim.batch_scaling.begun_epochs"};

std::string Text(const Message& message) {
  std::string text;
  TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  printer.PrintToString(message, &text);
  return text;
}

std::string Value(const Message& message, const FieldDescriptor* field, int index) {
  std::string text;
  TextFormat::PrintFieldValueToString(message, field, index, &text);
  return text;
}

void Collect(const Message& message, const std::string& prefix, std::vector<ConfigField>* fields);

void CollectField(const Message& message, const FieldDescriptor* field, int index,
                  const std::string& path, std::vector<ConfigField>* fields) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    fields->emplace_back(path, Value(message, field, index));
    return;
  }
  const auto* reflection = message.GetReflection();
  Collect(index < 0 ? reflection->GetMessage(message, field)
                    : reflection->GetRepeatedMessage(message, field, index),
          path, fields);
}

// Collects the field that is set of a oneof, and all other fields with their defaults.
void Collect(const Message& message, const std::string& prefix, std::vector<ConfigField>* fields) {
  const auto* descriptor = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string path = fmt::format("{}.{}", prefix, field->name());
    if (std::find(kOwn.begin(), kOwn.end(), path) != kOwn.end()) continue;
    if (field->is_repeated()) {
      for (int k = 0; k < reflection->FieldSize(message, field); ++k) {
        CollectField(message, field, k, fmt::format("{}[{}]", path, k), fields);
      }
      continue;
    }
    const bool message_or_choice = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ||
                                   field->containing_oneof() != nullptr;
    if (message_or_choice && !reflection->HasField(message, field)) continue;
    CollectField(message, field, -1, path, fields);
  }
}

}  // namespace

std::vector<ConfigField> SharedConfigFields(const RunConfig& config) {
  std::vector<ConfigField> fields;
  Collect(config.train(), "train", &fields);
  Collect(config.optim(), "optim", &fields);
  Collect(config.data(), "data", &fields);
  Collect(config.dist(), "dist", &fields);
  NetConfig rest = config.net();
  rest.clear_layer();
  fields.emplace_back("net", Text(rest));
  for (const LayerConfig& layer : config.net().layer()) {
    fields.emplace_back(fmt::format("net.layer[{}]", layer.name()), Text(layer));
  }
  return fields;
}

}  // namespace ringtail
