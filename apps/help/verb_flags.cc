#include "apps/help/verb_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <string_view>

namespace ringtail {
namespace {

// What stands between `open` and `close`; empty if either is missing.
std::string Between(const std::string& text, std::string_view open, std::string_view close) {
  const size_t from = text.find(open);
  if (from == std::string::npos) return "";
  const size_t begin = from + open.size(), end = text.find(close, begin);
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  if (text.empty()) return {};
  return CLI::detail::split(text, ',');
}

Offer OfferOf(const FlagInfo& flag) {
  const auto has = [&](std::string_view word) {
    return flag.argument.find(word) != std::string::npos;
  };
  if (!flag.choices.empty()) return Offer::kChoices;
  if (has("FIELD=")) {
    return flag.names.back() == "--script-set" ? Offer::kScriptFields : Offer::kFields;
  }
  if (has("VERB")) return Offer::kVerbs;
  if (has("NAME")) return has("FILE") ? Offer::kConfigs : Offer::kConfigNames;
  if (has("FILE") || has("PATH") || has("PEM")) return Offer::kFiles;
  return has("DIR") || has("RUN") ? Offer::kFolders : Offer::kNothing;
}

VerbInfo DescribeVerb(const CLI::App& app) {
  VerbInfo verb{.name = app.get_name(),
                .description = app.get_description(),
                .footer = app.get_footer(),
                .flags = {}};
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_group().empty()) verb.flags.push_back(DescribeFlag(*option));
  }
  return verb;
}

}  // namespace

FlagInfo DescribeFlag(const CLI::Option& option) {
  FlagInfo flag;
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  flag.description = option.get_description();
  flag.group = option.get_positional() ? "Arguments" : option.get_group();
  flag.required = option.get_required();
  flag.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (option.get_items_expected_max() == 0) return flag;  // only there or not
  // The parser's words: "TEXT:{all,train}", "INT:INT in [1 - 4096]", "FILE".
  const std::string type = option.get_type_name();
  flag.choices = SplitAtCommas(Between(type, ":{", "}"));
  flag.range = Between(type, " in [", "]");
  flag.argument = flag.choices.empty()
                      ? type.substr(0, flag.range.empty() ? type.size() : type.rfind(':'))
                      : fmt::format("{}", fmt::join(flag.choices, "|"));
  // "[FILE]" says so itself.
  flag.optional_argument = option.get_items_expected_min() == 0;
  if (flag.optional_argument && flag.argument.starts_with('[')) {
    flag.argument = flag.argument.substr(1, flag.argument.size() - 2);
  }
  flag.many_arguments = option.get_items_expected_max() >= CLI::detail::expected_max_vector_size;
  flag.default_value = option.get_default_str();
  flag.offer = OfferOf(flag);
  return flag;
}

ProgramInfo DescribeProgram(const CLI::App& app) {
  ProgramInfo program{.own = DescribeVerb(app), .verbs = {}};
  for (const CLI::App* verb : app.get_subcommands({})) program.verbs.push_back(DescribeVerb(*verb));
  return program;
}

}  // namespace ringtail
