#include "core/config/unknown_field.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "core/config/nearest_name.h"
#include "core/config/source_text.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace ringtail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr size_t kMostPaths = 3;
constexpr int kMostSteps = 4;  // of a path that is suggested

// Names in other programs, in lower case, and ours.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"conv", "convolution"},
    {"conv2d", "convolution"},
    {"dense", "linear"},
    {"fc", "linear"},
    {"batchnorm", "batch_norm"},
    {"batchnorm2d", "batch_norm"},
    {"batchnormalization", "batch_norm"},
    {"bn", "batch_norm"},
    {"maxpool", "max_pool"},
    {"maxpool2d", "max_pool"},
    {"maxpooling2d", "max_pool"},
    {"avgpool", "average_pool"},
    {"avgpool2d", "average_pool"},
    {"adaptiveavgpool2d", "adaptive_average_pool"},
    {"globalaveragepooling2d", "global_average_pool"},
    {"localresponsenorm", "lrn"},
    {"leakyrelu", "leaky_relu"},
    {"concatenate", "concat"},
    {"cat", "concat"},
    {"crossentropyloss", "softmax_cross_entropy"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"kernel_size", "kernel"},
    {"pool_size", "kernel"},
    {"filters", "out_channels"},
    {"units", "out_features"},
    {"strides", "stride"},
    {"pad", "padding"},
    {"negative_slope", "slope"},
    {"p", "rate"},
    {"optimizer", "optim"},
    {"lr", "learning_rate"},
    {"wd", "weight_decay"},
    {"batch_size", "batch"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"}};

std::string Synonym(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::ranges::find(kSynonyms, lower, [](const auto& s) { return s.first; });
  return std::string(found == std::end(kSynonyms) ? std::string_view() : found->second);
}

bool Has(const Descriptor& type, std::string_view field) {
  return type.FindFieldByName(std::string(field)) != nullptr;
}

std::string Step(const FieldDescriptor& field) {
  return field.name() + (field.is_repeated() ? "[NAME]." : ".");
}

// Adds the paths to `name` that are `steps` below `type`.
void AddPaths(const Descriptor& type, std::string_view name, const std::string& above, int steps,
              std::vector<std::string>* paths) {
  if (steps == 0) {
    if (Has(type, name)) paths->push_back(above + std::string(name));
    return;
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr) continue;
    AddPaths(*field.message_type(), name, above + Step(field), steps - 1, paths);
  }
}

// "; did you mean 'a.b' or 'c.b'?": the shortest paths below `type`, each after `above`. Empty: there
// are none, or many.
std::string Deeper(std::string_view name, const Descriptor& type, const std::string& above = {}) {
  std::vector<std::string> paths;
  for (int steps = 1; steps <= kMostSteps && paths.empty(); ++steps) {
    AddPaths(type, name, above, steps, &paths);
  }
  if (paths.empty() || paths.size() > kMostPaths) return {};
  return fmt::format("; did you mean '{}'?", fmt::join(paths, "' or '"));
}

// Messages that are open at a place of a file.
struct Open {
  const Descriptor* type = nullptr;  // null: not known
  std::string field;
  size_t line = 0;  // of its brace, from 1
};

class Nest {
 public:
  Nest(const Descriptor& root, std::string_view text) {
    open_.push_back({.type = &root, .field = "", .line = 1});
    for (size_t i = 0; i < text.size();) i = Read(text, i);
  }
  const std::vector<Open>& open() const { return open_; }
  // The last one that ended directly inside of the innermost open one; its line is where it ended.
  const std::optional<Open>& ended() const { return ended_; }

 private:
  // What stands at `i`; where the next begins.
  size_t Read(std::string_view text, size_t i) {
    const char c = text[i];
    if (c == '#' || c == '"' || c == '\'') return EndOfQuoted(text, i);
    if (c == '\n') ++line_;
    if (c == '{' || c == '<') Begin();
    if (c == '}' || c == '>') End();
    if (std::isalpha(static_cast<unsigned char>(c)) == 0 && c != '_') return i + 1;
    size_t end = i;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    word_ = text.substr(i, end - i);
    return end;
  }

  void Begin() {
    const Descriptor* parent = open_.back().type;
    const FieldDescriptor* field =
        parent == nullptr ? nullptr : parent->FindFieldByName(std::string(word_));
    open_.push_back({.type = field == nullptr ? nullptr : field->message_type(),
                     .field = std::string(word_),
                     .line = line_});
    ended_.reset();
  }

  void End() {
    if (open_.size() == 1) return;
    ended_ = std::move(open_.back());
    ended_->line = line_;
    open_.pop_back();
  }

  std::vector<Open> open_;
  std::optional<Open> ended_;
  std::string_view word_;
  size_t line_ = 1;
};

// What a brace that is missing or too many would explain; empty: none would.
std::string WrongBrace(std::string_view name, const Nest& nest) {
  const std::vector<Open>& open = nest.open();
  for (size_t i = open.size() - 1; i-- > 0;) {
    if (open[i].type == nullptr || !Has(*open[i].type, name)) continue;
    return fmt::format(", but one of {}: is a }} missing above, for the {{ in line {}?",
                       open[i].type->name(), open[i + 1].line);
  }
  const std::optional<Open>& ended = nest.ended();
  if (!ended || ended->type == nullptr || !Has(*ended->type, name)) return {};
  return fmt::format(
      ", but one of '{}', which has ended in line {}: is there one }} too many above?",
      ended->field, ended->line);
}

std::vector<std::string> Names(const Descriptor& type) {
  std::vector<std::string> names;
  names.reserve(type.field_count());
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// A field of `type` that the name was meant to be; empty: none.
std::string SameMessage(std::string_view name, const Descriptor& type) {
  const std::string synonym = Synonym(name);
  return !synonym.empty() && Has(type, synonym) ? synonym : NearestName(name, Names(type));
}

// `above`: what a suggestion begins with.
std::string Describe(std::string_view name, const Descriptor& type, const std::string& brace,
                     const std::string& above = {}) {
  const std::string start = fmt::format("unknown field '{}' of {}", name, type.name());
  const std::string meant = SameMessage(name, type);
  if (!meant.empty()) return fmt::format("{}; did you mean '{}{}'?", start, above, meant);
  if (!brace.empty()) return start + brace;
  for (const std::string& wanted : {std::string(name), Synonym(name)}) {
    const std::string deeper = wanted.empty() ? "" : Deeper(wanted, type, above);
    if (!deeper.empty()) return start + deeper;
  }
  return start + Suggestion(name, Names(type));
}

}  // namespace

std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  if (!nearest.empty()) return fmt::format("; did you mean '{}'?", nearest);
  if (candidates.empty()) return "; it has none";
  return fmt::format("; valid are {}", fmt::join(candidates, ", "));
}

std::string UnknownField(std::string_view name, const Descriptor& type, const std::string& above,
                         const Descriptor& root) {
  const bool has_similar = !SameMessage(name, type).empty() || !Deeper(name, type).empty();
  const std::string elsewhere = has_similar ? "" : Deeper(name, root);
  if (elsewhere.empty()) return Describe(name, type, "", above);
  return fmt::format("unknown field '{}' of {}{}", name, type.name(), elsewhere);
}

std::string UnknownFieldAt(std::string_view name, const Descriptor& type, std::string_view before,
                           const Descriptor& root) {
  const Nest nest(root, before);
  const bool known = nest.open().back().type == &type;  // else a text that Nest does not understand
  return Describe(name, type, known ? WrongBrace(name, nest) : "");
}

}  // namespace ringtail
