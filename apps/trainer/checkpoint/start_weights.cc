#include "apps/trainer/checkpoint/start_weights.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/checkpoint/network_of_run.h"
#include "apps/trainer/checkpoint/timm_names.h"
#include "core/storage/weights/weights_file.h"

namespace ringtail {
namespace {

constexpr double kMillion = 1e6;
constexpr std::string_view kPrefixes[] = {"module.", "_orig_mod.", "model."};
constexpr size_t kMostNames = 3;  // in a message

using Tensors = std::map<std::string, StridedTensor>;

std::string Describe(const std::string& name, const Shape& shape) {
  return fmt::format("'{}' ({})", name, ShapeString(shape));
}

// The tensors of a file by the names that the network may have, and how these came about.
struct Source {
  Tensors tensors;
  std::string how;  // "from its state_dict, without the prefix module."; empty: as they are
  bool own = false;
  std::string class_names;  // of an own file; one per line
};

void Say(std::string_view what, Source* source) {
  source->how += fmt::format("{}{}", source->how.empty() ? "" : ", ", what);
}

// Averaged weights stand for the others, as in evaluation; the optimizer's state has no use.
Source FromRun(const WeightsFile& file) {
  Source source{.own = true};
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.starts_with(kAveragePrefix)) source.tensors.emplace(name, tensor);
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (name.starts_with(kAveragePrefix)) {
      source.tensors[name.substr(std::string_view(kAveragePrefix).size())] = tensor;
    }
  }
  const auto classes = file.metadata().find("class_names");
  if (classes != file.metadata().end()) source.class_names = classes->second;
  return source;
}

void Rename(const std::function<std::string(const std::string&)>& name_of, Source* source) {
  Tensors renamed;
  for (auto& [name, tensor] : source->tensors) renamed.emplace(name_of(name), std::move(tensor));
  source->tensors = std::move(renamed);
}

void LeaveOutPrefixes(Source* source) {
  for (bool again = true; again && !source->tensors.empty();) {
    again = false;
    for (const std::string_view prefix : kPrefixes) {
      const bool all = std::all_of(source->tensors.begin(), source->tensors.end(),
                                   [&](const auto& t) { return t.first.starts_with(prefix); });
      if (!all) continue;
      Rename([&](const std::string& name) { return name.substr(prefix.size()); }, source);
      Say(fmt::format("without the prefix {}", prefix), source);
      again = true;
    }
  }
}

// timm's VGG has convolutions where torchvision has linear layers: the same numbers in the same
// order.
void FlattenLinear(Tensors* tensors) {
  for (auto& [name, tensor] : *tensors) {
    Shape& shape = tensor.shape;
    const bool flat = name.starts_with("classifier.") && shape.size() == 4 &&
                      tensor.strides == ContiguousStrides(shape);
    if (!flat) continue;
    shape = {shape[0], NumElements(shape) / std::max<int64_t>(shape[0], 1)};
    tensor.strides = ContiguousStrides(shape);
  }
}

Source FromOthers(const WeightsFile& file) {
  constexpr std::string_view kCounter = "num_batches_tracked";
  Source source;
  if (!file.taken_from().empty()) Say(fmt::format("from its {}", file.taken_from()), &source);
  for (const auto& [name, tensor] : file.tensors()) {
    if (!name.ends_with(kCounter)) source.tensors.emplace(name, tensor);
  }
  LeaveOutPrefixes(&source);
  if (source.tensors.contains("conv_stem.weight")) {
    Rename(TorchvisionNameOfTimmMobileNet, &source);
    Say("renamed from timm's", &source);
  } else if (source.tensors.contains("pre_logits.fc1.weight")) {
    Rename(TorchvisionNameOfTimmVgg, &source);
    FlattenLinear(&source.tensors);
    Say("renamed from timm's", &source);
  }
  return source;
}

class Loader {
 public:
  Loader(std::string path, Source source, Model* model)
      : path_(std::move(path)), source_(std::move(source)), model_(*model) {
    for (const Parameter* p : model->parameters(model->head())) head_.insert(p->spec.name);
  }

