#include "core/config/config_override.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <memory>

#include "core/config/config_source_impl.h"
#include "core/config/field_path.h"
#include "core/config/message_checks.h"
#include "core/config/text_parser.h"
#include "core/config/unknown_field.h"
#include "core/text/utf8.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

// Finds an element of a repeated field: by number or, for messages, by the field `name`.
class ElementFinder {
 public:
  ElementFinder(const pb::Message& message, const FieldDescriptor* field)
      : message_(message),
        field_(field),
        size_(message.GetReflection()->FieldSize(message, field)) {}

  StatusOr<int> Find(const PathStep& step) const {
    if (const auto index = step.Index()) return CheckIndex(*index);
    const std::vector<std::string> names = Names();
    const auto found = std::find(names.begin(), names.end(), *step.selector);
    if (found != names.end()) return static_cast<int>(found - names.begin());
    return InvalidArgument(fmt::format("'{}' has no element named '{}'{}", field_->name(),
                                       *step.selector, Suggestion(*step.selector, names)));
  }

 private:
  StatusOr<int> CheckIndex(int index) const {
    if (index < size_) return index;
    return InvalidArgument(fmt::format("'{}' has {} elements, numbered from 0; there is no [{}]",
                                       field_->name(), size_, index));
  }

  std::vector<std::string> Names() const {
    if (field_->message_type() == nullptr) return {};
    const FieldDescriptor* name = field_->message_type()->FindFieldByName("name");
    if (name == nullptr || name->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return {};
    std::vector<std::string> names;
    for (int i = 0; i < size_; ++i) {
      const pb::Message& element =
          message_.GetReflection()->GetRepeatedMessage(message_, field_, i);
      names.push_back(element.GetReflection()->GetString(element, name));
    }
    return names;
  }

  const pb::Message& message_;
  const FieldDescriptor* const field_;
  const int size_;
};

// Where a message is: what a path to one of its fields begins with.
struct Place {
  const pb::Descriptor* root = nullptr;
  std::string_view flag;  // that the path is behind
  std::string above;      // "train."
};

StatusOr<const FieldDescriptor*> FindField(const pb::Message& message, const PathStep& step,
                                           const Place& place) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(step.field);
  if (field == nullptr) {
    return InvalidArgument(
        UnknownField(step.field, *message.GetDescriptor(), place.above, *place.root));
  }
  if (step.selector && !field->is_repeated()) {
    return InvalidArgument(
        fmt::format("'{}' is not a list; leave out [{}]", step.field, *step.selector));
  }
  return field;
}

// Replaces the selector by a number, so that different spellings of a path compare equal.
StatusOr<int> ResolveIndex(const pb::Message& message, const FieldDescriptor* field,
                           PathStep* step) {
  RT_ASSIGN_OR_RETURN(const int index, ElementFinder(message, field).Find(*step));
  step->selector = std::to_string(index);
  return index;
}

// The message one step down, created if absent.
StatusOr<pb::Message*> Descend(pb::Message* message, PathStep* step, const Place& place) {
  RT_ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(*message, *step, place));
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return InvalidArgument(fmt::format("'{}' is a value and has no fields below it", step->field));
  }
  if (!field->is_repeated()) return message->GetReflection()->MutableMessage(message, field);
  if (!step->selector) {
    return InvalidArgument(
        fmt::format("'{0}' is a list; say which element, as {0}[0] or {0}[its name]", step->field));
  }
  RT_ASSIGN_OR_RETURN(const int index, ResolveIndex(*message, field, step));
  return message->GetReflection()->MutableRepeatedMessage(message, field, index);
}

// A string in text format; quotes are optional on the command line.
std::string QuoteString(std::string_view value) {
  if (value.starts_with('"') || value.starts_with('\'')) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + '"';
}

std::string QuoteStrings(std::string_view values) {
  std::string list;
  while (true) {
    const size_t comma = values.find(',');
    list += QuoteString(values.substr(0, comma));
    if (comma == std::string_view::npos) return list;
    list += ',';
    values.remove_prefix(comma + 1);
  }
}

