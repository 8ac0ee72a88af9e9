// A list of images as text: "path label" per line, or a CSV table (list_line.h); a path is relative
// to the list's folder, or absolute.
//
//   # kittens first
//   kittens/an image.jpg cat
//   puppies/1.jpg dog
//
// Labels are class names, or numbers from 0 (-1: no label), not both. Empty lines and lines that
// begin with '#' are skipped. The paths are only read, never written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "core/storage/file.h"
#include "data/image_name.h"
#include "data/layouts/folder_listing.h"
#include "data/layouts/layouts.h"
#include "data/layouts/list_line.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxListBytes = int64_t{256} << 20;
constexpr size_t kProbedPaths = 10;  // if none of the first ones exists, the list was moved

// Adds lines to an ImageList, and labels once all class names are known.
class ListReader {
 public:
  explicit ListReader(const std::string& path)
      : folder_(std::filesystem::path(path).parent_path().string()) {
    list_.layout = "list file";
    list_.root = path;
  }

  Status AddLine(const ListLine& line, int64_t line_number) {
    const std::string key = EscapeName(line.path);
    const auto [earlier, is_new] = line_of_key_.emplace(key, line_number);
    if (!is_new) {
      return InvalidArgument(fmt::format("'{}' is already in line {}", key, earlier->second));
    }
    if (!list_.images.empty() && line.number.has_value() != numeric_) {
      return InvalidArgument(fmt::format(
          "label '{}' is a {}, the previous labels are {}; use one kind in all lines",
          EscapeName(line.label), line.number ? "number" : "name", numeric_ ? "numbers" : "names"));
    }
    numeric_ = line.number.has_value();
    const std::string file = line.path.starts_with('/') ? line.path : JoinPath(folder_, line.path);
    list_.images.push_back({file, {key, line.number.value_or(-1)}});
    if (!numeric_) labels_.push_back(EscapeName(CanonicalClassName(line.label)));
    return OkStatus();
  }

  StatusOr<ImageList> Finish() && {
    if (list_.images.empty()) return InvalidArgument("the list names no images");
    RT_RETURN_IF_ERROR(CheckThatSomeExist());
    if (numeric_) {
      NameNumbers();
    } else {
      NumberNames();
    }
    return std::move(list_);
  }

 private:
  Status CheckThatSomeExist() const {
    const size_t probes = std::min(kProbedPaths, list_.images.size());
    for (size_t i = 0; i < probes; ++i) {
      std::error_code ignored;
      if (std::filesystem::exists(list_.images[i].path, ignored)) return OkStatus();
    }
    return NotFound(
        fmt::format("none of the first {} images exists, for example {}; paths are relative to "
                    "the list's folder",
                    probes, EscapeName(list_.images[0].path)));
  }

  void NameNumbers() {
    int32_t max_label = -1;
    for (const ListedImage& image : list_.images) {
      max_label = std::max(max_label, image.sample.label);
    }
    for (int32_t i = 0; i <= max_label; ++i) list_.class_names.push_back(std::to_string(i));
  }

  void NumberNames() {
    std::map<std::string, int32_t, NaturalOrder> numbers;
    for (const std::string& label : labels_) numbers.emplace(label, 0);
    for (auto& [name, number] : numbers) {
      number = static_cast<int32_t>(list_.class_names.size());
      list_.class_names.push_back(name);
    }
    for (size_t i = 0; i < labels_.size(); ++i) {
      list_.images[i].sample.label = numbers.at(labels_[i]);
    }
  }

  std::string folder_;
  ImageList list_;
  std::vector<std::string> labels_;  // by image, if labels are names
  std::unordered_map<std::string, int64_t> line_of_key_;
  bool numeric_ = false;
};

}  // namespace

StatusOr<ImageList> ReadListFile(const std::string& path) {
  RT_ASSIGN_OR_RETURN(const std::string text, ReadFileText(path, kMaxListBytes));
  std::string_view rest = text;
  if (rest.starts_with("\xef\xbb\xbf"))
    rest.remove_prefix(3);  // the mark that Windows' editors write
  ListReader reader(path);
  ListLineParser parser;
  for (int64_t line_number = 1; !rest.empty(); ++line_number) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = TrimLine(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const std::string place = fmt::format("{}:{}", EscapeName(path), line_number);
    const auto parsed = parser.Parse(line);
    if (!parsed.ok()) return parsed.status().Annotate(place);
    if (!*parsed) continue;  // the names of columns
    RT_RETURN_IF_ERROR(reader.AddLine(**parsed, line_number).Annotate(place));
  }
  auto list = std::move(reader).Finish();
  if (!list.ok()) return list.status().Annotate(EscapeName(path));
  return list;
}

}  // namespace ringtail