  StatusOr<std::string> Load(const std::vector<std::string>& class_names) {
    const ParameterArena& arena = model_.arena();
    const bool keeps_head = HeadFits(class_names);
    for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
      for (const Parameter& p : list) RT_RETURN_IF_ERROR(LoadOne(p, keeps_head));
    }
    RT_RETURN_IF_ERROR(CheckNothingIsLeft());
    RT_RETURN_IF_ERROR(CheckFiniteWeights(arena).Annotate(path_));
    return Report();
  }

 private:
  const StridedTensor* Find(const std::string& name) const {
    const auto found = source_.tensors.find(name);
    return found == source_.tensors.end() ? nullptr : &found->second;
  }

  bool HeadFits(const std::vector<std::string>& class_names) {
    for (const Parameter* p : model_.parameters(model_.head())) {
      const StridedTensor* const tensor = Find(p->spec.name);
      if (tensor == nullptr || tensor->shape != p->spec.shape) return false;
    }
    if (!source_.own || source_.class_names == fmt::format("{}", fmt::join(class_names, "\n"))) {
      return true;
    }
    why_new_ = " (its classes are others)";
    return false;
  }

  Status LoadOne(const Parameter& p, bool keeps_head) {
    const std::string& name = p.spec.name;
    const StridedTensor* const tensor = Find(name);
    if (head_.contains(name) && !keeps_head) {
      fresh_.push_back(fmt::format("{} {}", name, ShapeString(p.spec.shape)));
      if (tensor != nullptr && tensor->shape != p.spec.shape) {
        fresh_.back() += fmt::format(" (file: {})", ShapeString(tensor->shape));
      }
      return OkStatus();
    }
    if (tensor == nullptr) return Missing(p);
    if (tensor->shape != p.spec.shape) {
      return InvalidArgument(
          fmt::format("{} in the network is {} in '{}'; only the last layer with weights may have "
                      "another shape",
                      Describe(name, p.spec.shape), ShapeString(tensor->shape), path_));
    }
    RT_RETURN_IF_ERROR(
        ToFloats(*tensor, p.value()).Annotate(fmt::format("'{}' of '{}'", name, path_)));
    ++taken_;
    if (!p.is_buffer) taken_weights_ += p.elements;
    return OkStatus();
  }

  // Names of the file that the network does not have.
  std::vector<std::string> Left() const {
    const ParameterArena& arena = model_.arena();
    std::set<std::string> known;
    for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
      for (const Parameter& p : list) known.insert(p.spec.name);
    }
    std::vector<std::string> left;
    for (const auto& [name, tensor] : source_.tensors) {
      if (!known.contains(name)) left.push_back(name);
    }
    return left;
  }

  // "'a' (1x2), 'b' (3) and 5 others"
  std::string SomeOf(const std::vector<std::string>& names) const {
    std::vector<std::string> some;
    for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
      some.push_back(Describe(names[i], Find(names[i])->shape));
    }
    const std::string others =
        names.size() > kMostNames ? fmt::format(" and {} others", names.size() - kMostNames) : "";
    return fmt::format("{}{}", fmt::join(some, ", "), others);
  }

  Status Missing(const Parameter& p) const {
    const std::vector<std::string> left = source_.own ? std::vector<std::string>() : Left();
    const std::string instead =
        left.empty() ? "" : fmt::format("; it has {}, which the network has not", SomeOf(left));
    return InvalidArgument(fmt::format(
        "'{}' has no {} of the network{}; weights are found by name, for the shipped networks "
        "torchvision's: is it a file for this --config?",
        path_, Describe(p.spec.name, p.spec.shape), instead));
  }

  // The head of other classes may have another name: "fc" here, "classifier" there.
  bool IsOtherHead(const std::string& name) const {
    if (fresh_.empty()) return false;
    const Shape& shape = Find(name)->shape;
    for (const Parameter* p : model_.parameters(model_.head())) {
      const Shape& own = p->spec.shape;
      if (own.size() == shape.size() && std::equal(own.begin() + 1, own.end(), shape.begin() + 1)) {
        return true;
      }
    }
    return false;
  }

  Status CheckNothingIsLeft() {
    if (source_.own) return OkStatus();
    const std::vector<std::string> left = Left();
    const size_t head_parts = model_.parameters(model_.head()).size();
    const bool other_head =
        left.size() <= head_parts &&
        std::all_of(left.begin(), left.end(), [&](const auto& name) { return IsOtherHead(name); });
    if (other_head) {
      for (const std::string& name : left) not_taken_.push_back(name);
      return OkStatus();
    }
    return InvalidArgument(
        fmt::format("'{}' has {}, which the network has not: it is of a larger or another network",
                    path_, SomeOf(left)));
  }

  std::string Report() const {
    std::string text = fmt::format("{}: {} of {} tensors taken ({:.2f} of {:.2f} M weights)", path_,
                                   taken_, taken_ + static_cast<int64_t>(fresh_.size()),
                                   static_cast<double>(taken_weights_) / kMillion,
                                   static_cast<double>(model_.CountParameters()) / kMillion);
    if (!source_.how.empty()) text += ", " + source_.how;
    if (!fresh_.empty()) text += fmt::format("; new{}: {}", why_new_, fmt::join(fresh_, ", "));
    if (!not_taken_.empty()) text += fmt::format("; left out: {}", fmt::join(not_taken_, ", "));
    return text;
  }

  const std::string path_;
  const Source source_;
  Model& model_;
  std::set<std::string> head_;  // names of its parameters
  std::vector<std::string> fresh_, not_taken_;
  std::string why_new_;
  int64_t taken_ = 0, taken_weights_ = 0;
};

}  // namespace

StatusOr<std::string> LoadStartWeights(const std::string& path,
                                       const std::vector<std::string>& class_names, Model* model) {
  if (model->head() < 0) return InvalidArgument("the network has no weights to begin with");
  RT_ASSIGN_OR_RETURN(const std::string file_path, NetworkFile(path));
  RT_ASSIGN_OR_RETURN(const WeightsFile file, WeightsFile::Read(file_path));
  const bool own = file.metadata().contains(kConfigKey);
  return Loader(file_path, own ? FromRun(file) : FromOthers(file), model).Load(class_names);
}

}  // namespace ringtail