// "field: value" for the parser, from the user's text after '='.
std::string FieldText(const FieldDescriptor& field, bool is_element, std::string_view value) {
  const bool is_string = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (!field.is_repeated() || is_element) {
    return field.name() + ": " + (is_string ? QuoteString(value) : std::string(value));
  }
  if (value.starts_with('[')) return fmt::format("{}: {}", field.name(), value);
  const bool is_quoted = value.starts_with('"') || value.starts_with('\'');
  const bool add_quotes = is_string && !is_quoted && !value.empty();
  return fmt::format("{}: [{}]", field.name(),
                     add_quotes ? QuoteStrings(value) : std::string(value));
}

// A message of the type of `parent` in which only `field` is set, parsed from `value`.
StatusOr<std::unique_ptr<pb::Message>> ParseValue(const pb::Message& parent,
                                                  const FieldDescriptor* field, bool is_element,
                                                  std::string_view value, std::string_view flag) {
  std::unique_ptr<pb::Message> fragment(parent.New());
  const std::string text = FieldText(*field, is_element, value);
  if (const auto failure = RunTextParser(text, fragment.get(), nullptr)) {
    return InvalidArgument(failure->sentence);
  }
  RT_RETURN_IF_ERROR(CheckStrings(*fragment, nullptr, ""));
  std::vector<const FieldDescriptor*> fields;
  fragment->GetReflection()->ListFields(*fragment, &fields);
  for (const FieldDescriptor* set : fields) {
    if (set == field) continue;
    return InvalidArgument(
        fmt::format("the value also sets '{}'; use one {} for each field", set->name(), flag));
  }
  return fragment;
}

Status SetLeaf(pb::Message* message, PathStep* step, std::string_view value, const Place& place) {
  RT_ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(*message, *step, place));
  const bool is_element = step->selector.has_value();
  int index = -1;
  if (is_element) {
    RT_ASSIGN_OR_RETURN(index, ResolveIndex(*message, field, step));
  }
  RT_ASSIGN_OR_RETURN(const std::unique_ptr<pb::Message> fragment,
                      ParseValue(*message, field, is_element, value, place.flag));
  const pb::Reflection& reflection = *message->GetReflection();
  if (is_element && reflection.FieldSize(*fragment, field) != 1) {
    return InvalidArgument(fmt::format("'{}[{}]' takes one value", step->field, *step->selector));
  }
  if (!is_element) reflection.ClearField(message, field);
  message->MergeFrom(*fragment);  // appends to a repeated field
  if (is_element) {
    const int last = reflection.FieldSize(*message, field) - 1;
    reflection.SwapElements(message, field, index, last);
    reflection.RemoveLast(message, field);
  }
  return {};
}

Status Assign(FieldPath* path, std::string_view value, std::string_view flag, pb::Message* config) {
  pb::Message* message = config;
  Place place{.root = config->GetDescriptor(), .flag = flag};
  for (size_t i = 0; i + 1 < path->size(); ++i) {
    PathStep& step = (*path)[i];
    const std::string selector = step.selector ? "[" + *step.selector + "]" : "";
    RT_ASSIGN_OR_RETURN(message, Descend(message, &step, place));
    place.above += step.field + selector + ".";
  }
  return SetLeaf(message, &path->back(), value, place);
}

}  // namespace

Status ApplyOverride(std::string_view assignment, pb::Message* config, ConfigSource* source,
                     std::string_view flag) {
  const std::string context = fmt::format("{} {}", flag, assignment);
  if (ValidUtf8Prefix(assignment) < assignment.size()) {
    return InvalidArgument(fmt::format("{}: the assignment is not valid UTF-8", flag));
  }
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return InvalidArgument(context + ": expected path=value, as in train.epochs=3");
  }
  StatusOr<FieldPath> path = ParseFieldPath(assignment.substr(0, equals));
  if (!path.ok()) return path.status().Annotate(context);

  // A copy, because a failure must leave `config` unchanged.
  const std::unique_ptr<pb::Message> changed(config->New());
  changed->CopyFrom(*config);
  RT_RETURN_IF_ERROR(
      Assign(&*path, assignment.substr(equals + 1), flag, changed.get()).Annotate(context));
  config->GetReflection()->Swap(config, changed.get());
  if (source != nullptr) source->impl_->overrides.push_back({*std::move(path), context});
  return {};
}

}  // namespace ringtail
