#include "apps/help/flag_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/help/field_paths.h"
#include "apps/run.pb.h"
#include "core/config/nearest_name.h"

namespace ringtail {
namespace {

// Names in other programs, and the last part of the field here.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"lr", "learning_rate"},
    {"pretrained", "train.weights"},
    {"batch_size", "batch"},
    {"bs", "batch"},
    {"wd", "weight_decay"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"img_size", "image_size"},
    {"imgsz", "image_size"},
    {"size", "image_size"},
    {"ema", "ema_decay"},
    {"grad_clip", "clip_norm"},
    {"clip_grad", "clip_norm"},
    {"accum_steps", "accumulation"},
    {"warmup_epochs", "warmup.epochs"}};

// Names in other programs of what is a flag here.
constexpr std::pair<std::string_view, std::string_view> kFlagSynonyms[] = {
    {"model", "--config"}, {"arch", "--config"}, {"dataset", "--data"}, {"save_dir", "--output"}};

std::string Underscored(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

// "train.epochs", "optim.sgd.momentum": what --set can give a value.
std::vector<std::string> Fields() {
  std::vector<std::string> paths;
  for (const std::string& assignment : FieldAssignments(*RunConfig::descriptor())) {
    const size_t end = assignment.find('=');
    if (end != std::string::npos) paths.push_back(assignment.substr(0, end));
  }
  return paths;
}

bool EndsWith(const std::string& path, const std::string& name) {
  return path == name || path.ends_with("." + name);
}

struct Flag {
  std::string name, value;  // without "--"; empty: none was given
};

Flag FirstFlag(const std::vector<std::string>& words) {
  const auto flag = std::ranges::find_if(
      words, [](const std::string& word) { return word.starts_with("--") && word.size() > 2; });
  if (flag == words.end()) return {};
  const size_t equals = flag->find('=');
  if (equals != std::string::npos) {
    return {flag->substr(2, equals - 2), flag->substr(equals + 1)};
  }
  const auto next = flag + 1;
  const bool has_value = next != words.end() && !next->starts_with("-");
  return {flag->substr(2), has_value ? *next : ""};
}

}  // namespace

std::string FieldOfFlag(std::string_view name) {
  std::string wanted = Underscored(name);
  const auto synonym = std::ranges::find(kSynonyms, wanted, [](const auto& s) { return s.first; });
  if (synonym != std::end(kSynonyms)) wanted = synonym->second;
  std::string best;
  for (const std::string& path : Fields()) {
    const auto depth = [](const std::string& text) { return std::ranges::count(text, '.'); };
    if (EndsWith(path, wanted) && (best.empty() || depth(path) < depth(best))) best = path;
  }
  return best;
}

std::string FlagHint(const std::vector<std::string>& words, const VerbInfo& verb) {
  const Flag flag = FirstFlag(words);
  std::vector<std::string> names;
  for (const FlagInfo& known : verb.flags) {
    names.insert(names.end(), known.names.begin(), known.names.end());
  }
  const auto takes = [&names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  if (flag.name.empty()) {
    return words.size() == 1 && takes("--data") ? "--data " + words.front() : "";
  }
  const auto synonym = std::ranges::find(kFlagSynonyms, Underscored(flag.name),
                                         [](const auto& s) { return s.first; });
  if (synonym != std::end(kFlagSynonyms) && takes(synonym->second)) {
    return fmt::format("{} {}", synonym->second, flag.value.empty() ? "VALUE" : flag.value);
  }
  if (takes("--set")) {
    const std::string field = FieldOfFlag(flag.name);
    if (!field.empty()) {
      return fmt::format("--set {}={}", field, flag.value.empty() ? "VALUE" : flag.value);
    }
  }
  return NearestName("--" + flag.name, names);
}

}  // namespace ringtail
