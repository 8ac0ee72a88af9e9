#include "core/config/config_source.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "core/config/config_source_impl.h"
#include "fmt/format.h"

namespace ringtail {

namespace pb = google::protobuf;

std::optional<size_t> ConfigSource::Impl::FindOffset(const FieldPath& path) const {
  std::optional<size_t> deepest;
  const pb::Descriptor* message = type;
  const pb::TextFormat::ParseInfoTree* tree = &locations;
  for (const PathStep& step : path) {
    if (message == nullptr || tree == nullptr) break;
    const pb::FieldDescriptor* field = message->FindFieldByName(step.field);
    if (field == nullptr) break;
    const int index = field->is_repeated() ? step.Index().value_or(0) : -1;
    pb::TextFormat::ParseLocation location = tree->GetLocation(field, index);
    // `kernel: [3, 5]` is recorded once, for all of its elements.
    if (location.line < 0 && field->is_repeated()) location = tree->GetLocation(field, 0);
    if (location.line < 0) break;
    deepest = text.OffsetOf(location.line, location.column);
    message = field->message_type();
    tree = message == nullptr ? nullptr : tree->GetTreeForNested(field, index);
  }
  return deepest;
}

ConfigSource::ConfigSource() : impl_(std::make_unique<Impl>()) {}
ConfigSource::~ConfigSource() = default;
ConfigSource::ConfigSource(ConfigSource&&) noexcept = default;
ConfigSource& ConfigSource::operator=(ConfigSource&&) noexcept = default;

Status ConfigSource::Error(std::string_view path, std::string_view message) const {
  const StatusOr<FieldPath> parsed = ParseFieldPath(path);
  const FieldPath steps = parsed.ok() ? *parsed : FieldPath{};
  const auto& overrides = impl_->overrides;
  const auto overridden = std::find_if(overrides.rbegin(), overrides.rend(),
                                       [&](const auto& o) { return IsAtOrBelow(steps, o.path); });
  if (overridden != overrides.rend()) {
    return InvalidArgument(fmt::format("{}: {}", overridden->written, message));
  }
  if (const auto offset = impl_->FindOffset(steps)) return impl_->text.Error(*offset, message);
  const std::string& file = impl_->text.file_name();
  return InvalidArgument(fmt::format("{}: {}", file.empty() ? std::string(path) : file, message));
}

}  // namespace ringtail
