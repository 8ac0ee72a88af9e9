#include "core/config/written_defaults.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "core/check.h"

namespace ringtail {
namespace {

namespace pb = google::protobuf;

void WriteOutDefault(const pb::FieldDescriptor* field, pb::Message* message) {
  std::string value;
  pb::TextFormat::PrintFieldValueToString(*message, field, -1, &value);
  RT_CHECK(pb::TextFormat::Parser().ParseFieldValueFromString(value, field, message),
           field->full_name());
}

}  // namespace

void WriteOutDefaults(pb::Message* message) {
  const auto* const reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor* const field = message->GetDescriptor()->field(i);
    const bool has_fields = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated()) {
      for (int k = 0; has_fields && k < reflection->FieldSize(*message, field); ++k) {
        WriteOutDefaults(reflection->MutableRepeatedMessage(message, field, k));
      }
      continue;
    }
    const bool is_set = reflection->HasField(*message, field);
    if (field->containing_oneof() != nullptr && !is_set) continue;
    if (has_fields) {
      WriteOutDefaults(reflection->MutableMessage(message, field));
    } else if (!is_set) {
      WriteOutDefault(field, message);
    }
  }
}

}  // namespace ringtail
