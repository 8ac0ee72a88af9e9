#include "dist/membership/fingerprint.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string_view>

namespace ringtail {
namespace {

constexpr char kNone[] = "(none)";

}  // namespace

Status CheckFields(const FingerprintFields& fields) {
  if (fields.size() > kMaxFields) {
    return InvalidArgument(fmt::format("{} fields are more than {}", fields.size(), kMaxFields));
  }
  std::set<std::string_view> names;
  for (const FingerprintField& field : fields) {
    if (field.name.empty() || field.name.size() > kMaxFieldNameBytes) {
      return InvalidArgument(fmt::format("a field's name has 1 to {} bytes, not {}",
                                         kMaxFieldNameBytes, field.name.size()));
    }
    if (field.value.size() > kMaxFieldValueBytes) {
      return InvalidArgument(fmt::format("field {} has {} bytes, more than {}: say a hash of it",
                                         field.name, field.value.size(), kMaxFieldValueBytes));
    }
    if (!names.insert(field.name).second) {
      return InvalidArgument(fmt::format("field {} is there twice", field.name));
    }
  }
  return {};
}

std::optional<Disagreement> CompareFingerprints(const FingerprintFields& expected,
                                                const FingerprintFields& found) {
  std::map<std::string_view, std::string_view> left;
  for (const FingerprintField& field : found) left.emplace(field.name, field.value);
  std::optional<Disagreement> first;
  const auto differs = [&](std::string_view name, std::string_view here, std::string_view there) {
    if (first.has_value()) {
      first->others.emplace_back(name);
    } else {
      first = {.name = std::string(name),
               .expected = std::string(here),
               .found = std::string(there),
               .others = {}};
    }
  };
  for (const FingerprintField& field : expected) {
    const auto at = left.find(field.name);
    if (at == left.end()) {
      differs(field.name, field.value, kNone);
      continue;
    }
    if (at->second != field.value) differs(field.name, field.value, at->second);
    left.erase(at);
  }
  for (const auto& [name, value] : left) differs(name, kNone, value);
  return first;
}

}  // namespace ringtail
