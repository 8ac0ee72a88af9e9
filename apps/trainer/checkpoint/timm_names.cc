#include "apps/trainer/checkpoint/timm_names.h"

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace ringtail {
namespace {

using Renaming = std::pair<std::string_view, std::string_view>;

constexpr Renaming kVgg[] = {{"pre_logits.fc1", "classifier.0"},
                             {"pre_logits.fc2", "classifier.3"},
                             {"head.fc", "classifier.6"}};
constexpr Renaming kMobileNet[] = {{"conv_stem", "features.0.0"},
                                   {"bn1", "features.0.1"},
                                   {"conv_head", "features.18.0"},
                                   {"bn2", "features.18.1"},
                                   {"classifier", "classifier.1"}};
// Of the first stage, whose blocks do not expand, and of the others.
constexpr Renaming kPlainBlock[] = {
    {"conv_dw", "0.0"}, {"bn1", "0.1"}, {"conv_pw", "1"}, {"bn2", "2"}};
constexpr Renaming kBlock[] = {{"conv_pw", "0.0"}, {"bn1", "0.1"},    {"conv_dw", "1.0"},
                               {"bn2", "1.1"},     {"conv_pwl", "2"}, {"bn3", "3"}};
// torchvision numbers blocks over the whole net: the first of each stage (Sandler et al. 2018,
// table 2).
constexpr std::array<size_t, 7> kFirstOfStage = {1, 2, 4, 7, 11, 14, 17};

// `name` with what it begins with, up to a dot, replaced; none if the list has no such beginning.
std::optional<std::string> Replace(std::string_view name, std::span<const Renaming> list) {
  for (const auto& [from, to] : list) {
    if (name.starts_with(from) && name.substr(from.size()).starts_with('.')) {
      return fmt::format("{}{}", to, name.substr(from.size()));
    }
  }
  return std::nullopt;
}

// Takes "3." off the front.
std::optional<size_t> TakeDigit(std::string_view* text) {
  if (text->size() < 2 || (*text)[0] < '0' || (*text)[0] > '9' || (*text)[1] != '.') {
    return std::nullopt;
  }
  const auto digit = static_cast<size_t>((*text)[0] - '0');
  text->remove_prefix(2);
  return digit;
}

}  // namespace

std::string TorchvisionNameOfTimmVgg(const std::string& name) {
  return Replace(name, kVgg).value_or(name);
}

std::string TorchvisionNameOfTimmMobileNet(const std::string& name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return Replace(name, kMobileNet).value_or(name);
  std::string_view rest = std::string_view(name).substr(kBlocks.size());
  const auto stage = TakeDigit(&rest), block = TakeDigit(&rest);
  if (!stage || !block || *stage >= kFirstOfStage.size()) return name;
  const auto layer = *stage == 0 ? Replace(rest, kPlainBlock) : Replace(rest, kBlock);
  if (!layer) return name;
  return fmt::format("features.{}.conv.{}", kFirstOfStage[*stage] + *block, *layer);
}

}  // namespace ringtail
