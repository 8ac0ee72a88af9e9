#include "data/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace ringtail {
namespace {

constexpr size_t kMaxClassesByName = 10;  // more are only counted
constexpr size_t kMaxNames = 5;           // of ignored entries

struct KindName {
  std::string_view one, many;
};
constexpr KindName kKindNames[] = {
    {"hidden file", "hidden files"},
    {"other file", "other files"},
    {"image of a format that is not read", "images of formats that are not read"},
    {"folder", "folders"},
    {"special file", "special files"},
    {"image of another name", "images of other names"},
    {"folder without images", "folders without images"},
};

// " (.gif, .heic)"
std::string InBrackets(const std::set<std::string>& names) {
  if (names.empty()) return "";
  const std::vector<std::string> shown(names.begin(),
                                       std::next(names.begin(), std::min(names.size(), kMaxNames)));
  return fmt::format(" ({}{})", fmt::join(shown, ", "), shown.size() < names.size() ? ", ..." : "");
}

}  // namespace

void IgnoredFiles::AddNamed(IgnoredKind kind, const std::string& name) {
  Add(kind);
  names_[static_cast<int>(kind)].insert(name);
}

void IgnoredFiles::AddOnly(IgnoredKind kind, const IgnoredFiles& other) {
  const auto i = static_cast<size_t>(kind);
  counts_[i] += other.counts_[i];
  names_[i].insert(other.names_[i].begin(), other.names_[i].end());
}

void IgnoredFiles::Add(const IgnoredFiles& other) {
  for (size_t i = 0; i < counts_.size(); ++i) AddOnly(static_cast<IgnoredKind>(i), other);
}

std::string IgnoredFiles::ToString() const {
  static_assert(std::size(kKindNames) == kKinds);
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    const std::string_view name = counts_[i] == 1 ? kKindNames[i].one : kKindNames[i].many;
    parts.push_back(fmt::format("{} {}{}", GroupDigits(counts_[i]), name, InBrackets(names_[i])));
  }
  return parts.empty() ? "" : fmt::format(" ({} ignored)", fmt::join(parts, ", "));
}

std::string GroupDigits(int64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return digits;
}

std::string DescribeSamples(const std::vector<Sample>& samples,
                            const std::vector<std::string>& class_names) {
  std::vector<int64_t> counts(class_names.size());
  int64_t unlabelled = 0, training = 0, validating = 0;
  for (const Sample& sample : samples) {
    ++(sample.label < 0 ? unlabelled : counts[sample.label]);
    training += sample.part == SplitPart::kTrain;
    validating += sample.part == SplitPart::kValidation;
  }
  const int64_t labelled = static_cast<int64_t>(samples.size()) - unlabelled;
  std::vector<std::string> parts;
  if (labelled > 0 && class_names.size() > kMaxClassesByName) {
    parts.push_back(fmt::format("{} images in {} classes", GroupDigits(labelled),
                                GroupDigits(static_cast<int64_t>(class_names.size()))));
  } else if (labelled > 0) {
    for (size_t i = 0; i < class_names.size(); ++i) {
      parts.push_back(fmt::format("{} {}", GroupDigits(counts[i]), class_names[i]));
    }
  }
  if (unlabelled > 0) parts.push_back(GroupDigits(unlabelled) + " without a label");
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (training + validating > 0) {
    text += fmt::format("; split by folders: {} train, {} validation", GroupDigits(training),
                        GroupDigits(validating));
  }
  return text;
}

}  // namespace ringtail
