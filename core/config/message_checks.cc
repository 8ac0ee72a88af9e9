#include "core/config/message_checks.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <functional>

#include "core/text/utf8.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

// One value: singular (index -1) or an element of a repeated field.
struct Value {
  const pb::Message& message;
  const FieldDescriptor* field;
  int index;

  double Number() const {
    const pb::Reflection& r = *message.GetReflection();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      return index < 0 ? r.GetFloat(message, field) : r.GetRepeatedFloat(message, field, index);
    }
    return index < 0 ? r.GetDouble(message, field) : r.GetRepeatedDouble(message, field, index);
  }
  std::string String() const {
    const pb::Reflection& r = *message.GetReflection();
    return index < 0 ? r.GetString(message, field) : r.GetRepeatedString(message, field, index);
  }
  const pb::Message& Nested() const {
    const pb::Reflection& r = *message.GetReflection();
    return index < 0 ? r.GetMessage(message, field) : r.GetRepeatedMessage(message, field, index);
  }
};

// The error of a value; "" if it is right.
using Check = std::function<std::string(const Value&)>;

Status CheckMessage(const pb::Message& message, const ConfigSource* source, const std::string& path,
                    const Check& check);

Status CheckValue(const Value& value, const ConfigSource* source, const std::string& path,
                  const Check& check) {
  if (value.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return CheckMessage(value.Nested(), source, path, check);
  }
  const std::string wrong = check(value);
  if (wrong.empty()) return {};
  const std::string sentence = fmt::format("{} {}", path, wrong);
  return source == nullptr ? InvalidArgument(sentence) : source->Error(path, sentence);
}

Status CheckMessage(const pb::Message& message, const ConfigSource* source, const std::string& path,
                    const Check& check) {
  std::vector<const FieldDescriptor*> fields;
  const pb::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string field_path = path.empty() ? field->name() : path + "." + field->name();
    if (!field->is_repeated()) {
      RT_RETURN_IF_ERROR(CheckValue({message, field, -1}, source, field_path, check));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const std::string element_path = fmt::format("{}[{}]", field_path, i);
      RT_RETURN_IF_ERROR(CheckValue({message, field, i}, source, element_path, check));
    }
  }
  return {};
}

std::string NotFinite(const Value& value) {
  const auto type = value.field->cpp_type();
  if (type != FieldDescriptor::CPPTYPE_FLOAT && type != FieldDescriptor::CPPTYPE_DOUBLE) return "";
  const double number = value.Number();
  return std::isfinite(number) ? "" : fmt::format("is {}; give a finite number", number);
}

std::string NotUtf8(const Value& value) {
  if (value.field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return "";
  const std::string text = value.String();
  return ValidUtf8Prefix(text) == text.size() ? "" : "is not valid UTF-8; check its escapes";
}

}  // namespace

Status CheckFinite(const pb::Message& config, const ConfigSource* source, std::string_view path) {
  return CheckMessage(config, source, std::string(path), NotFinite);
}

Status CheckStrings(const pb::Message& config, const ConfigSource* source, std::string_view path) {
  return CheckMessage(config, source, std::string(path), NotUtf8);
}

}  // namespace ringtail
